# SPDX-License-Identifier: Apache-2.0
"""The square matrices of spmm.py, as files of scipy.sparse.save_npz: rmat_S, uniform_S, grid_S and cora."""
import sys

import numpy
import scipy.sparse

sys.dont_write_bytecode = True
import make_rmat  # noqa: E402

EDGES_PER_VERTEX = 16


def rmat_edges(scale):
    """Of 2^scale vertices, the Graph500 parameters."""
    return make_rmat.make_edges(scale, EDGES_PER_VERTEX, seed=1)


def uniform_edges(scale):
    """As many, with both ends uniform in 2^scale vertices."""
    return numpy.random.default_rng(1).integers(1 << scale, size=(EDGES_PER_VERTEX << scale, 2))


def grid_edges(scale):
    """2^scale x 2^scale points, each with itself and its right and lower neighbour."""
    point = numpy.arange(1 << 2 * scale).reshape(1 << scale, 1 << scale)
    pairs = (point, point), (point[:, :-1], point[:, 1:]), (point[:-1], point[1:])
    return numpy.concatenate([numpy.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])


def symmetric(edges, vertices):
    """Both directions of each edge, once, with random values in [0, 1)."""
    both = numpy.concatenate([edges, edges[:, ::-1]])
    keys = numpy.unique(both[:, 0] * vertices + both[:, 1])
    offsets = numpy.zeros(vertices + 1, dtype=numpy.int32)
    numpy.cumsum(numpy.bincount(keys // vertices, minlength=vertices), out=offsets[1:])
    values = numpy.random.default_rng(2).random(len(keys), dtype=numpy.float32)
    return scipy.sparse.csr_matrix((values, (keys % vertices).astype(numpy.int32), offsets), shape=(vertices, vertices))


def make(name, cora):
    kind, _, scale = name.partition("_")
    if kind == "cora":
        return symmetric(numpy.load(cora / "edges.npy"), len(numpy.load(cora / "labels.npy")))
    edges = {"rmat": rmat_edges, "uniform": uniform_edges, "grid": grid_edges}[kind](int(scale))
    return symmetric(edges, 1 << int(scale) * (2 if kind == "grid" else 1))


def made(name, options):
    """The file of a matrix in the cache; None if it needs data that is not there."""
    file = options.cache / f"{name}.npz"
    if file.exists():
        return file
    if name == "cora" and options.cora is None:
        print("spmm: no cora, PARTITA_DATA does not name its folder", file=sys.stderr)
        return None
    part = file.with_suffix(".part.npz")
    scipy.sparse.save_npz(part, make(name, options.cora), compressed=False)
    part.rename(file)
    return file
