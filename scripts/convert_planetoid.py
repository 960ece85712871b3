# SPDX-License-Identifier: Apache-2.0
"""Converts the Planetoid files of one graph (Yang, Cohen, Salakhutdinov, ICML 2016) into a data directory.

RAW holds ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}; OUT/NAME receives edges.npy, features_csr.npz, labels.npy and
split.npy: both directions of every edge, no self-loops, no duplicates; the public split; test vertices that the files
leave out (CiteSeer has 15) get no features and the label -1, as in Kipf and Welling's code.
"""

import argparse
import collections
import pathlib
import pickle
import sys

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("raw", metavar="RAW", type=pathlib.Path)
parser.add_argument("name", metavar="NAME")
parser.add_argument("out", metavar="OUT", type=pathlib.Path)
asked = parser.parse_args()

try:
    import numpy as np
except ImportError:
    sys.exit("convert_planetoid.py needs numpy: install it with 'python3 -m pip install numpy'")


class CsrState:
    """Stands in for scipy.sparse.csr_matrix: unpickling gives it data, indices, indptr and _shape."""


ALLOWED = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): np.zeros(0).__reduce__()[0],
    ("scipy.sparse.csr", "csr_matrix"): CsrState,
    ("collections", "defaultdict"): collections.defaultdict,
    ("__builtin__", "list"): list,
}


class RestrictedUnpickler(pickle.Unpickler):
    """Unpickles the classes that Planetoid's files name and refuses all others, so no file can run code."""

    def find_class(self, module, name):
        try:
            return ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not allowed here") from None


def load(path):
    with open(path, "rb") as stream:
        try:
            return RestrictedUnpickler(stream, encoding="latin1").load()
        except (pickle.UnpicklingError, EOFError) as error:
            sys.exit(f"{path}: cannot be unpickled: {error}")


def sparse_rows(matrix):
    """The columns and values of each row of a CSR matrix, columns ascending."""
    rows = []
    for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:]):
        order = np.argsort(matrix.indices[begin:end], kind="stable")
        rows.append((matrix.indices[begin:end][order], matrix.data[begin:end][order]))
    return rows


def features_and_labels(raw, name, test):
    """Rows of all vertices: first those of allx, then the test vertices at the places that test.index gives them."""
    rows = sparse_rows(load(raw / f"ind.{name}.allx"))
    one_hot = load(raw / f"ind.{name}.ally")
    labels = list(np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1))
    empty = (np.zeros(0, np.int32), np.zeros(0, np.float32))
    missing = int(test.max()) + 1 - len(rows)
    rows += [empty] * missing
    labels += [-1] * missing
    test_hot = load(raw / f"ind.{name}.ty")
    for vertex, row, hot in zip(test, sparse_rows(load(raw / f"ind.{name}.tx")), test_hot):
        rows[vertex] = row
        labels[vertex] = hot.argmax() if hot.any() else -1
    return rows, np.array(labels, np.int64)


def directed_edges(graph):
    """Both directions of every edge once, sorted, without self-loops."""
    pairs = {(u, v) for u, neighbours in graph.items() for v in neighbours if u != v}
    pairs |= {(v, u) for u, v in pairs}
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def save_csr(path, rows, width):
    """As scipy.sparse.save_npz writes a CSR matrix."""
    np.savez_compressed(
        path,
        format=np.array(b"csr"),
        shape=np.array([len(rows), width], np.int64),
        indptr=np.cumsum([0] + [len(columns) for columns, _ in rows]).astype(np.int64),
        indices=np.concatenate([columns for columns, _ in rows]).astype(np.int32),
        data=np.concatenate([values for _, values in rows]).astype(np.float32),
    )


def convert(raw, name, out):
    test = np.loadtxt(raw / f"ind.{name}.test.index", dtype=np.int64)
    rows, labels = features_and_labels(raw, name, test)
    width = load(raw / f"ind.{name}.allx")._shape[1]
    edges = directed_edges(load(raw / f"ind.{name}.graph"))
    split = np.zeros(len(rows), np.uint8)
    train = len(load(raw / f"ind.{name}.y"))
    split[:train] = 1
    split[train : train + 500] = 2
    split[test] = 3

    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "edges.npy", edges)
    save_csr(out / "features_csr.npz", rows, width)
    np.save(out / "labels.npy", labels)
    np.save(out / "split.npy", split)
    print(f"{out}: {len(rows)} vertices, {len(edges)} edges, {width} features, {labels.max() + 1} classes")


if __name__ == "__main__":
    convert(asked.raw, asked.name, asked.out / asked.name)
