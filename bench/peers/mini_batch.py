#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times an epoch of mini-batch GraphSAGE in DGL, PyTorch Geometric and partita on the same graph and cores, by turns.

The graph is an R-MAT graph of 2^20 vertices and 16 edges each with 64 features (make_rmat.py), a tenth of its vertices for training;
batches of 1024 roots, fan-outs 10,10, hidden width 64, 16 classes, Adam, f32. The peers come from PyPI into a virtual environment of
their own (environment.py), made on the first run. First every way of using the cores is tried once in each peer: processes x threads
+ workers of the loader. Then the fastest of each and `train --ranks 2` take turns. Prints Markdown; a peer that is not installed is a
row with the reason. Where other work shares the cores, OMP_WAIT_POLICY=passive spares the peers' threads from spinning. Exit code 1 if
nothing could be timed."""
import argparse
import functools
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
from typing import NamedTuple

sys.dont_write_bytecode = True
import environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {"dgl": "DGL, NeighborSampler", "graphbolt": "DGL, GraphBolt", "pyg": "PyG, NeighborLoader"}
CLASSES = 16
MILLION = 1e6


class Setting(NamedTuple):
    processes: int
    threads: int
    workers: int
    variant: str = ""

    def __str__(self):
        return f"{self.processes} x {self.threads} + {self.workers}" + (f", {self.variant}" if self.variant else "")


def settings_of(peer, cores):
    """Ways of using the cores: processes x threads of each + workers of each."""
    ways = [Setting(1, 1, 0), Setting(1, cores, 0), Setting(1, 1, 1), Setting(1, cores, 1), Setting(1, cores, cores),
            Setting(cores, 1, 0), Setting(cores, 1, 1)]
    return [way._replace(variant=variant) for variant in (["", "sparse"] if peer == "pyg" else [""]) for way in dict.fromkeys(ways)]


def last_line(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def reason(text):
    """The last line that names an error, or the last line, fit for a table."""
    lines = text.strip().splitlines()
    return last_line("\n".join([line for line in lines if "Error" in line] or lines)).strip().replace("|", "/")


def run_peer(peer, setting, options):
    """The JSON of mini_batch_peer.py, or {"error": a sentence}."""
    command = [str(environment.python_of(options.environment)), str(HERE / "mini_batch_peer.py"), peer, str(options.data)]
    command += ["--threads", str(setting.threads), "--workers", str(setting.workers), "--processes", str(setting.processes)]
    command += ["--variant", setting.variant, "--fanout", options.fanout, "--batch", str(options.batch), "--hidden", str(options.hidden)]
    command += ["--epochs", str(options.epochs), "--passes", str(options.epochs)]
    threads = {name: str(setting.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with tempfile.TemporaryDirectory() as folder:
        runs = [subprocess.Popen(command + ["--rank", str(rank), "--meeting", f"{folder}/meeting"], text=True, stdout=subprocess.PIPE,
                                 stderr=open(f"{folder}/{rank}", "w"), env=dict(os.environ, **threads))
                for rank in range(setting.processes)]
        try:
            output = runs[0].communicate(timeout=options.limit)[0]
            codes = [run.wait(timeout=60) for run in runs]
        except subprocess.TimeoutExpired:
            return {"error": f"not finished after {options.limit} s"}
        finally:
            for run in runs:
                run.kill()
        if any(codes):
            said = "".join(pathlib.Path(folder, str(rank)).read_text() for rank in range(setting.processes))
            return {"error": reason(said or f"exit codes {codes}")}
    return json.loads(last_line(output))


def run_partita(options):
    """Seconds per epoch and sampled edges of `train`, in the keys of run_peer."""
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder, "train.json")
        command = [str(options.train), "--data", str(options.data), "--model", "sage", "--hidden", str(options.hidden), "--layers", "2",
                   "--batch", str(options.batch), "--fanout", options.fanout, "--ranks", str(options.cores),
                   "--epochs", str(1 + options.epochs), "--lr", "0.01", "--weight-decay", "0", "--dropout", "0", "--raw-features",
                   "--json", str(record), "--quiet", *shlex.split(options.train_flags)]
        try:
            run = subprocess.run(command, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=options.limit)
        except subprocess.TimeoutExpired:
            return {"error": f"not finished after {options.limit} s"}
        if run.returncode:
            return {"error": reason(run.stderr or f"exit code {run.returncode}")}
        result = json.loads(record.read_text())
    edges = result.get("sampled_edges")
    return {"version": f"partita {result['run']['version']}", "epochs": [result["seconds_per_epoch"]],
            "edges": edges.get("total") if isinstance(edges, dict) else edges, "iterations": result.get("iterations")}


def seconds_of(result):
    return statistics.median(result["epochs"])


def spread(values):
    """Median, and the smallest and largest."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def cells(result):
    """Seconds per epoch, processor seconds, sampled edges per epoch, and those per second of the loader alone, on all cores."""
    if "error" in result:
        return [result["error"], "", "", ""]
    processor = result.get("processor_seconds")
    passes = result.get("passes")
    return [spread(result["epochs"]), f"{statistics.median(processor):.2f}" if processor else "",
            f"{result['edges'] / MILLION:.2f}" if result.get("edges") else "",
            f"{result['edges'] / statistics.median(passes) / MILLION:.2f}" if passes else ""]


def print_row(*row):
    print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)


