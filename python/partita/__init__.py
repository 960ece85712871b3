# SPDX-License-Identifier: Apache-2.0
"""Distributed sparse-dense linear algebra and training of graph neural networks.

    import partita
    fit = partita.train("cora", model="gcn", epochs=200)
    print(fit.loss[-1], fit.test_accuracy)

One rank computes unless `ranks` or `use_mpi` says otherwise. Functions are called by every process of an MPI job, in the same
order; with threads there is one process, and nothing to mind. `partita.sparse` is scipy.sparse on the ranks.
"""
from __future__ import annotations

import atexit as _atexit
import os as _os

import numpy as _np
from numpy.typing import ArrayLike

from . import _core
from ._core import (BudgetError, CommunicationError, Dataset, Error, Fit, InputError, MeshError, ShapeError,  # noqa: F401
                    __version__, rank, size, words_received)

__all__ = ["BudgetError", "CommunicationError", "Dataset", "Error", "Fit", "InputError", "MeshError", "Served", "ShapeError", "gemm",
           "graph", "load", "predict", "rank", "ranks", "serve", "size", "spmm", "train", "use_mpi", "words_received"]

_where = {"policy": "row_1d", "mesh": "", "threads": 0}
_atexit.register(_core.leave)  # before MPI ends


def ranks(number: int, *, policy: str = "row_1d", mesh: str = "", threads: int = 0) -> None:
    """From now on `number` threads of this process are the ranks, with `threads` of their own each (0: their share of the cores).

    `policy` and `mesh` ("RxCxD") are those of matrices that are made from now on; matrices of earlier ranks are distributed anew
    when they are used. Throws MeshError for a mesh that does not suit the policy.
    """
    _core.use_threads(number, _core.Place(policy, mesh, threads))
    _where.update(policy=policy, mesh=mesh, threads=threads)


def use_mpi(comm: object = None, *, policy: str = "row_1d", mesh: str = "", threads: int = 0) -> None:
    """From now on the processes of an mpi4py communicator are the ranks; without one, those of MPI.COMM_WORLD.

    Every process of it must call, and then every function in the same order, with the same arguments. What travels: see
    partita::mpi::world. Throws ImportError where this was built without MPI, CommunicationError where mpi4py loads another MPI.
    """
    from mpi4py import MPI

    from . import _mpi

    comm = comm or MPI.COMM_WORLD
    _core.use_world(_mpi.world(MPI._addressof(comm)), _core.Place(policy, mesh, threads))
    _where.update(policy=policy, mesh=mesh, threads=threads)


def _place(**given):
    return _core.Place(**{name: given[name] if given.get(name) is not None else usual for name, usual in _where.items()})


def _dense(x, dtype=None):
    """A row-major array over the memory of x, which may be a tensor of any library that has DLPack; a copy where it is none."""
    x = x if isinstance(x, _np.ndarray) or not hasattr(x, "__dlpack__") else _np.from_dlpack(x)
    x = _np.asarray(x, dtype)
    return _np.ascontiguousarray(x if x.dtype in (_np.float32, _np.float64) else x.astype(_np.float64))


def spmm(a: object, x: ArrayLike, out: _np.ndarray | None = None) -> _np.ndarray:
    """Y = A X (m x f = m x n times n x f), for a sparse A and a dense X.

    `a`: a matrix of partita.sparse, which is distributed once, or of scipy.sparse. `out`: Y, row-major, of the result's type. Every
    process must call. What travels: see spmm_plan; where ranks are processes, also Y. Throws ShapeError.
    """
    from . import sparse

    a = a if isinstance(a, sparse._OnRanks) else sparse.csr_array(a)
    return a._into(x, out)


def gemm(a: ArrayLike, b: ArrayLike, *, transpose: bool = False, out: _np.ndarray | None = None) -> _np.ndarray:
    """C = A B (m x n = m x k times k x n), or A^T B of A (k x m): each rank has rows of A.

    Arrays of NumPy, or tensors of any library that has DLPack; they are copied only if they are not row-major or have different
    types. Every process must call, with the same A and B. What travels: with `transpose`, the sum of C; where ranks are processes,
    otherwise C. Throws ShapeError.
    """
    a, b = _dense(a), _dense(b)
    dtype = _np.result_type(a, b)
    a, b = _dense(a, dtype), _dense(b, dtype)
    c = _np.empty((a.shape[1 if transpose else 0], b.shape[1]), dtype) if out is None else out
    _core.gemm(a, b, c, transpose, _place())
    return c


def load(path: str | _os.PathLike, *, task: str = "", embedding: bool = False) -> Dataset:
    """The graph in a data directory, or "karate", which is built in: for several trainings on it.

    `task`: classes, labels or values; empty: as labels are stored. `embedding`: without its features. Every process must call. Throws
    InputError, which names the file and the row.
    """
    return _core.load(_os.fspath(path), task, embedding)


