#!/usr/bin/env python3
"""Losses of a CUDA device and of the CPU agree in every epoch: gpu_losses.py TRAIN DATA"""
import json
import os
import subprocess
import sys
import tempfile

TOLERANCE = 1e-5
EPOCHS = 30
MODELS = [["gcn"], ["sage"], ["sage", "--aggregation", "max"], ["gin"], ["gat"], ["sgc"], ["appnp"], ["gcnii"]]
ARRANGEMENTS = [("row_1d", 1), ("grid_2d", 4), ("feature_column", 3)]


def losses(scratch, *arguments):
    out = os.path.join(scratch, "run.json")
    subprocess.run([train, "--data", data, "--epochs", str(EPOCHS), "--precision", "f32", "--quiet", "--json", out, *arguments],
                   check=True, timeout=120)
    with open(out) as f:
        return json.load(f)["loss"]


train, data = sys.argv[1:3]
failed = 0
with tempfile.TemporaryDirectory() as scratch:
    for model in MODELS:
        options = ["--model", *model, "--hidden", "8"]
        expected = losses(scratch, *options, "--device", "cpu", "--policy", "row_1d")
        for policy, ranks in ARRANGEMENTS:
            found = losses(scratch, *options, "--device", "cuda", "--policy", policy, "--ranks", str(ranks))
            off = [abs(a - b) / max(1, abs(b)) for a, b in zip(found, expected)]
            right = len(found) == len(expected) == EPOCHS and max(off) <= TOLERANCE
            failed += not right
            print(f"{' '.join(model):22} {policy:15} {ranks} ranks  off by {max(off):.1e}  {'ok' if right else 'FAILED'}", flush=True)
print(f"losses in {EPOCHS} epochs on {os.path.basename(data)}, CUDA against CPU: {failed} of {len(MODELS) * len(ARRANGEMENTS)} differ by more than {TOLERANCE:g}")
sys.exit(failed > 0)
