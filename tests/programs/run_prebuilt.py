#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a bundle of scripts/gpu-bundle: run_prebuilt.py BUNDLE CARDS [ONLY [NOT]]

ONLY and NOT are expressions that names must and must not match. Exit code 0; 1 when a test fails, or there is none to run."""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

bundle, cards = pathlib.Path(sys.argv[1]), int(sys.argv[2])
only, never = (sys.argv[3:] + ["", ""])[:2]


def run(line):
    name, devices, seconds, *words = line.split("\t")
    if int(devices) > cards or not re.search(only, name) or (never and re.search(never, name)):
        return None
    try:
        done = subprocess.run(words, cwd=bundle, env={**os.environ, "PARTITA_ON_CARD": "1"}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=int(seconds))
        code, text = done.returncode, done.stdout
    except subprocess.TimeoutExpired as e:
        code, text = "timeout", str(e)
    except OSError as e:
        code, text = "none", str(e)
    print(f"{'ok' if code == 0 else f'FAILED ({code})':16} {name}", flush=True)
    if code != 0:
        print(text[-200000:], flush=True)
    return code == 0


with concurrent.futures.ThreadPoolExecutor(max(4, (os.cpu_count() or 4) // 2)) as pool:
    results = [r for r in pool.map(run, (bundle / "tests.tsv").read_text().splitlines()) if r is not None]
print(f"{len(results)} tests, {results.count(False)} failed")
sys.exit(0 if results and all(results) else 1)
