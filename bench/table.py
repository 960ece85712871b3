#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints Google Benchmark output as a table."""
import argparse
import json
import pathlib
import re
import signal
import sys

IN_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# Field of a run: heading, format.
FIGURES = {
    "words_max": ("words, busiest rank", lambda x: f"{x:,.0f}"),
    "words_total": ("words, all ranks", lambda x: f"{x:,.0f}"),
    "messages": ("messages", lambda x: f"{x:,.0f}"),
    "flops": ("GFLOP/s", lambda x: f"{x / 1e9:.1f}"),
    "bytes_touched": ("GB/s", lambda x: f"{x / 1e9:.1f}"),
    "GB/s": ("GB/s", lambda x: f"{x:.1f}"),
}


def runs_of(file):
    """The medians if there were repetitions, otherwise the runs, in order of definition rather than execution."""
    runs = json.loads(pathlib.Path(file).read_text())["benchmarks"]
    medians = [run for run in runs if run.get("aggregate_name") == "median"]
    single = [run for run in runs if run["run_type"] != "aggregate" and run.get("repetitions", 1) == 1]
    return sorted(medians + single, key=lambda run: run["family_index"])


def row(run, figures):
    name = re.sub(r"/(iterations:|repeats:|manual_time).*", "", run["run_name"])
    if run.get("error_occurred"):
        return [name, run["error_message"]] + [""] * (len(figures) + 1)
    time = 1e3 * run["real_time"] * IN_SECONDS[run["time_unit"]]
    cells = [FIGURES[figure][1](run[figure]) if figure in run else "" for figure in figures]
    return [name, f"{time:.3f}"] + cells + [run.get("label", "")]


def main(files):
    runs = [run for file in files for run in runs_of(file)]
    figures = [figure for figure in FIGURES if any(figure in run for run in runs)]
    rows = [["benchmark", "ms"] + [FIGURES[figure][0] for figure in figures] + [""]] + [row(run, figures) for run in runs]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for cells in rows:
        first, *numbers, last = cells
        line = [first.ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(numbers, widths[1:])] + [last]
        print("  ".join(line).rstrip())
    return 1 if any(run.get("error_occurred") for run in runs) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    sys.exit(main(parser.parse_args().results))
