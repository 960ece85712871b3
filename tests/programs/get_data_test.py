# SPDX-License-Identifier: Apache-2.0
"""Compares the data directories cora and citeseer in two folders: edges as a set, features, labels and split.

usage: get_data_test.py MADE EXPECTED
"""

import pathlib
import sys

import numpy as np


def dense_features(path):
    with np.load(path) as archive:
        rows, cols = archive["shape"]
        features = np.zeros((rows, cols), np.float32)
        row = np.repeat(np.arange(rows), np.diff(archive["indptr"]))
        np.add.at(features, (row, archive["indices"]), archive["data"])
    return features


def check_same(what, made, expected):
    assert made.dtype == expected.dtype, f"{what}: {made.dtype} values, expected {expected.dtype}"
    assert made.shape == expected.shape, f"{what}: shape {made.shape}, expected {expected.shape}"
    assert np.array_equal(made, expected), f"{what}: {np.count_nonzero(made != expected)} values differ"


def check_edges(what, made, expected):
    pairs = [set(map(tuple, edges.tolist())) for edges in (made, expected)]
    assert len(pairs[0]) == len(made), f"{what}: an edge occurs twice"
    assert made.dtype == expected.dtype, f"{what}: {made.dtype} values, expected {expected.dtype}"
    assert pairs[0] == pairs[1], f"{what}: {len(pairs[0] ^ pairs[1])} edges differ"


def main(made, expected):
    for graph in ("cora", "citeseer"):
        for file in ("labels.npy", "split.npy"):
            check_same(made / graph / file, np.load(made / graph / file), np.load(expected / graph / file))
        check_edges(made / graph / "edges.npy", *(np.load(side / graph / "edges.npy") for side in (made, expected)))
        file = "features_csr.npz"
        check_same(made / graph / file, *(dense_features(side / graph / file) for side in (made, expected)))
        print(f"{made / graph}: the same as {expected / graph}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
