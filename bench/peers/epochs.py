# SPDX-License-Identifier: Apache-2.0
"""Epochs of partita's `train` and of PyTorch Geometric on the same data directories and cores, by turns, full batch, f32; run.py runs this.

Two layers, hidden width 64, Adam, no weight decay, with and without dropout of the input of each layer, features as they are, dense, and for partita also sparse where a data
directory has them so; GAT and GATv2 have eight heads of width 8, and one in the last layer. GINE and GATv2 read eight features of each
edge, R-GCN one of eight types. The time is that of a training step: forward, loss,
backward and Adam."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
LAYERS, HIDDEN, HEADS, EPOCHS = 2, 64, 8, 20
WITHOUT_FIRST = 3  # epochs whose median is not the first one, in which memory is touched; PyG's first is not timed either
MODELS = ("gcn", "sage", "gat")
WITH_EDGES = ("gine", "gatv2", "rgcn")
EDGE_FEATURES, EDGE_TYPES = 8, 8


def rmat(folder, scale, with_edges=False):
    """The data directory of an R-MAT graph in the folder, made on the first run; `with_edges`: with features and types of edges."""
    data = folder / f"rmat_{scale}{'_edges' if with_edges else ''}"
    if not data.exists():
        of_edges = ["--edge-features", str(EDGE_FEATURES), "--edge-types", str(EDGE_TYPES)] if with_edges else []
        subprocess.run([str(environment.python_of(folder)), str(HERE / "make_rmat.py"), str(data), "--scale", str(scale), "--undirected", *of_edges],
                       check=True, stdout=sys.stderr)
    return data


def dense(folder, data):
    """The same data without features_csr.npz, which PyG would not read."""
    copy = folder / "data" / data.name
    if not copy.exists():
        copy.mkdir(parents=True)
        for name in ("edges", "features", "labels", "split"):
            shutil.copy(data / f"{name}.npy", copy)
    return copy


def reason(run):
    if run.returncode < 0:
        return f"was killed by {signal.Signals(-run.returncode).name}, as for want of memory"
    return (run.stderr.strip().splitlines() or ["it said nothing"])[-1]


def run_pyg(folder, data, model, dropout, threads, seconds):
    command = [str(environment.python_of(folder)), str(HERE / "pyg_epochs.py"), "--data", str(data), "--model", model]
    command += ["--threads", str(threads), "--hidden", str(HIDDEN), "--layers", str(LAYERS), "--epochs", str(EPOCHS)]
    run = subprocess.run([*command, "--seconds", str(seconds), "--dropout", str(dropout)], text=True, capture_output=True,
                         env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
    return json.loads(run.stdout) if run.returncode == 0 else {"error": reason(run)}


def run_train(train, data, model, dropout, ranks, threads, epochs):
    hidden = ["--heads", str(HEADS), "--hidden", str(HIDDEN // HEADS)] if model in ("gat", "gatv2") else ["--hidden", str(HIDDEN)]
    with tempfile.TemporaryDirectory() as scratch:
        found = pathlib.Path(scratch, "run.json")
        run = subprocess.run([str(train), "--data", str(data), "--model", model, *hidden, "--layers", str(LAYERS), "--epochs", str(epochs),
                              "--ranks", str(ranks), "--threads", str(threads), "--dropout", str(dropout), "--weight-decay", "0", "--lr", "0.01",
                              "--raw-features", "--quiet", "--json", str(found)], text=True, capture_output=True)
        if run.returncode:
            return {"error": reason(run)}
        result = json.loads(found.read_text())
    return {"seconds_per_epoch": result["seconds_per_epoch"], "policy": result["policy"], "last_loss": result["loss"][-1]}


def compare(folder, train, data, with_sparse_features, model, dropout, options):
    """{way: the results of its turns}; a way is partita's ranks x threads, with the features as PyG has them or sparse, or PyG."""
    kinds = {"": data, ", sparse features": with_sparse_features}
    ways = {f"{ranks} x {threads}{kind}": (lambda epochs, ranks=ranks, threads=threads, of=of: run_train(train, of, model, dropout, ranks, threads, epochs))
            for kind, of in kinds.items() if of for ranks, threads in {(1, options.threads): None, (options.threads, 1): None}}
    turns = {way: [] for way in ["PyG", *ways]}
    for _ in range(options.epoch_rounds):
        turns["PyG"].append(run_pyg(folder, data, model, dropout, options.threads, options.epoch_seconds))
        for way, run in ways.items():
            turns[way].append(run(max(WITHOUT_FIRST, turns["PyG"][-1].get("epochs", EPOCHS))))
    return turns
