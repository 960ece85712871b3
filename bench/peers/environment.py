#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A virtual environment with DGL 2.1 and PyTorch Geometric from PyPI: environment.py FOLDER

DGL 2.1.0 has GraphBolt for PyTorch up to 2.2.1, which is built against NumPy 1 and needs torchdata before 0.8; pandas, PyYAML and pydantic
it imports without naming them. torch-scatter and torch-sparse, whose sampler NeighborLoader calls where pyg-lib is missing, have no wheels
on PyPI and are compiled, one file at a time. 5 GB in all, most of it CUDA libraries that PyTorch's wheel asks for and nothing here
calls. What does not install is reported and left out. The output of pip is in FOLDER/install.log."""
import os
import pathlib
import subprocess
import sys

BASE = ["numpy==1.26.4"]
TORCH = ["torch==2.2.1", *BASE, "setuptools<70", "wheel"]
DGL = ["dgl==2.1.0", "torchdata==0.7.1", "pandas<2.3", "pyyaml", "pydantic", "torch==2.2.1", *BASE]
PYG = ["torch_geometric==2.5.3", "torch==2.2.1", *BASE]
COMPILED = ["torch-scatter==2.1.2", "torch-sparse==0.6.18"]
COMPILE_SECONDS = 45 * 60
# Peer: the modules that have to load.
MODULES = {"dgl": "dgl", "graphbolt": "dgl.graphbolt", "pyg": "torch_geometric, torch_sparse"}


def python_of(folder):
    return folder / "bin" / "python"


def pip(folder, packages, *flags, seconds=3600):
    """True if pip installed them within so many seconds."""
    environment = dict(os.environ, FORCE_ONLY_CPU="1", WITH_METIS="0", MAX_JOBS="1", CFLAGS=os.environ.get("CFLAGS", "") + " -g0")
    with open(folder / "install.log", "a") as log:
        log.write(f"\n== {' '.join(packages)}\n")
        log.flush()
        code = subprocess.run(["timeout", str(seconds), "nice", str(python_of(folder)), "-m", "pip", "install", "--no-cache-dir", *flags,
                               *packages], stdout=log, stderr=subprocess.STDOUT, env=environment).returncode
        log.write(f"\nstopped after {seconds} seconds\n" if code == 124 else "")
        return code == 0


def make(folder):
    """A new environment with whatever installs."""
    print(f"installing DGL and PyTorch Geometric into {folder} ...", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    if not pip(folder, BASE) or not pip(folder, TORCH):
        return
    pip(folder, DGL)
    if pip(folder, PYG):
        print("compiling torch-scatter and torch-sparse, one file at a time: 15 minutes and more ...", file=sys.stderr)
        all(pip(folder, [package], "--no-build-isolation", seconds=COMPILE_SECONDS) for package in COMPILED)


def why_missing(folder, peer):
    """None if the peer's modules load, else the last line of what Python says."""
    run = subprocess.run([str(python_of(folder)), "-c", f"import {MODULES[peer]}"], text=True, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, env=dict(os.environ, DGLBACKEND="pytorch"))
    return (run.stderr.strip().splitlines() or ["it does not load"])[-1] if run.returncode else None


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    folder = pathlib.Path(sys.argv[1])
    if not python_of(folder).exists():
        make(folder)
    missing = {peer: why_missing(folder, peer) for peer in MODULES}
    for peer, reason in missing.items():
        print(f"{peer}: {reason or 'installed'}")
    sys.exit(all(missing.values()))


if __name__ == "__main__":
    main()
