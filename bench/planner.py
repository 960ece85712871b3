#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `plan` says against what `train` takes: planner.py PLAN TRAIN KERNELS.json DATA... [--ranks 4,8,16] [--models gcn,sage,appnp,gat] [--charged]

For each directory of data, model, number of ranks and machine: plans with the measured kernels of KERNELS.json, then trains the best
candidates of each policy, and the first few of all, on the same machine in virtual time by processor time, without these measurements; with --charged
by them, so that seconds are the same however busy this machine is, and what is compared is the plan with the program. With --threads runs are threads of
this machine, by the clock: KERNELS.json is then a pattern such as here-{}.json of what `calibrate --threads P` measured for each number of ranks P, and
a candidate takes the least of --repeats runs, in turn. With more ranks than cores kernels are planned to take as many times as long.
Regret: how much longer an epoch of the first candidate takes than the least of all that were trained; spread: how much longer the slowest of these. Prints a table in
Markdown: a row for each graph, model and machine over all numbers of ranks, and the medians and worst of all."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

# Links of (ranks on a node, seconds and bytes per second inside and between nodes).
MACHINES = {"10 Gbit/s": (1, (1e-6, 2e10), (2e-6, 1.25e9)),
            "100 Gbit/s, 4 a node": (4, (1e-6, 2e10), (2e-6, 1.25e10)),
            "1 Gbit/s": (1, (1e-6, 2e10), (5e-5, 1.25e8))}


def write_machine(path, name, kernels=None):
    node, inside, between = MACHINES[name]
    link = lambda l: {"latency": l[0], "bandwidth": l[1]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"ranks_of_node": node, "inside": link(inside), "between": link(between), **({"kernels": kernels} if kernels else {})}, file)


def call(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def options_of(candidate):
    given = ["--policy", candidate["policy"], "--mesh", "x".join(map(str, candidate["mesh"]))]
    for key, option in (("exchange", "exchange"), ("stationary", "stationary"), ("exchange_pieces", "exchange-pieces")):
        given += [f"--{option}", str(candidate[key])] if candidate[key] else []
    return given


def tried(candidates, first):
    """The first few, and the first of each policy."""
    seen, chosen = set(), []
    for k, c in enumerate(candidates):
        if k < first or c["policy"] not in seen:
            chosen.append(c)
        seen.add(c["policy"])
    return chosen


def cell(given, folder, model, ranks, machine, scratch):
    """Of each candidate that was trained: predicted and measured run."""
    planned, network, found = (os.path.join(scratch, n) for n in ("planned.json", "network.json", "run.json"))
    kernels = os.path.abspath(given.kernels.replace("{}", str(ranks)))
    common = ["--data", folder, "--model", model, "--ranks", str(ranks), "--quiet"]
    if given.threads:
        with open(planned, "w", encoding="utf-8") as file:
            here = read(kernels)
            json.dump({**here, "ranks_of_node": ranks, "slower": max(1, ranks / here["ranks_of_node"])}, file)
        where = ["--threads", "1"]
    else:
        write_machine(planned, machine, kernels)
        write_machine(network, machine, kernels if given.charged else None)
        where = ["--machine", network]
    call([given.plan, *common, "--machine", planned, "--json", found])
    candidates = read(found)["candidates"]
    chosen, runs = tried(candidates, given.first), {}
    for _ in range(given.repeats):
        for k, candidate in enumerate(chosen):
            call([given.train, *common, *options_of(candidate), *where, "--epochs", str(given.epochs), "--evaluate-every", str(given.epochs), "--json", found])
            runs[k] = min(runs.get(k, read(found)), read(found), key=lambda run: run["seconds_per_epoch"])
    return len(candidates), [(candidate, runs[k]) for k, candidate in enumerate(chosen)]


def figures(runs):
    """Regret and spread; and of all candidates the errors of seconds and of bytes, and whether words are those received."""
    seconds = [run["seconds_per_epoch"] for _, run in runs]
    errors = [abs(c["predicted_seconds"] / s - 1) for (c, _), s in zip(runs, seconds)]
    memory = [abs(c["predicted_buffer_bytes"]["max_rank"] / run["peak_bytes"]["max_rank"] - 1) for c, run in runs]
    words = all(c["predicted_words_received"]["max_rank"] == run["predicted_words_received"]["max_rank"] for c, run in runs)
    return seconds[0] / min(seconds) - 1, errors, memory, words, max(seconds) / min(seconds) - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("plan", "train", "kernels"):
        parser.add_argument(name)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--ranks", default="4,8,16")
    parser.add_argument("--models", default="gcn,sage,appnp,gat")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--first", type=int, default=3, help="candidates that are trained besides the first of each policy")
    parser.add_argument("--charged", action="store_true", help="runs take the measured seconds of kernels, too")
    parser.add_argument("--threads", action="store_true", help="runs are threads of this machine, by the clock")
    parser.add_argument("--repeats", type=int, default=1, help="runs of a candidate, of which the fastest counts")
    given = parser.parse_args()
    percent = lambda x: f"{100 * x:.1f} %"
    seconds_off = (lambda errors: f"{max(errors):.0e} at worst") if given.charged else (lambda errors: f"{percent(statistics.median(errors))} in the median")
    print("| graph | model | machine | candidates | policies taken | regret, worst | spread, worst | seconds off | bytes off, worst | words |\n|---|---|---|---|---|---|---|---|---|---|")
    regrets, spreads, all_errors, all_memory, all_words, trained = [], [], [], [], [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for folder in given.data:
            for model in given.models.split(","):
                for machine in ["threads"] if given.threads else MACHINES:
                    cells = [cell(given, folder, model, int(p), machine, scratch) for p in given.ranks.split(",")]
                    found = [figures(runs) for _, runs in cells]
                    trained += sum(len(runs) for _, runs in cells)
                    regrets, spreads = regrets + [f[0] for f in found], spreads + [f[4] for f in found]
                    errors, memory = sum((f[1] for f in found), []), sum((f[2] for f in found), [])
                    all_errors, all_memory = all_errors + errors, all_memory + memory
                    all_words += [f[3] for f in found]
                    taken = ", ".join(runs[0][0]["policy"] for _, runs in cells)
                    print(f"| {os.path.basename(os.path.normpath(folder))} | {model} | {machine} | {max(n for n, _ in cells)} | {taken} "
                          f"| {percent(max(f[0] for f in found))} | {percent(max(f[4] for f in found))} | {seconds_off(errors)} | {percent(max(memory))} "
                          f"| {'exact' if all(f[3] for f in found) else 'not exact'} |", flush=True)
    print(f"\n{len(regrets)} cells, {trained} runs: regret {percent(statistics.median(regrets))} in the median, {percent(max(regrets))} at worst; spread "
          f"{percent(statistics.median(spreads))} and {percent(max(spreads))}; seconds off by {seconds_off(all_errors)}; bytes by {percent(max(all_memory))} "
          f"at worst; words exact in {sum(all_words)}")


if __name__ == "__main__":
    main()
