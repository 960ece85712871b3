# SPDX-License-Identifier: Apache-2.0
"""Prints what train reported as a table, one policy a line, and checks that all losses are the same; --plot draws them."""

import argparse
import json
import pathlib
import sys

TOLERANCES = {"f32": 1e-5, "f64": 1e-9}
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 64, 40, 20, 48
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"]


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
        f"{run['loss'][-1]:.{6 if run['run']['options']['precision'] == 'f32' else 12}f}",
        "-" if accuracy is None else f"{100 * accuracy:.1f} %",
        f"{run['words_received']['max_rank']:,.0f}",
        f"{run['seconds_per_epoch']:.4f}",
    ]


def plot(runs):
    """The loss by epoch as an SVG; equal curves lie on one another, each with thinner lines than the one before."""
    highest = max(max(run["loss"]) for run in runs)
    epochs = max(len(run["loss"]) for run in runs)
    x = lambda epoch: LEFT + (WIDTH - LEFT - RIGHT) * epoch / max(1, epochs - 1)
    y = lambda loss: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * loss / highest
    text = lambda at_x, at_y, anchor, what: f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}">{what}</text>'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             text(WIDTH / 2, 20, "middle", f"Training loss of {runs[0]['model']}, under each policy"),
             text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "middle", "epoch")]
    for tick in range(5):
        loss, epoch = highest * tick / 4, (epochs - 1) * tick // 4
        lines += [f'<path d="M{LEFT} {y(loss):.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>', text(LEFT - 8, y(loss) + 4, "end", f"{loss:.2f}"),
                  text(x(epoch), HEIGHT - BOTTOM + 18, "middle", epoch + 1)]
    for i, run in enumerate(runs):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{x(epoch):.1f},{y(loss):.1f}" for epoch, loss in enumerate(run["loss"]))
        lines += [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{1 + 1.5 * (len(runs) - 1 - i)}"/>',
                  f'<rect x="{WIDTH - RIGHT - 150}" y="{TOP + 18 * i}" width="14" height="10" fill="{colour}"/>',
                  text(WIDTH - RIGHT - 130, TOP + 9 + 18 * i, "start", run["policy"])]
    return "\n".join([*lines, "</svg>"]) + "\n"


def main(files, plot_file):
    runs = [json.loads(pathlib.Path(file).read_text()) for file in files]
    rows = [["policy", "mesh", "final loss", "test accuracy", "words/epoch", "s/epoch"]] + [row(run) for run in runs]
    widths = [max(map(len, column)) for column in zip(*rows)]
    for cells in rows:
        name, *numbers = (cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths)))
        print("  ".join([name] + numbers))
    print("(words/epoch: numbers received by the rank that receives most)")
    print()

    difference = max(largest_difference(run["loss"], runs[0]["loss"]) for run in runs)
    tolerance = TOLERANCES[runs[0]["run"]["options"]["precision"]]
    if difference > tolerance:
        print(f"The losses are NOT the same: they differ by a relative {difference:.1e}, more than {tolerance:.0e}.")
        return 1
    print(f"The loss of every epoch is the same under all {len(runs)} policies (to a relative {difference:.1e}).")
    if plot_file:
        plot_file.write_text(plot(runs))
        print(f"The loss by epoch is drawn in {plot_file}.")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", metavar="RESULT.json")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE.svg")
    arguments = parser.parse_args()
    sys.exit(main(arguments.results, arguments.plot))
