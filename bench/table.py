#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints Google Benchmark output as a table, and draws its times as bars."""
import argparse
import json
import pathlib
import re
import signal
import sys
from xml.sax.saxutils import escape

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


def name_of(run):
    return re.sub(r"/(iterations:|repeats:|manual_time).*", "", run["run_name"])


def milliseconds(run):
    return 1e3 * run["real_time"] * IN_SECONDS[run["time_unit"]]


def row(run, figures):
    if run.get("error_occurred"):
        return [name_of(run), run["error_message"]] + [""] * (len(figures) + 1)
    cells = [FIGURES[figure][1](run[figure]) if figure in run else "" for figure in figures]
    return [name_of(run), f"{milliseconds(run):.3f}"] + cells + [run.get("label", "")]


def picture(runs):
    """An SVG with a bar for each run, as long as its time, the words of its busiest rank beside it, and a colour for each verb."""
    runs = [run for run in runs if not run.get("error_occurred")]
    verbs = list(dict.fromkeys(name_of(run).split("/")[0] for run in runs))
    longest = max(map(milliseconds, runs), default=0) or 1
    left = 12 + 7 * max((len(name_of(run)) for run in runs), default=0)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + 640}" height="{18 * len(runs) + 40}" font-family="monospace" font-size="11">',
             '<rect width="100%" height="100%" fill="white"/>', f'<text x="{left}" y="18">milliseconds (and words received by the busiest rank)</text>']
    for k, run in enumerate(runs):
        y, length = 30 + 18 * k, 400 * milliseconds(run) / longest
        hue = 360 * verbs.index(name_of(run).split("/")[0]) // len(verbs) + 210
        words = f" ({FIGURES['words_max'][1](run['words_max'])})" if "words_max" in run else ""
        lines += [f'<text x="{left - 6}" y="{y + 11}" text-anchor="end">{escape(name_of(run))}</text>',
                  f'<rect x="{left}" y="{y}" width="{length:.1f}" height="14" fill="hsl({hue % 360},50%,55%)"/>',
                  f'<text x="{left + length + 6:.1f}" y="{y + 11}">{milliseconds(run):.3f}{words}</text>']
    return "\n".join(lines + ["</svg>"]) + "\n"


def main(files, svg):
    runs = [run for file in files for run in runs_of(file)]
    if svg:
        svg.write_text(picture(runs))
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
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE.svg", help="write the times as bars, too")
    asked = parser.parse_args()
    sys.exit(main(asked.results, asked.svg))
