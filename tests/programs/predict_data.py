# SPDX-License-Identifier: Apache-2.0
"""What the tests of saved models share: a graph, and .npy files with its numbers."""
import array
import ast
import struct

from program_case import npy as npy_file

N, FEATURES, CLASSES = 23, 5, 3


def npy(code, shape, values):
    descr = {"q": "<i8", "f": "<f4", "d": "<f8", "B": "|u1"}[code]
    return npy_file(descr, shape, array.array(code, values).tobytes())


def read_npy(path):
    """The shape and the values."""
    with open(path, "rb") as f:
        content = f.read()
    begin = 10 + struct.unpack("<H", content[8:10])[0]
    header = ast.literal_eval(content[10:begin].decode())
    return header["shape"], list(array.array({"<f4": "f", "<f8": "d"}[header["descr"]], content[begin:]))


def number(*places):
    """One of 997, by the places."""
    found = 17
    for p in places:
        found = (found * 131 + p * 7 + 3) % 997
    return found


def data(features=FEATURES, classes=CLASSES, n=N):
    """A directed graph with weights and loops, and a few edges that are there twice."""
    edges = [(u, v) for u in range(n) for v in range(n) if number(u, v) % 7 == 0]
    edges += edges[:3]
    return {"edges.npy": npy("q", (len(edges), 2), [v for e in edges for v in e]),
            "edge_weight.npy": npy("d", (len(edges),), [0.5 + number(*e, 1) / 997 for e in edges]),
            "features.npy": npy("f", (n, features), [number(v, j, 2) / 997 for v in range(n) for j in range(features)]),
            "labels.npy": npy("q", (n,), [number(v, 3) % classes if v >= classes else v for v in range(n)]),
            "split.npy": npy("B", (n,), [1 + v % 3 for v in range(n)])}
