#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --policy auto takes, and what asking costs, against running every policy: auto_policy.py TRAIN DATA... [--ranks P]

DATA: data directories. Every policy is trained for some epochs; the best one has the smallest product of measured words of a step and
measured bytes of set-up, of the busiest rank. Prints a table in Markdown: both choices, the policy with the fastest epoch, and set-up time and
resident memory of auto over those of a run of the policy that it takes. Medians over rounds."""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

# The axes of [row, col, depth] that cut A.
CUT = {"row_1d": (0,), "replicated_1_5d": (0, 2), "grid_2d": (0, 1), "split_3d": (0, 1, 2), "feature_column": (), "feature_row": (0,)}
LIST_BYTES = 12  # of an entry of A in f32 without weights, while entries arrive


def run(train, folder, policy, ranks, epochs):
    with tempfile.TemporaryDirectory() as scratch:
        found = os.path.join(scratch, "run.json")
        done = subprocess.run([train, "--data", folder, "--model", "gcn", "--policy", policy, "--ranks", str(ranks), "--epochs", str(epochs),
                               "--quiet", "--json", found], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{policy} on {folder}: {done.stderr.strip()}")
        with open(found, encoding="utf-8") as file:
            return json.load(file)


def set_up(runs):
    """Seconds and bytes before the first epoch."""
    return statistics.median(sum(r["setup_seconds"].values()) for r in runs), statistics.median(r["peak_rss_bytes"]["total"] for r in runs)


def cost(run):
    """Measured words of a step times bytes of set-up."""
    entries = run["run"]["data"]["edges"] + run["run"]["data"]["vertices"]
    parts = math.prod(run["mesh"][axis] for axis in CUT[run["policy"]])
    return (run["words_received"]["max_rank"] + 1) * (run["setup_peak_bytes"]["max_rank"] + entries // parts * LIST_BYTES)


def row(train, folder, given):
    fixed = {p: [run(train, folder, p, given.ranks, given.epochs)] for p in given.policies.split(",")}
    best = min(fixed, key=lambda p: cost(fixed[p][0]))
    fastest = min(fixed, key=lambda p: fixed[p][0]["seconds_per_epoch"])
    asked = [run(train, folder, "auto", given.ranks, given.epochs)]
    taken = asked[0]["policy"]
    for _ in range(given.rounds - 1):
        fixed[taken].append(run(train, folder, taken, given.ranks, given.epochs))
        asked.append(run(train, folder, "auto", given.ranks, given.epochs))
    (seconds, memory), (fixed_seconds, fixed_memory) = set_up(asked), set_up(fixed[taken])
    return (f"| {os.path.basename(os.path.normpath(folder))} | {taken} | {best} | {fastest} | {fixed_seconds:.2f} | {seconds / fixed_seconds:.2f} "
            f"| {1e-9 * fixed_memory:.2f} | {memory / fixed_memory:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("data", nargs="+")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--policies", default=",".join(CUT), help="with commas between")
    given = parser.parse_args()
    print(f"| graph, {given.ranks} ranks | auto takes | smallest words x bytes | fastest epoch | set-up, s | of auto, x | memory, GB | of auto, x |")
    print("|---|---|---|---|---|---|---|---|")
    for folder in given.data:
        print(row(given.train, folder, given), flush=True)


if __name__ == "__main__":
    main()
