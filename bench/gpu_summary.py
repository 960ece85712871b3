#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Merges the output of scripts/gpu-check into one JSON file and a short table.

PARTS is a folder with steps.tsv (step, state, seconds, note), about.tsv (key, value) and, if present, spmm.json,
epochs.json, epochs_nccl.json, peers.json and profile.csv, the counters of Nsight Compute by launch."""
import argparse
import csv
import json
import math
import pathlib
import re


def lines(file):
    return [line.split("\t") for line in file.read_text().splitlines()] if file.exists() else []


def part(folder, name):
    try:
        return json.loads((folder / f"{name}.json").read_text())
    except (OSError, ValueError):
        return None


def table(heads, rows):
    return ["| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads)] + rows] + [""]


def milliseconds(x):
    return f"{x:.3f}" if x is not None and math.isfinite(x) else "-"


def ratio(x):
    return f"{x:.2f}" if x is not None else "-"


def spmm_lines(spmm):
    rows = []
    for p in spmm["points"]:
        times = p["milliseconds"]
        library = {name: time for name, time in times.items() if name.startswith("cusparse")}
        best = min(library, key=library.get, default=None)
        rows.append([p["graph"], str(p["width"]), f"{milliseconds(library.get(best))} ({(best or '-').removeprefix('cusparse_')})",
                     milliseconds(times.get("own")), ratio(p["own_speedup"]), f"{1e-9 * p['own_bytes_per_second']:.0f}",
                     milliseconds(times.get("bf16"))])
    return [f"## SpMM, f32: median ms; speed over the best of cuSPARSE at least {ratio(spmm['least_speedup'])}, "
            f"geometric mean {ratio(spmm['geometric_mean_speedup'])}", "",
            f"A copy of {spmm['copy_bytes'] >> 20} MiB within the device moves {1e-9 * spmm['copy_bytes_per_second']:.0f} GB/s. GB/s counts every row of x "
            "that an entry names, as if nothing were cached. bf16: the built-in kernel with x stored in 2 bytes a number.", "",
            *table(["graph", "f", "cuSPARSE", "own", "speed", "GB/s", "bf16"], rows)]


def epoch_lines(epochs, peers):
    theirs = {c["case"]: c for c in (peers or {}).get("cases", [])}
    seconds = {c["case"]: c["seconds_per_epoch"] for c in epochs["cases"]}
    rows = []
    for c in epochs["cases"]:
        peer = theirs.get(c["case"], {})
        alone = seconds.get(c["policy"] + "_1") if c["ranks"] > 1 else None
        rows.append([c["case"], str(c["ranks"]), milliseconds(1e3 * c["seconds_per_epoch"]),
                     f"{1e3 * peer['seconds_per_epoch']:.3f}" if "seconds_per_epoch" in peer else peer.get("error", "-"),
                     f"{c['seconds_per_epoch'] / alone:.2f}" if alone else "-",
                     f"{1e-9 * c['peak_bytes']['total']:.2f}", f"{1e-9 * c['device_bytes']:.2f}",
                     f"{c['calls_per_epoch']['allocations']:.1f}", f"{c['calls_per_epoch']['device_waits']:.1f}",
                     f"{c['calls_per_epoch']['copies_to_host']:.1f}", str(c["words_received"]["total"]),
                     "yes" if c["words_received"] == c["predicted_words_received"] else "NO"])
    libraries = sorted({f"dense products by {c['dense_products']}, sparse ones by {c['sparse_products']}" for c in epochs["cases"]})
    return [f"## Training steps, f32, {epochs['graph']} graphs, {'a card a rank over NCCL' if epochs['comm'] == 'nccl' else 'one card'}; {'; '.join(libraries)}", "",
            *table(["case", "ranks", "ms", "PyG ms", "/ one rank", "buffers GB", "device GB", "allocations", "device-wide waits",
                    "copies to host", "words", "as predicted"], rows)]


COUNTERS = {"gpu__time_duration.sum", "dram__bytes.sum", "lts__t_sectors.sum", "smsp__inst_executed.sum",
            "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__registers_per_thread"}
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "nsecond": 1e-9, "usecond": 1e-6, "msecond": 1e-3, "second": 1,
         "byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def profiled(file):
    """By kernel: launches and sums of its counters, the longest first."""
    if not file.exists():
        return []
    read = csv.reader(line for line in file.read_text().splitlines() if line.startswith('"'))
    head, units, kernels = next(read, None), next(read, None), {}
    if not head or "Kernel Name" not in head:
        return []
    for cells in read:
        values = {key: float(cell.replace(",", "")) * UNITS.get(unit, 1) for key, unit, cell in zip(head, units, cells)
                  if key in COUNTERS and re.fullmatch(r"[0-9.,]+", cell)}
        name = re.sub(r"\w+::", "", cells[head.index("Kernel Name")])
        k = kernels.setdefault(name, {"kernel": name, "launches": 0})
        k["launches"] += 1
        for key, value in values.items():
            k[key] = k.get(key, 0) + value
    for k in kernels.values():  # neither is a sum over launches
        for key in [key for key in k if "pct" in key or key.startswith("launch__")]:
            k[key] /= k["launches"]
    return sorted(kernels.values(), key=lambda k: -k.get("gpu__time_duration.sum", 0))


def profile_lines(kernels):
    def cell(k, key, scale=1.0, digits=1):
        return f"{scale * k[key]:.{digits}f}" if key in k else "-"

    rows = [[f"`{k['kernel'][:100]}`", str(k["launches"]), cell(k, "gpu__time_duration.sum", 1e3, 3), cell(k, "dram__bytes.sum", 1e-6),
             cell(k, "lts__t_sectors.sum", 32e-6), cell(k, "smsp__inst_executed.sum", 1e-6, 2),
             cell(k, "sm__warps_active.avg.pct_of_peak_sustained_active"), cell(k, "launch__registers_per_thread", 1, 0)] for k in kernels[:24]]
    return ["## Kernels of three steps each of products_gcn and products_gat, an eighth of the graph, by the card's counters", "",
            "Sums over all launches under Nsight Compute, which runs each kernel alone and with cold caches.", "",
            *table(["kernel", "launches", "ms", "DRAM MB", "L2 MB in sectors", "10^6 warp instructions", "% of warps active", "registers"], rows)]


def main(folder, name, out_json, out_md):
    about = dict(lines(folder / "about.tsv"))
    steps = [dict(zip(["step", "state", "seconds", "note"], cells)) for cells in lines(folder / "steps.tsv")]
    parts = {key: part(folder, key) for key in ("spmm", "epochs", "epochs_nccl", "peers")}
    kernels = profiled(folder / "profile.csv")
    if kernels:
        parts["profile"] = kernels
    pathlib.Path(out_json).write_text(json.dumps({"name": name, **about, "steps": steps, **parts}, indent=1) + "\n")
    text = [f"# {about.get('device', name)}", "",
            ", ".join(f"{key} {about[key]}" for key in ("driver", "capability", "cuda", "commit", "date") if key in about) + "; made by `scripts/gpu-check`.", "",
            *table(["step", "", "seconds", ""], [[s["step"], s["state"], s["seconds"], s.get("note", "")] for s in steps])]
    if parts["spmm"]:
        text += spmm_lines(parts["spmm"])
    if parts["epochs"]:
        text += epoch_lines(parts["epochs"], parts["peers"])
    if parts["epochs_nccl"]:
        text += epoch_lines(parts["epochs_nccl"], None)
    if kernels:
        text += profile_lines(kernels)
    pathlib.Path(out_md).write_text("\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", metavar="PARTS", type=pathlib.Path)
    for name in ("NAME", "OUT_JSON", "OUT_MD"):
        parser.add_argument(name.lower(), metavar=name)
    asked = parser.parse_args()
    main(asked.parts, asked.name, asked.out_json, asked.out_md)
