#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mean test accuracy over ten seeds on a real graph: accuracy.py TRAIN DIR PERCENT [option of train ...]"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

train, folder, least, *options = sys.argv[1:]
found = []
with tempfile.TemporaryDirectory() as scratch:
    out = os.path.join(scratch, "run.json")
    for seed in range(10):
        subprocess.run([train, "--data", folder, "--model", "gcn", "--seed", str(seed), "--quiet", "--json", out, *options], check=True)
        with open(out) as f:
            accuracy = json.load(f)["test_accuracy"]
        if accuracy is None:
            sys.exit(f"{folder}: no vertex is for testing")
        found.append(100 * accuracy)
mean = statistics.mean(found)
print(f"{os.path.basename(folder)}: test accuracy {mean:.2f} +- {statistics.stdev(found):.2f} % over ten seeds, at least {least} asked")
sys.exit(mean < float(least))