def graph(edges: ArrayLike, features: ArrayLike, labels: ArrayLike, *, train: ArrayLike, validation: ArrayLike = (), test: ArrayLike = ()
          ) -> Dataset:
    """A graph from arrays, which are not copied where they have these types and are row-major.

    `edges` (E x 2, int64): source and target, undirected ones in both directions; `features` (n x f, float32 or float64); `labels` (n,
    int64), -1 for none; `train`, `validation` and `test`: masks (n), or numbers of vertices. Throws ValueError.
    """
    features = _dense(features)
    edges = _np.ascontiguousarray(edges, _np.int64)
    labels = _np.ascontiguousarray(labels, _np.int64)
    n = features.shape[0] if features.ndim == 2 else -1
    if edges.ndim != 2 or edges.shape[1] != 2 or labels.shape != (n,):
        raise ValueError(f"a graph has edges (E x 2), features (n x f), labels (n), not {edges.shape}, {features.shape}, {labels.shape}")
    if edges.size and not 0 <= edges.min() <= edges.max() < n:
        raise ValueError(f"edges are between vertices 0 and {n - 1}, not {edges.min()} and {edges.max()}")
    split = _np.zeros(n, _np.uint8)
    for number, part in enumerate((train, validation, test), 1):
        split[_np.asarray(part, bool if _np.asarray(part).dtype == bool else _np.int64)] = number
    if (labels[split > 0] < 0).any() or labels.min(initial=-1) < -1:
        raise ValueError("labels are numbers from 0, or -1 where a vertex is in no part of the split")
    return _core.graph(edges, features, split, labels, int(labels.max(initial=0)) + 1)


def _text(value):
    value = str(value).lower() if isinstance(value, bool) else value
    return ",".join(map(_text, value)) if isinstance(value, (list, tuple)) else repr(value) if isinstance(value, float) else str(value)


def train(data: str | _os.PathLike | Dataset, *, model: str = "gcn", policy: str = "auto", mesh: str = "", threads: int | None = None,
          precision: str = "f32", reproducible: bool = False, task: str = "", **options: object) -> Fit:
    """Trains a graph neural network on the ranks, as the program `train` does: with the same options, the losses have the same bits.

    `data`: a directory, "karate", or what load or graph has returned. `options`: those of `train` (docs/train-options.md) with _ for -:
    epochs=200, hidden=[64, 64], lr=0.01, dropout=0.5, batch=512, ... Ctrl-C ends it after the epoch. Every process must call. What
    travels: see partita::nn::trainer. Throws ValueError for an option, InputError for a file, Error for a loss that is not finite.
    """
    if not isinstance(data, Dataset):
        data = load(data, task=task, embedding=bool(options.get("embedding")))
    given = {name: _text(value) for name, value in dict(options, model=model).items()}
    return _core.train(data, given, _place(policy=policy, mesh=mesh, threads=threads), precision, reproducible)


def _named(data):
    data = data if isinstance(data, Dataset) else _os.fspath(data)
    return load(data) if data == "karate" else data


def predict(model_file: str | _os.PathLike, data: str | _os.PathLike | Dataset, *, policy: str | None = None, mesh: str | None = None,
            threads: int | None = None) -> _np.ndarray:
    """The logits (n x C) of a model that Fit.save, or `train --save`, has written, on a directory or a Dataset; of links, their rows.

    Every process must call. What travels: see partita::nn::predictor. Throws InputError where they do not fit.
    """
    return _core.predict(_os.fspath(model_file), _named(data), _place(policy=policy, mesh=mesh, threads=threads))


class Served:
    """A saved model that answers for vertices of a graph; `serve` makes it.

    served[v] (C) is the row of vertex v in `predict` on one rank, served[[v, w]] (m x C) the rows of several, some of which may be the
    same: bit by bit, whatever else is asked for. Local; several threads may ask at once. Throws ShapeError for a number that is no
    vertex, TypeError for what is no whole number. `keeps_rows`: whether all rows were computed at once, or each is when it is asked for.
    """

    __iter__ = None

    def __init__(self, rows: object, keeps_rows: bool) -> None:
        self._rows, self.keeps_rows = rows, keeps_rows

    def __getitem__(self, vertices: ArrayLike) -> _np.ndarray:
        which = _np.asarray(vertices)
        if which.size and which.dtype.kind not in "iu":
            raise TypeError(f"vertices are whole numbers, not {which.dtype}")
        rows = self._rows(_np.ascontiguousarray(which, _np.int64).reshape(-1))
        return rows.reshape(*which.shape, rows.shape[1])


def serve(model_file: str | _os.PathLike, data: str | _os.PathLike | Dataset, *, threads: int = 0) -> Served:
    """A model as for predict, which answers for the vertices that are asked for: serve("gcn.safetensors", "cora")[42].

    `threads`: those that work in this call (0: as many as there are cores). Local. Throws InputError where model and data do not fit.
    """
    return Served(*_core.serve(_os.fspath(model_file), _named(data), _core.Place(threads=threads)))


if _os.environ.get("PARTITA_RANKS"):
    ranks(int(_os.environ["PARTITA_RANKS"]))
_os.register_at_fork(after_in_child=_core.forget)  # threads stay with the parent
