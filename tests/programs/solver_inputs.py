# SPDX-License-Identifier: Apache-2.0
"""Matrices and files for solvers.py, and the arithmetic to check results with, in plain Python."""
import math
import random
import struct

from program_case import numbers


def ints(values):
    return numbers("<i8", values)


def columns_of(path):
    """The columns of a matrix of doubles in a .npy file; a vector is one column."""
    with open(path, "rb") as f:
        content = f.read()
    length = struct.unpack("<H", content[8:10])[0]
    shape = eval(content[10:10 + length])["shape"]
    values = struct.unpack(f"<{math.prod(shape)}d", content[10 + length:])
    width = shape[1] if len(shape) > 1 else 1
    return [list(values[j::width]) for j in range(width)]


def times(entries, x, rows):
    """A x, for A as a dictionary of (row, column)."""
    y = [0.0] * rows
    for (i, j), value in entries.items():
        y[i] += value * x[j]
    return y


def norm(x):
    return math.sqrt(sum(v * v for v in x))


def minus(x, y):
    return [a - b for a, b in zip(x, y)]


def dot(x, y):
    return sum(a * b for a, b in zip(x, y))


def sums(pairs):
    total = {}
    for at, value in pairs:
        total[at] = total.get(at, 0.0) + value
    return total


class Graph:
    """A directed graph whose ids have gaps, with vertices that have no out-edges, a repeated edge, loops, and a vertex with nothing but a loop."""

    def __init__(self):
        choose = random.Random(5)
        ids = [7 * v + 3 * (v % 5) for v in range(60)]
        edges = [(u, choose.choice(ids[:59])) for u in ids[:50] for _ in range(choose.randrange(1, 6))]
        edges += [(u, v) for u, v in zip(ids[:58], ids[1:59]) if u != ids[30] and u < ids[50]] + [edges[4]] * 2 + [(ids[7], ids[7]), (ids[59], ids[59])]
        edges += [(ids[3], v) for v in ids[50:59]]
        self.text = "# source target\n" + "".join(f"{u}\t{v}\n" for u, v in edges)
        self.ids = sorted({v for e in edges for v in e})
        self.n = len(self.ids)
        at = {id: v for v, id in enumerate(self.ids)}
        self.directed = sums(((at[u], at[v]), 1.0) for u, v in edges)
        self.undirected = {p: 1.0 for u, v in edges for p in ((at[u], at[v]), (at[v], at[u])) if u != v}


def grid(rows, cols):
    """The 5-point Laplacian of a grid, positive definite."""
    entries = {}
    for i in range(rows * cols):
        entries[i, i] = 4.0
        for j in ([i + 1] if (i + 1) % cols else []) + ([i + cols] if i + cols < rows * cols else []):
            entries[i, j] = entries[j, i] = -1.0
    return entries


def market(entries, n):
    lower = [f"{i + 1} {j + 1} {value}\n" for (i, j), value in entries.items() if i >= j]
    return f"%%MatrixMarket matrix coordinate real symmetric\n% a grid\n{n} {n} {len(lower)}\n" + "".join(lower)
