#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models saved on the CPU predict the same on a CUDA device, and the other way: gpu_predict.py TRAIN PREDICT"""
import array
import os
import subprocess
import sys
import tempfile

TRAIN, PREDICT = sys.argv[1:]
MODELS = [["gcn", "--embedding", "3", "--partition", "random"], ["gat", "--heads", "2"], ["gcnii", "--layers", "2", "--stages", "2", "--chunks", "2"]]


def values(path):
    """Of an .npy file of doubles."""
    with open(path, "rb") as f:
        content = f.read()
    return array.array("d", content[10 + int.from_bytes(content[8:10], "little"):])


def main():
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        model, logits, out = (os.path.join(folder, name) for name in ("m.safetensors", "l.npy", "p.npy"))
        for arguments in MODELS:
            for here, there in (("cpu", "cuda"), ("cuda", "cpu")):
                subprocess.run([TRAIN, "--data", "karate", "--model", *arguments, "--hidden", "4", "--epochs", "2", "--ranks", "2", "--precision", "f64", "--quiet",
                                "--device", here, "--save", model, "--save-logits", logits, "--save-hidden", out], check=True)
                subprocess.run([PREDICT, "--model", model, "--data", "karate", "--out", out, "--policy", "grid_2d", "--ranks", "4", "--device", there, "--quiet"], check=True)
                differences = [abs(a - b) for a, b in zip(values(logits), values(out), strict=True)]
                worst = max(worst, *differences)
                print(f"{' '.join(arguments)}: saved on {here}, predicted on {there}: the logits differ by {max(differences):.1e}")
    return 0 if worst < 1e-12 else 1


if __name__ == "__main__":
    sys.exit(main())
