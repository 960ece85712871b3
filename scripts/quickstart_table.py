# SPDX-License-Identifier: Apache-2.0
"""Prints what train reported as a table, one policy a line, and checks that all losses are the same."""

import argparse
import json
import pathlib
import sys

TOLERANCE = 1e-9


def largest_difference(losses, expected):
    """Of all epochs, relative; infinite when the epochs are not the same or a loss is no number."""
    if len(losses) != len(expected) or not losses:
        return float("inf")
    difference = max(abs(a - b) / abs(b) if b else abs(a) for a, b in zip(losses, expected))
    return difference if all(x == x for x in losses + expected) else float("inf")


def row(run):
    accuracy = run["test_accuracy"]
    return [
        run["policy"],
        "x".join(map(str, run["mesh"])),
        f"{run['loss'][-1]:.12f}",
        "-" if accuracy is None else f"{100 * accuracy:.1f} %",
        f"{run['words_received']['max_rank']:,.0f}",
        f"{run['seconds_per_epoch']:.4f}",
    ]


def main(files):
    runs = [json.loads(pathlib.Path(file).read_text()) for file in files]
    rows = [["policy", "mesh", "final loss", "test accuracy", "words/epoch", "s/epoch"]] + [row(run) for run in runs]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for cells in rows:
        name, *numbers = (cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths)))
        print("  ".join([name] + numbers))
    print("(words/epoch: numbers received by the rank that receives most)")
    print()

    difference = max(largest_difference(run["loss"], runs[0]["loss"]) for run in runs)
    if difference > TOLERANCE:
        print(f"The losses are NOT the same: they differ by a relative {difference:.1e}, more than {TOLERANCE:.0e}.")
        return 1
    print(f"The loss of every epoch is the same under all {len(runs)} policies (to a relative {difference:.1e}).")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    sys.exit(main(parser.parse_args().results))
