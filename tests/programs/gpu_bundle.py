#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/gpu-bundle and gpu-check --prebuilt, with the emulator in place of a card: gpu_bundle.py SOURCES BUILD EMULATOR"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

sources, build, emulator = map(pathlib.Path, sys.argv[1:])
NVIDIA_SMI = """#!/bin/sh
case "$*" in
  *query-gpu=name*) echo "Emulated Card" ;;
  *query-gpu=compute_cap*) echo "${STUB_CAPABILITY:-9.0}" ;;
  *query-gpu=driver_version*) echo 580.1 ;;
  *list-gpus*) echo "GPU 0: Emulated Card" ;;
esac
"""


def expect(code, words, command, **more):
    done = subprocess.run(list(map(str, command)), env={**os.environ, **environment, **more}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != code or not all(w in done.stdout for w in words):
        sys.exit(f"{' '.join(map(str, command))}\nexited with {done.returncode} instead of {code}, or without one of {words}:\n{done.stdout}")
    return done.stdout


with tempfile.TemporaryDirectory() as scratch:
    scratch = pathlib.Path(scratch)
    bundle, out = scratch / "bundle", scratch / "out"
    (scratch / "tools").mkdir()
    stub = scratch / "tools" / "nvidia-smi"
    stub.write_text(NVIDIA_SMI)
    stub.chmod(0o755)
    environment = {"PATH": f"{scratch / 'tools'}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(emulator), "EMULATOR_CUSPARSE": "1",
                   "PARTITA_COMMIT": "c0ffee"}
    make = [sources / "scripts" / "gpu-bundle", "--out", bundle, "--build", build]
    expect(0, ["tests, "], make, LD_LIBRARY_PATH="")
    expect(2, ["is no folder of a build"], [*make[:-1], scratch])
    expect(2, ["holds something else than a bundle"], [make[0], "--out", scratch, "--build", build])
    for folder in ("golden", "data"):  # a case is enough
        for case in (bundle / folder).glob("*"):
            if case.name != "gcn-directed" and case.is_dir():
                shutil.rmtree(case)

    def check(code, words, *options, tests="^gpu_(gpu_page|programs_compress|golden_grid_2d_f32)$", **more):
        return expect(code, words, [bundle / "scripts" / "gpu-check", "--prebuilt", bundle, "--quick", "--scale-down", "65536",
                                    "--tests", tests, *options, "dry"], **more)

    check(0, ["== tests        ok", "== spmm         ok", "== epochs       ok"], "--out", out)
    assert sorted(f.name for f in out.iterdir()) == ["gpu-dry-logs.tgz", "gpu-dry.json", "gpu-dry.md"], list(out.iterdir())
    found = json.loads((out / "gpu-dry.json").read_text())
    assert (found["commit"], found["device"], found["capability"]) == ("c0ffee", "Emulated Card", "90"), found
    assert {41, 47, 100, 602} <= {p["width"] for p in found["spmm"]["points"]}
    cases = {c["case"]: c for c in found["epochs"]["cases"]}
    assert {"products_gat", "products_sage_max", "row_1d_4"} <= cases.keys(), cases.keys()
    # Ranks that share a card exchange there; to the host go the loss and little else.
    several, alone = cases["row_1d_4"]["calls_per_epoch"], cases["row_1d_1"]["calls_per_epoch"]
    assert several["copies_on_device"] > alone["copies_on_device"], (several, alone)
    assert several["copies_to_host"] <= 4 * alone["copies_to_host"], (several, alone)
    with tarfile.open(out / "gpu-dry-logs.tgz") as logs:
        assert "./tests.log" in logs.getnames(), logs.getnames()

    expect(1, ["the bundle is for compute capability"], [bundle / "scripts" / "gpu-check", "--prebuilt", bundle], STUB_CAPABILITY="7.5")
    expect(2, ["--prebuilt needs a folder"], [bundle / "scripts" / "gpu-check", "--prebuilt", scratch])
    for benchmark in ("gpu_spmm", "gpu_epochs"):
        (bundle / "bin" / benchmark).unlink()
    # All that there is succeeds, and nothing is measured.
    check(1, ["== tests        ok", "nothing was measured"], tests="gpu_gpu_page")
    check(1, ["== tests        FAILED", "0 tests"], tests="no_such_test")
    (bundle / "tests.tsv").write_text("gpu_failing\t1\t10\tfalse\n")
    check(1, ["== tests        FAILED", "FAILED (1)"], tests="gpu_failing")
