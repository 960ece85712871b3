#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GCN that train has saved, in PyTorch: computes its logits with sparse products and compares them with those of predict.

    train --data DIR --model gcn --save gcn.safetensors
    predict --model gcn.safetensors --data DIR --out logits.npy
    pytorch_gcn.py gcn.safetensors DIR logits.npy

With --numpy the same is computed by NumPy, where PyTorch is not installed. Exit code 1 if a logit is off by more than --tolerance."""
import argparse
import json
import os
import sys

import numpy as np

DTYPES = {"F32": np.dtype("<f4"), "F64": np.dtype("<f8"), "I64": np.dtype("<i8")}


def read_safetensors(path):
    """The tensors by name, and the metadata. Format: 8 bytes with the length of a JSON header, the header, the values."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        values = f.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        tensors[name] = np.frombuffer(values[begin:end], DTYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return tensors, metadata


def load_model(path):
    """As above, by the safetensors package where that is installed."""
    try:
        from safetensors import safe_open
    except ImportError:
        return read_safetensors(path)
    with safe_open(path, framework="np") as f:
        return {name: f.get_tensor(name) for name in f.keys()}, f.metadata()


class Sparse:
    """A sparse matrix: values at (rows, cols)."""

    def __init__(self, rows, cols, values, shape):
        self.rows, self.cols, self.values, self.shape = rows, cols, values.astype(np.float64), tuple(int(n) for n in shape)

    def row_sums(self):
        return np.bincount(self.rows, self.values, self.shape[0])


def features_of(folder):
    """X (n x f), each row divided by its sum unless that is 0."""
    if os.path.exists(os.path.join(folder, "features_csr.npz")):
        csr = np.load(os.path.join(folder, "features_csr.npz"))
        rows = np.repeat(np.arange(len(csr["indptr"]) - 1), np.diff(csr["indptr"]))
        return Sparse(rows, csr["indices"], csr["data"], csr["shape"])
    x = np.load(os.path.join(folder, "features.npy"))
    rows, cols = np.indices(x.shape)
    return Sparse(rows.ravel(), cols.ravel(), x.ravel(), x.shape)


def divided_by_row_sums(x):
    sums = x.row_sums()
    sums[sums == 0] = 1
    return Sparse(x.rows, x.cols, x.values / sums[x.rows], x.shape)


def normalized_graph(folder, n, loops_once):
    """S = D^-1/2 (A + I) D^-1/2 (n x n), A(v, u) the weight of the edge from u to v, D the row sums of A + I. With loops_once,
    I has no entry for vertices that have loops."""
    edges = np.load(os.path.join(folder, "edges.npy"))
    path = os.path.join(folder, "edge_weight.npy")
    weights = np.load(path) if os.path.exists(path) else np.ones(len(edges))
    loops = np.setdiff1d(np.arange(n), edges[edges[:, 0] == edges[:, 1], 0]) if loops_once else np.arange(n)
    a = Sparse(np.concatenate([edges[:, 1], loops]), np.concatenate([edges[:, 0], loops]), np.concatenate([weights, np.ones(len(loops))]), (n, n))
    sums = a.row_sums()
    scale = np.where(sums > 0, 1 / np.sqrt(np.where(sums > 0, sums, 1)), 0)
    return Sparse(a.rows, a.cols, a.values * scale[a.rows] * scale[a.cols], a.shape)


class InNumpy:
    name = "NumPy " + np.__version__

    @staticmethod
    def sparse(a):
        return a

    @staticmethod
    def dense(x):
        return x.astype(np.float64)

    @staticmethod
    def product(a, x):
        if not isinstance(a, Sparse):
            return a @ x
        y = np.zeros((a.shape[0], x.shape[1]))
        np.add.at(y, a.rows, a.values[:, None] * x[a.cols])
        return y

    @staticmethod
    def relu(x):
        return np.maximum(x, 0)

    @staticmethod
    def values(x):
        return x


class InTorch:
    def __init__(self):
        try:
            import torch
        except ImportError:
            sys.exit("pytorch_gcn.py needs PyTorch; with --numpy it computes without")
        self.torch, self.name = torch, "PyTorch " + torch.__version__

    def sparse(self, a):
        places = self.torch.from_numpy(np.stack([a.rows, a.cols]).astype(np.int64))
        return self.torch.sparse_coo_tensor(places, self.torch.from_numpy(a.values), a.shape, check_invariants=True).coalesce()

    def dense(self, x):
        return self.torch.from_numpy(x.astype(np.float64))

    def product(self, a, x):
        return self.torch.sparse.mm(a, x) if a.is_sparse else a @ x

    def relu(self, x):
        return self.torch.relu(x)

    def values(self, x):
        return x.numpy()


def logits_of(tensors, metadata, folder, by):
    """H_0 = X; H_(l+1) = S H_l W_l + b_l, with relu in between."""
    learned = int(metadata["embedding"]) > 0
    x = tensors["embedding"] if learned else features_of(folder)
    s = by.sparse(normalized_graph(folder, x.shape[0], metadata.get("self_loops") == "once"))
    if not learned and metadata["raw_features"] == "false":
        x = divided_by_row_sums(x)
    h = by.dense(x) if learned else by.sparse(x)
    layers = sum(name.startswith("W") for name in tensors)
    for layer in range(layers):
        weight, bias = by.dense(tensors[f"W{layer}"]), by.dense(tensors[f"b{layer}"])
        h = by.product(s, by.product(h, weight)) + bias
        if layer + 1 < layers:
            h = by.relu(h)
    return by.values(h)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("model", help="written by train --model gcn --save")
    options.add_argument("data", help="the data directory")
    options.add_argument("logits", help="written by predict --out or train --save-logits")
    options.add_argument("--numpy", action="store_true", help="compute with NumPy")
    options.add_argument("--tolerance", type=float, default=1e-6, help="allowed difference (default 1e-6)")
    given = options.parse_args()
    tensors, metadata = load_model(given.model)
    if metadata["model"] != "gcn" or metadata["coupling"] != "coupled":
        sys.exit(f"{given.model} holds a {metadata['coupling']} {metadata['model']}, not a coupled gcn")
    expected = np.load(given.logits)
    by = InNumpy() if given.numpy else InTorch()
    found = logits_of(tensors, metadata, given.data, by)
    if found.shape != expected.shape:
        sys.exit(f"{by.name}: logits of {found.shape}, those of {given.logits} are {expected.shape}")
    difference = np.abs(found - expected).max()
    print(f"{by.name}: the logits of {found.shape[0]} vertices, {found.shape[1]} classes, differ by {difference:.1e}")
    sys.exit(0 if difference <= given.tolerance else 1)


if __name__ == "__main__":
    main()
