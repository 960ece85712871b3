#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times partita, MKL, PyTorch, SciPy, PETSc and PyTorch Geometric in one run, on the same graphs and cores, and prints Markdown.

Local SpMM (spmm.py), with what the machine can do at best, and epochs of full-batch training (epochs.py). The peers are those of
requirements.txt, installed on the first run into a virtual environment outside this tree (7 GB in all, most of it CUDA libraries that
PyTorch's wheel asks for and nothing here calls), and Debian's PETSc, unpacked there. What cannot be installed is named and left out. Ten
minutes, `--quick` two, without what is made on the first run. `scripts/bench peers` builds what it needs and calls it."""
import argparse
import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
import environment  # noqa: E402
import epochs  # noqa: E402
import petsc_packages  # noqa: E402
import report  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "requirements.txt"
QUICK = {"matrices": "rmat_17,cora", "widths": "32,128", "rounds": 2, "seconds": 30, "scales": "17", "dropouts": "0", "epoch_rounds": 1, "epoch_seconds": 3}
FULL = {"matrices": "rmat_17,rmat_19,uniform_17,grid_9,cora", "widths": "16,32,64,128,256", "rounds": 3, "seconds": 160, "scales": "17",
        "dropouts": "0,0.5", "epoch_rounds": 3, "epoch_seconds": 4}


def default_folder():
    """Another one for other requirements."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return cache / "partita" / f"peers-{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:8]}"


def make(folder):
    print(f"installing the peers into {folder} ...", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    for line in REQUIREMENTS.read_text().splitlines():
        if not line.startswith("#") and not environment.pip(folder, [line], "-c", str(REQUIREMENTS)):
            print(f"{line} did not install, see {folder}/install.log", file=sys.stderr)


def run_spmm(options, data):
    found = options.environment / "spmm.json"
    petsc = petsc_packages.unpacked(options.environment / "petsc")
    variables = dict(os.environ, OMP_NUM_THREADS=str(options.threads), MKL_NUM_THREADS=str(options.threads), MKL_DYNAMIC="FALSE")
    if petsc:
        variables.update(PARTITA_PETSC=str(petsc), LD_LIBRARY_PATH=f"{petsc}:{os.environ.get('LD_LIBRARY_PATH', '')}")
    libraries = [options.build / "bench" / f"spmm_{kind}.so" for kind in ("native", "portable")]
    command = [str(environment.python_of(options.environment)), str(HERE / "spmm.py"), "--libraries", *map(str, libraries)]
    command += ["--matrices", options.matrices, "--widths", options.widths, "--threads", str(options.threads)]
    command += ["--rounds", str(options.rounds), "--seconds", str(options.seconds), "--cache", str(options.environment)]
    command += ["--cora", str(data / "cora")] if data else []
    if subprocess.run([*command, str(found)], env=variables, stdout=sys.stderr).returncode:
        return None
    return json.loads(found.read_text())


def run_epochs(options, data):
    """{(graph, model): the turns}."""
    train = options.build / "examples" / "train"
    scales = [int(scale) for scale in options.scales.split(",") if scale]
    graphs = [(epochs.rmat(options.environment, scale), None, epochs.MODELS) for scale in scales]
    graphs += [(epochs.rmat(options.environment, scale, with_edges=True), None, epochs.WITH_EDGES) for scale in scales]
    if data:
        graphs.append((epochs.dense(options.environment, data / "cora"), data / "cora", epochs.MODELS))
    found = {}
    for graph, with_sparse_features, models in graphs:
        for model, dropout in itertools.product(models, options.dropouts.split(",") if models == epochs.MODELS else ["0"]):
            name = model if float(dropout) == 0 else f"{model}, dropout {dropout}"
            print(f"epochs of {name} on {graph.name} ...", file=sys.stderr)
            found[graph.name, name] = epochs.compare(options.environment, train, graph, with_sparse_features, model, dropout, options)
    return found


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two matrices, two widths, fewer rounds")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build" / "release", metavar="DIR", help="default: %(default)s")
    parser.add_argument("--environment", type=pathlib.Path, default=default_folder(), metavar="FOLDER", help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=2)
    for name, value in FULL.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), help=f"default: {value}; quick: {QUICK[name]}")
    options = parser.parse_args()
    for name, value in (QUICK if options.quick else FULL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    available = sorted(os.sched_getaffinity(0))
    if len(available) < options.threads:
        parser.error(f"there are {len(available)} cores, not {options.threads}")
    os.sched_setaffinity(0, available[:options.threads])
    return options


def main():
    options = arguments()
    data = pathlib.Path(os.environ["PARTITA_DATA"]) if os.environ.get("PARTITA_DATA") else None
    if not environment.python_of(options.environment).exists():
        make(options.environment)
    load = os.getloadavg()[0]
    spmm = run_spmm(options, data) if options.matrices else {}
    trained = run_epochs(options, data)
    report.print_head(options, load)
    if spmm:
        report.print_spmm(spmm)
    report.print_epochs(trained)
    sys.exit(spmm is None)


if __name__ == "__main__":
    main()
