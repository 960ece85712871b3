#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a training step takes of an entry, as kernel_costs counts it, is what docs/gpu-kernels.md says of GCN and GAT: no more, and not
so much less that the page is out of date. With other classes a step has as many launches, none of which is a graph's. The rows of the
printed tables account for all of them.

usage: step_costs.py KERNEL_COSTS docs/gpu-kernels.md"""
import re
import subprocess
import sys

LAUNCHES = {"8": ["18", "40"], "64": ["18", "40"]}  # of GCN and GAT, on 2^7 vertices
FIGURES = r"^(gcn|gat), 64 features, 47 classes.* ([\d.]+) of warps, (\d+) B loaded, (\d+) B stored$"


def run(program, *arguments):
    return subprocess.run([program, *arguments], check=True, text=True, capture_output=True).stdout


def main(program, page):
    for classes, launches in LAUNCHES.items():
        printed = run(program, "--scale", "7", "--classes", classes)
        found = re.findall(r"in a step of (\d+) launches", printed)
        if found != launches:
            sys.exit(f"{classes} classes: steps of {found} launches, not {launches}")
        tables = [sum(map(int, re.findall(r"^\| [^|]+ \| (\d+) \|", table, re.M))) for table in printed.split("| kernel |")[1:]]
        if tables != list(map(int, launches)):
            sys.exit(f"{classes} classes: tables of {tables} launches, not {launches}")
    counted = {m[1]: [float(x) for x in m.groups()[1:]]
               for m in re.finditer(FIGURES, run(program, "--classes", "47"), re.M)}
    with open(page) as f:
        said = {m[1].lower(): [float(x) for x in m.groups()[1:]]
                for m in re.finditer(r"^\| \*\*a step of (GCN|GAT)\*\* \| ([\d.]+) \| (\d+) \| (\d+) \|$", f.read(), re.M)}
    if sorted(counted) != ["gat", "gcn"] or sorted(said) != ["gat", "gcn"]:
        sys.exit(f"counted of {sorted(counted)}, said of {sorted(said)}")
    wrong = [f"{model}: {figures} counted, {said[model]} said" for model, figures in counted.items()
             if not all(0.97 * least <= figure <= least + 0.5 for figure, least in zip(figures, said[model]))]
    print("\n".join(wrong) or f"instructions of warps, bytes loaded and stored for an entry: {counted}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main(*sys.argv[1:])