def choose(options):
    """Tries every setting once; {peer: its fastest setting}."""
    print_row("peer", "processes x threads + workers", "seconds per epoch", "processor seconds", "million edges",
              "million edges/s, loader alone")
    print_row(*["---"] * 6)
    chosen = {}
    for peer in options.peers:
        missing = environment.why_missing(options.environment, peer)
        if missing:
            print_row(NAMES[peer], "not installed", missing, "", "", "")
            continue
        results = {}
        for setting in settings_of(peer, options.cores):
            results[setting] = run_peer(peer, setting, options)
            print_row(NAMES[peer], setting, *cells(results[setting]))
        timed = [setting for setting in results if "error" not in results[setting]]
        if timed:
            chosen[peer] = min(timed, key=lambda setting: seconds_of(results[setting]))
    return chosen


def take_turns(chosen, options):
    """Rounds of each peer's fastest setting and partita; {name: the results of the rounds}."""
    contenders = {NAMES[peer]: functools.partial(run_peer, peer, setting, options) for peer, setting in chosen.items()}
    if not options.skip_partita:
        contenders["partita"] = functools.partial(run_partita, options)
    rounds = {name: [] for name in contenders}
    for turn in range(options.rounds):
        order = list(contenders)
        for name in order if turn % 2 == 0 else reversed(order):
            rounds[name].append(contenders[name]())
    return rounds


def print_turns(rounds, chosen):
    ways = {NAMES[peer]: setting for peer, setting in chosen.items()}
    ours = rounds.get("partita", [])
    print_row("", "processes x threads + workers", "seconds per epoch, medians of rounds", "to partita", "version")
    print_row(*["---"] * 5)
    for name, results in rounds.items():
        errors = [result["error"] for result in results if "error" in result]
        if errors:
            print_row(name, ways.get(name, ""), errors[0], "", "")
            continue
        pairs = [seconds_of(theirs) / seconds_of(mine) for theirs, mine in zip(results, ours) if "error" not in mine]
        print_row(name, ways.get(name, ""), spread([seconds_of(result) for result in results]), spread(pairs) if pairs else "",
                  results[0]["version"] + (f", PyTorch {results[0]['torch']}" if "torch" in results[0] else ""))


def processor_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def print_head(options):
    print("# An epoch of mini-batches against DGL and PyTorch Geometric\n")
    print(f"{processor_name()}, {options.cores} cores, load {os.getloadavg()[0]:.1f} at the beginning. GraphSAGE (mean), two layers, hidden "
          f"{options.hidden}, batches of {options.batch}, fan-outs {options.fanout}, Adam, no dropout, f32; {options.data.name}. Made by\n")
    waits = [f"OMP_WAIT_POLICY={os.environ['OMP_WAIT_POLICY']}"] if "OMP_WAIT_POLICY" in os.environ else []
    print("    " + shlex.join([*waits, "bench/peers/mini_batch.py", *sys.argv[1:]]) + "\n")
    print("A time of a peer is the median (smallest to largest) of the epochs after one to warm up, on the slowest process; processor "
          "seconds are\nthose of all its threads, without workers.\n", flush=True)


def make_data(options):
    """The graph in the folder of the environment, if --data names none."""
    if options.data is None:
        options.data = options.environment / f"rmat_{options.scale}"
    if not options.data.exists():
        print(f"making {options.data} ...", file=sys.stderr)
        if subprocess.run([str(environment.python_of(options.environment)), str(HERE / "make_rmat.py"), str(options.data),
                           "--scale", str(options.scale), "--classes", str(CLASSES)], stdout=sys.stderr).returncode:
            sys.exit(1)


def arguments():
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache", "partita", "peers")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, help="partita's program")
    parser.add_argument("--train-flags", default="", help="further flags for it, in one string")
    parser.add_argument("--skip-partita", action="store_true")
    parser.add_argument("--peers", default=",".join(NAMES), help="default: %(default)s")
    parser.add_argument("--environment", type=pathlib.Path, default=cache, metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--data", type=pathlib.Path, metavar="DIR", help="a data directory; default: made in the environment's folder")
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--fanout", default="10,10")
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--limit", type=int, default=900, metavar="SECONDS", help="for one run; default: %(default)s")
    options = parser.parse_args()
    options.peers = [peer for peer in options.peers.split(",") if peer]
    unknown = [peer for peer in options.peers if peer not in NAMES]
    if unknown:
        parser.error(f"there is no peer '{unknown[0]}'; there are {', '.join(NAMES)}")
    if not options.skip_partita and options.train is None:
        parser.error("--train PATH or --skip-partita is needed")
    available = sorted(os.sched_getaffinity(0))
    if len(available) < options.cores:
        parser.error(f"there are {len(available)} cores, not {options.cores}")
    os.sched_setaffinity(0, available[:options.cores])
    return options


def main():
    options = arguments()
    if not environment.python_of(options.environment).exists():
        environment.make(options.environment)
    make_data(options)
    print_head(options)
    chosen = choose(options)
    rounds = take_turns(chosen, options)
    if rounds:
        print(f"\n{options.rounds} rounds by turns; the ratio is the median of those within a round, above 1 where partita is faster. Load "
              f"{os.getloadavg()[0]:.1f} at the end.\n")
        print_turns(rounds, chosen)
    sys.exit(not any("error" not in result for results in rounds.values() for result in results))


if __name__ == "__main__":
    main()
