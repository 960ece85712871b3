#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Losses on a CUDA device and on the CPU agree in every epoch: gpu_losses.py TRAIN DATA [options]

On the emulator both round alike, but for the order of sums. A card has other exponentials, and Adam divides small gradients
by small gradients: there f32 is compared in its first epoch alone, which says whether the gradients could be right at all.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

MODELS = ["gcn", "sage", "sage --aggregation max", "gin", "gat", "sgc", "appnp", "gcnii"]
ARRANGEMENTS = ["row_1d:1", "grid_2d:4", "feature_column:3"]

parser = argparse.ArgumentParser()
parser.add_argument("train")
parser.add_argument("data")
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--models", nargs="+", default=MODELS)
parser.add_argument("--arrangements", nargs="+", default=ARRANGEMENTS, help="POLICY:RANKS")
parser.add_argument("--precisions", nargs="+", default=["f32", "f64"])
parser.add_argument("--hidden", default="8")
parser.add_argument("--card", action="store_true", help="compare as far as a card agrees with the host")
arguments = parser.parse_args()
TOLERANCE = {"f32": 1e-6 if arguments.card else 1e-5, "f64": 1e-9 if arguments.card else 1e-12}


def losses(scratch, precision, model, *more):
    out = os.path.join(scratch, "run.json")
    hidden = [] if model == "sgc" else ["--hidden", arguments.hidden]
    command = [arguments.train, "--data", arguments.data, "--epochs", str(arguments.epochs), "--precision", precision, *hidden, "--quiet", "--json", out, "--model", *model.split(), *more]
    subprocess.run(command, check=True, timeout=300)
    with open(out) as f:
        return json.load(f)["loss"]


compared = failed = 0
with tempfile.TemporaryDirectory() as scratch:
    for model in arguments.models:
        for precision in arguments.precisions:
            tolerance = TOLERANCE[precision]
            if "--stages" not in model:
                expected = losses(scratch, precision, model, "--device", "cpu", "--policy", "row_1d")
            for arrangement in arguments.arrangements:
                policy, ranks = arrangement.split(":")
                if "--stages" in model:  # which has its chunks within the blocks of ranks
                    expected = losses(scratch, precision, model, "--device", "cpu", "--policy", policy, "--ranks", ranks)
                found = losses(scratch, precision, model, "--device", "cuda", "--policy", policy, "--ranks", ranks)
                looked_at = 1 if arguments.card and precision == "f32" else arguments.epochs
                off = max(abs(a - b) / max(1, abs(b)) for a, b in zip(found[:looked_at], expected))
                right = len(found) == len(expected) == arguments.epochs and off <= tolerance
                compared += 1
                failed += not right
                print(f"{model:24} {precision}  {policy:15} {ranks} ranks  off by {off:.1e}  {'ok' if right else 'FAILED'}", flush=True)
print(f"losses in {arguments.epochs} epochs on {os.path.basename(arguments.data)}: {failed} of {compared} differ by more than {TOLERANCE}")
sys.exit(failed > 0)
