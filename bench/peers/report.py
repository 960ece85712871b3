# SPDX-License-Identifier: Apache-2.0
"""The Markdown that run.py prints."""
import os
import pathlib
import platform
import shlex
import statistics
import sys

BASES = {"SciPy": "partita, 1 thread", "PETSc": "partita, f64"}
PEERS = ["MKL", "PyTorch, mm", "PyTorch, reduce", "SciPy", "PETSc", "partita, portable"]
HEADINGS = {"SciPy": "SciPy, both on 1 thread", "PETSc": "PETSc, both f64", "partita, portable": "partita, plain build"}


def print_row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def print_table(head, rows):
    print_row(*head)
    print_row(*["---"] * len(head))
    for row in rows:
        print_row(*row)
    print()


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def print_head(options, load):
    print("# partita against others\n")
    print(f"{processor()}, {options.threads} threads on as many cores, load {load:.1f} before and {os.getloadavg()[0]:.1f} after. Made by\n")
    waits = [f"OMP_WAIT_POLICY={os.environ['OMP_WAIT_POLICY']}"] if "OMP_WAIT_POLICY" in os.environ else []
    print("    " + shlex.join([*waits, "scripts/bench", "peers", *(["--", *sys.argv[1:]] if sys.argv[1:] else [])]) + "\n")
    print("Threads of OpenMP, which all but partita and SciPy use, spin while they wait: where other work shares the cores, such times say "
          "little,\nleast of all for Cora; OMP_WAIT_POLICY=passive spares them that.\n")


def milliseconds(seconds):
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:.0f}"


def ratio(theirs, ours):
    """The median over rounds."""
    return statistics.median(a / b for a, b in zip(theirs, ours))


def print_spmm(found):
    print("## Local SpMM\n")
    print(f"y = a x, f32, row-major, 32-bit indices. Copying runs at {1e-9 * found['copy_bytes_per_second']:.1f} GB/s, read and written "
          "together. The ceiling is the\ntime in which the same threads only read the rows of x that the entries name, in their order (the "
          "fastest of several\ndistances of prefetching); partita's share of it is that time over its own. Other numbers are the peer's time over "
          "partita's, medians of\nrounds by turns: above 1 partita is faster.\n")
    print("\n".join(f"* {name}: {version}" for name, version in found["versions"].items()))
    for name, reason in {**found["missing"], "Ginkgo": "Debian does not have it"}.items():
        print(f"* {name} is missing: {reason}")
    peers = [name for name in PEERS if any(name in turns for m in found["matrices"].values() for turns in m["widths"].values())]
    print()
    rows = []
    for matrix, result in found["matrices"].items():
        for f, turns in result["widths"].items():
            ours = statistics.median(turns["partita"])
            ceiling = min(statistics.median(turns[name]) for name in turns if name.startswith("gather"))
            speed = 2e-9 * result["entries"] * int(f) / ours
            rows.append([matrix, f"{1e-6 * result['entries']:.3g}", f, milliseconds(ours), f"{speed:.1f}", f"{100 * ceiling / ours:.0f} %"]
                        + [f"{ratio(turns[name], turns[BASES.get(name, 'partita')]):.2f}" if turns.get(name) else "" for name in peers])
    print_table(["matrix", "million entries", "f", "partita, ms", "GFLOP/s", "of the ceiling"] + [HEADINGS.get(p, p) for p in peers], rows)


def print_epochs(found):
    print("## Epochs of full-batch training\n")
    print("Two layers, hidden 64 (GAT: eight heads of 8), Adam, f32; milliseconds per epoch, and the time of PyG over partita's in\nparentheses: "
          "above 1 partita is faster. 1 x 2 is one rank with two threads. Without dropout partita computes S X, the\nproduct of the graph with "
          "the features, once and not in every epoch; dropout of the input of each layer leaves nothing to keep.\n")
    versions = {turn["version"] for turns in found.values() for turn in turns["PyG"] if "version" in turn}
    print("\n".join(f"* {version}" for version in sorted(versions)) + "\n")
    ways = [way for way in max(found.values(), key=len) if way != "PyG"]
    rows = [[graph, model, cell(turns["PyG"])] + [cell(turns[way], turns["PyG"]) if way in turns else "" for way in ways]
            for (graph, model), turns in found.items()]
    print_table(["graph", "model", "PyG"] + [f"partita, {way}" for way in ways], rows)


def cell(turns, theirs=None):
    errors = [turn["error"] for turn in turns if "error" in turn]
    if errors:
        return errors[0].replace("|", "/")
    seconds = [turn["seconds_per_epoch"] for turn in turns]
    text = milliseconds(statistics.median(seconds))
    if theirs is None or any("error" in turn for turn in theirs):
        return text
    return f"{text} ({ratio([turn['seconds_per_epoch'] for turn in theirs], seconds):.2f})"
