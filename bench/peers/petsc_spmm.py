#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times PETSc's MatMatMult, MPIAIJ by dense, f64, under mpirun: petsc_spmm.py MATRIX.npz F...; spmm.py runs this.

libpetsc_real is the installed one, or that of the folder in PARTITA_PETSC. PETSc keeps dense matrices by columns. The result matrix is made
once; a time is the median of calls that write it again, from barrier to barrier. One line of JSON on stdout; exit code 1 with one line
where libpetsc_real is missing."""
import ctypes
import ctypes.util
import glob
import json
import os
import statistics
import sys
import time

import numpy
import scipy.sparse

PRODUCTS = 2e7  # of a rank, in all calls that are timed for one f
INITIAL, REUSE = 0, 1
DEFAULT_FILL = ctypes.c_double(-2)


def load(name, **how):
    unpacked = glob.glob(f"{os.environ['PARTITA_PETSC']}/lib{name}.so*") if "PARTITA_PETSC" in os.environ else []
    try:
        return ctypes.CDLL(unpacked[0] if unpacked else ctypes.util.find_library(name) or f"lib{name}.so", **how)
    except OSError as e:
        sys.exit(f"petsc_spmm: {e}")


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Petsc:
    def __init__(self):
        self.mpi = load("mpi", mode=ctypes.RTLD_GLOBAL)
        self.library = load("petsc_real")
        self.checked("PetscInitializeNoArguments")
        self.world = ctypes.c_void_p.in_dll(self.library, "PETSC_COMM_WORLD")
        self.rank, self.ranks = (self.of_world(name) for name in ("MPI_Comm_rank", "MPI_Comm_size"))

    def of_world(self, name):
        number = ctypes.c_int()
        getattr(self.mpi, name)(self.world, ctypes.byref(number))
        return number.value

    def version(self):
        parts = [ctypes.c_int() for _ in range(4)]
        self.checked("PetscGetVersionNumber", *map(ctypes.byref, parts))
        return ".".join(str(part.value) for part in parts[:3])

    def checked(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            sys.exit(f"petsc_spmm: {name}: error {code}")

    def made(self, name, *arguments):
        matrix = ctypes.c_void_p()
        self.checked(name, *arguments, ctypes.byref(matrix))
        return matrix

    def seconds_of(self, call):
        self.mpi.MPI_Barrier(self.world)
        begin = time.perf_counter()
        call()
        self.mpi.MPI_Barrier(self.world)
        return time.perf_counter() - begin


def first_column(petsc, matrix, rows):
    data = ctypes.POINTER(ctypes.c_double)()
    petsc.checked("MatDenseGetArrayRead", matrix, ctypes.byref(data))
    column = numpy.ctypeslib.as_array(data, (rows,)).copy()
    petsc.checked("MatDenseRestoreArrayRead", matrix, ctypes.byref(data))
    return column


def measure(petsc, a, mine, f):
    """Median seconds of y = a x; `mine` are the rows of this rank. Column j of x (n, f) is the first one times 1 + j."""
    rows, n = a.shape
    first = numpy.random.default_rng(3).random(n)
    x_mine = numpy.outer(numpy.arange(1.0, 1 + f), first[mine])  # (f, rows)
    left = petsc.made("MatCreateMPIAIJWithArrays", petsc.world, rows, rows, n, n, pointer(a.indptr), pointer(a.indices), pointer(a.data))
    x = petsc.made("MatCreateDense", petsc.world, rows, -1, n, f, pointer(x_mine))
    y = petsc.made("MatMatMult", left, x, INITIAL, DEFAULT_FILL)

    def multiply():
        petsc.checked("MatMatMult", left, x, REUSE, DEFAULT_FILL, ctypes.byref(y))

    seconds = [petsc.seconds_of(multiply) for _ in range(1 + int(min(20, PRODUCTS / (a.nnz * f + 1))))]
    if not numpy.allclose(first_column(petsc, y, rows), a @ first):
        sys.exit(f"petsc_spmm: wrong result, f = {f}")
    for matrix in (y, x, left):
        petsc.checked("MatDestroy", ctypes.byref(matrix))
    return statistics.median(seconds)


def main():
    petsc = Petsc()
    a = scipy.sparse.load_npz(sys.argv[1]).astype(numpy.float64)
    mine = slice(a.shape[0] * petsc.rank // petsc.ranks, a.shape[0] * (petsc.rank + 1) // petsc.ranks)
    part = a[mine]
    seconds = {f: measure(petsc, part, mine, int(f)) for f in sys.argv[2:]}
    if petsc.rank == 0:
        print(json.dumps({"version": petsc.version(), "seconds": seconds}), flush=True)
    petsc.checked("PetscFinalize")


if __name__ == "__main__":
    main()
