#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python adds to a product Y = A X (n x f): python_overhead.py [N [F [DEGREE [PAIRS]]]]

In turn, products that write to a given Y and that make a new one, on one rank: the seconds of each call in Python, and those that
spmm_plan took in it, by the clock in C++. The plan that writes to a new Y is the first to touch its pages, as in C++."""
import statistics
import sys
import time

import numpy as np
import partita.sparse

n, f, degree, pairs = [int(word) for word in sys.argv[1:]] + [10**6, 64, 8, 30][len(sys.argv) - 1:]
rng = np.random.default_rng(0)
offsets = np.arange(0, n * degree + 1, degree, dtype=np.int32)
columns = np.sort(rng.integers(0, n, (n, degree), dtype=np.int32), axis=1).ravel()
a = partita.sparse.csr_array((np.ones(n * degree, np.float32), columns, offsets), shape=(n, n))
x, y = rng.random((n, f), np.float32), np.empty((n, f), np.float32)
a @ x
on_ranks, in_plan = a._on_ranks(np.dtype(np.float32)), []


class Timed:
    """The matrix on the ranks, whose products leave their seconds in in_plan."""

    is_usable = True

    def multiply(self, *given):
        in_plan.append(on_ranks.multiply(*given))


a._handles[np.dtype(np.float32)] = Timed()


def seconds_of(call):
    begin = time.perf_counter()
    kept = call()
    seconds = time.perf_counter() - begin
    del kept  # C++ would free it, too
    return seconds


def report(name, walls, plans):
    quotients = sorted(wall / plan for wall, plan in zip(walls, plans))
    print(f"{name}: {1e3 * statistics.median(walls):.3f} ms, in the plan {1e3 * statistics.median(plans):.3f} ms, "
          f"quotient {statistics.median(quotients):.4f} ({quotients[pairs // 4]:.4f} to {quotients[3 * pairs // 4]:.4f})")


times = [(seconds_of(lambda: partita.spmm(a, x, out=y)), seconds_of(lambda: a @ x)) for _ in range(pairs + 2)][2:]
print(f"Y = A X, {n} x {f}, {degree} entries a row, {pairs} times in turn")
report("Y given", [given for given, _ in times], in_plan[4::2])
report("a new Y", [new for _, new in times], in_plan[5::2])
