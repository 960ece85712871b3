#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times local SpMM of partita, MKL, PyTorch, SciPy and PETSc by turns, and what the machine can do at best; run.py runs this.

y = a x on the same arrays and the same cores, in this process; PETSc, which divides its work among MPI ranks, in processes of its own
between the rounds (petsc_spmm.py). In a round each peer has a turn: 0.02 s of calls, at least one, of which the median counts, after a call
to warm up and a pause in which the threads of the peer before it fall asleep; one that has taken 5 s
has no more turns. Writes the turns as JSON."""
import argparse
import ctypes
import functools
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import warnings

import numpy
import scipy.sparse

sys.dont_write_bytecode = True
import spmm_matrices  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
TURN, PAUSE = 0.02, 0.01
COPY_BYTES = 1 << 28
AHEAD = (0, 16, 32)
WIDTHS = [16, 32, 64, 128, 256]
MOST = 5.0  # seconds of all turns of a peer
PETSC_SHARE = 0.15  # of the time
TOLERANCE = {"float32": 1e-4, "float64": 1e-12}


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def aligned(size, dtype):
    """Uninitialised, from a multiple of 64 bytes on."""
    dtype = numpy.dtype(dtype)
    memory = numpy.empty(size * dtype.itemsize + 64, dtype=numpy.uint8)
    begin = -memory.ctypes.data % 64
    return memory[begin:begin + size * dtype.itemsize].view(dtype)


class Problem:
    """a, and room for x and y of the widest f in one type."""

    def __init__(self, a, widest, dtype):
        self.a = scipy.sparse.csr_matrix((a.data.astype(dtype), a.indices, a.indptr), shape=a.shape)
        self.x_room = aligned(a.shape[0] * widest, dtype)
        self.y_room = aligned(a.shape[0] * widest, dtype)
        self.x_room[:] = numpy.random.default_rng(3).random(self.x_room.size, dtype=dtype)
        self.y_room[:] = 0

    def operands(self, f):
        shape = (self.a.shape[0], f)
        size = shape[0] * f
        return self.x_room[:size].reshape(shape), self.y_room[:size].reshape(shape)

    def right(self, f, y):
        """Every 97th row."""
        x, _ = self.operands(f)
        expected = self.a[::97] @ x
        return numpy.allclose(y[::97], expected, rtol=TOLERANCE[self.a.dtype.name], atol=TOLERANCE[self.a.dtype.name] * expected.max())


class Partita:
    """The kernel in a library made of spmm_library.cpp."""

    def __init__(self, library, threads):
        self.library = ctypes.CDLL(str(library))
        self.library.build.restype = ctypes.c_char_p
        self.version = self.library.build().decode()
        self.threads = threads

    def product(self, problem, f):
        a, (x, y) = problem.a, problem.operands(f)
        function = self.library.spmm_f32 if a.dtype == numpy.float32 else self.library.spmm_f64
        arguments = (self.threads, a.shape[0], pointer(a.indptr), pointer(a.indices), pointer(a.data), f, pointer(x), pointer(y))
        return lambda: function(*arguments) and None or y

    def gather(self, problem, f, ahead):
        """The reads of rows of x alone."""
        x, _ = problem.operands(f)
        arguments = (self.threads, ctypes.c_int64(problem.a.nnz), pointer(problem.a.indices), f, pointer(x), ahead)
        return lambda: self.library.gather(*arguments)

    def copy_seconds(self):
        source, target = numpy.ones(COPY_BYTES, numpy.uint8), numpy.ones(COPY_BYTES, numpy.uint8)
        return min(seconds_of(lambda: self.library.copy(self.threads, ctypes.c_int64(COPY_BYTES), pointer(source), pointer(target)))
                   for _ in range(3))


class Mkl:
    """The inspector-executor of MKL's sparse BLAS, f32, with the hint of f and optimised for it."""

    LAYERS = {"intel": 0, "gnu": 3}

    class Description(ctypes.Structure):
        """struct matrix_descr of a general matrix."""
        _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diagonal", ctypes.c_int)]

    GENERAL = Description(20, 0, 0)
    NOT_TRANSPOSED, ROW_MAJOR, CALLS = 10, 101, 1000

    def __init__(self, layer, threads):
        folder = pathlib.Path(sys.prefix, "lib")
        if layer == "intel":
            ctypes.CDLL(str(folder / "libiomp5.so"))
        self.library = ctypes.CDLL(str(next(folder.glob("libmkl_rt.so*"))))
        self.library.MKL_Set_Interface_Layer(0)  # 32-bit indices
        self.library.MKL_Set_Threading_Layer(self.LAYERS[layer])
        self.library.MKL_Set_Num_Threads(threads)
        text = ctypes.create_string_buffer(200)
        self.library.MKL_Get_Version_String(text, len(text))
        self.version = f"{text.value.decode().strip()}, {layer} threads"

    def checked(self, name, *arguments):
        code = getattr(self.library, f"mkl_sparse_{name}")(*arguments)
        if code:
            raise RuntimeError(f"mkl_sparse_{name}: status {code}")

    def product(self, problem, f):
        a, (x, y) = problem.a, problem.operands(f)
        handle = ctypes.c_void_p()
        rows = a.shape[0]
        offsets = a.indptr.ctypes.data
        self.checked("s_create_csr", ctypes.byref(handle), 0, rows, rows, ctypes.c_void_p(offsets),
                     ctypes.c_void_p(offsets + a.indptr.itemsize), pointer(a.indices), pointer(a.data))
        self.checked("set_mm_hint", handle, self.NOT_TRANSPOSED, self.GENERAL, self.ROW_MAJOR, f, self.CALLS)
        self.checked("optimize", handle)
        arguments = (self.NOT_TRANSPOSED, ctypes.c_float(1), handle, self.GENERAL, self.ROW_MAJOR, pointer(x), f, f, ctypes.c_float(0),
                     pointer(y), f)

        def multiply():
            self.checked("s_mm", *arguments)
            return y
        return multiply


class Torch:
    """Products of CSR tensors with 32-bit indices: mm, which calls the MKL in PyTorch, and PyTorch's own kernel, which PyG calls."""

    def __init__(self, threads):
        import torch
        warnings.filterwarnings("ignore", message=".*[Ss]parse.*")
        torch.set_num_threads(threads)
        self.torch = torch
        self.version = f"PyTorch {torch.__version__}"

    def product(self, problem, f, reduce=False):
        torch = self.torch
        a = torch.sparse_csr_tensor(*map(torch.from_numpy, (problem.a.indptr, problem.a.indices, problem.a.data)), problem.a.shape)
        x = torch.from_numpy(problem.operands(f)[0])
        with torch.no_grad():
            return (lambda: torch.sparse.mm(a, x, "sum")) if reduce else (lambda: torch.mm(a, x))


def contenders(options):
    """{name: (type, what makes a call from a problem and f)}, {name: version}, {name: why it is missing}."""
    native, portable = (Partita(library, options.threads) for library in options.libraries)
    alone = Partita(options.libraries[0], 1)
    calls = {
        "partita": ("float32", native.product),
        "partita, portable": ("float32", portable.product),
        "partita, 1 thread": ("float32", alone.product),
        "partita, f64": ("float64", native.product),
        **{f"gather, {ahead} ahead": ("float32", functools.partial(native.gather, ahead=ahead)) for ahead in AHEAD},
        "SciPy": ("float32", lambda problem, f: lambda: problem.a @ problem.operands(f)[0]),
    }
    versions = {"partita": native.version, "partita, portable": portable.version, "SciPy": f"SciPy {scipy.__version__}"}
    missing = {}
    try:
        mkl = Mkl(options.mkl_threads, options.threads)
        calls["MKL"] = ("float32", mkl.product)
        versions["MKL"] = mkl.version
    except (OSError, StopIteration) as e:
        missing["MKL"] = str(e) or "there is no libmkl_rt"
    try:
        torch = Torch(options.threads)
        calls["PyTorch, mm"] = ("float32", torch.product)
        calls["PyTorch, reduce"] = ("float32", functools.partial(torch.product, reduce=True))
        versions["PyTorch"] = torch.version
    except (ImportError, OSError) as e:
        missing["PyTorch"] = str(e)
    return native, calls, versions, missing


def seconds_of(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def turn(call):
    time.sleep(PAUSE)
    seconds = [seconds_of(call)]
    if seconds[0] < TURN:
        seconds = []
        while sum(seconds) < TURN:
            seconds.append(seconds_of(call))
    return statistics.median(seconds)


def run_petsc(matrix, options):
    """What petsc_spmm.py says, or {"error": a sentence}."""
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(options.threads), sys.executable, str(HERE / "petsc_spmm.py")]
    with_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    environment = dict(os.environ, OMP_NUM_THREADS="1", OMPI_MCA_mpi_yield_when_idle="1", **with_root)
    try:
        run = subprocess.run([*command, str(matrix), *map(str, options.widths)], text=True, capture_output=True, env=environment)
    except FileNotFoundError as e:
        return {"error": str(e)}
    if run.returncode:
        lines = run.stderr.strip().splitlines()
        return {"error": next((line for line in lines if line.startswith("petsc_spmm:")), f"exit code {run.returncode}")}
    return json.loads(run.stdout.strip().splitlines()[-1])


def compare(matrix, calls, petsc, options, seconds):
    """{f: {name: seconds of every turn}} on one matrix, within about so many seconds, but in at least `--rounds` rounds."""
    a = scipy.sparse.load_npz(matrix)
    problems = {dtype: Problem(a, max(options.widths), dtype) for dtype in {dtype for dtype, _ in calls.values()}}
    results = {f: {name: [] for name in calls} for f in options.widths}
    made = {f: {name: make(problems[dtype], f) for name, (dtype, make) in calls.items()} for f in options.widths}
    for f, (name, call) in ((f, item) for f in options.widths for item in made[f].items()):
        y = call()
        if not name.startswith("gather") and not problems[calls[name][0]].right(f, numpy.asarray(y)):
            sys.exit(f"spmm: {name} is wrong on {matrix.stem}, f = {f}")
    begin, petsc_seconds = time.monotonic(), 0
    for round_ in itertools.count():
        spent = time.monotonic() - begin
        if round_ >= options.rounds and spent > seconds:
            return {"rows": a.shape[0], "entries": a.nnz, "rounds": round_, "widths": results}
        for f in options.widths:
            for name, call in made[f].items() if round_ % 2 == 0 else reversed(made[f].items()):
                if len(results[f][name]) < 2 or sum(results[f][name]) < MOST:
                    results[f][name].append(turn(call))
        if petsc and petsc_seconds <= PETSC_SHARE * seconds:
            before = time.monotonic()
            for f, median in run_petsc(matrix, options)["seconds"].items():
                results[int(f)].setdefault("PETSc", []).append(median)
            petsc_seconds += time.monotonic() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs=2, type=pathlib.Path, required=True, help="for this machine, and for any")
    parser.add_argument("--matrices", default="rmat_17,rmat_19,uniform_17,grid_9,cora")
    parser.add_argument("--widths", type=lambda text: [int(f) for f in text.split(",")], default=WIDTHS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=250)
    parser.add_argument("--mkl-threads", choices=Mkl.LAYERS, default="gnu", help="default: %(default)s, which PyTorch uses too")
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="keeps the matrices")
    parser.add_argument("--cora", type=pathlib.Path, help="a data directory")
    parser.add_argument("json", type=pathlib.Path)
    options = parser.parse_args()
    if not set(options.widths) <= set(WIDTHS):
        parser.error(f"widths are some of {WIDTHS}")
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])
    machine, calls, versions, missing = contenders(options)
    matrices = [spmm_matrices.made(name, options) for name in options.matrices.split(",")]
    matrices = [matrix for matrix in matrices if matrix]
    petsc = run_petsc(matrices[0], options)
    (missing if "error" in petsc else versions)["PETSc"] = petsc.get("error") or f"PETSc {petsc['version']}"
    copies, found = [], {}
    for i, matrix in enumerate(matrices):
        copies.append(machine.copy_seconds())
        print(f"{matrix.stem} ...", file=sys.stderr, flush=True)
        found[matrix.stem] = compare(matrix, calls, "error" not in petsc, options, options.seconds / len(matrices))
    copies.append(machine.copy_seconds())
    options.json.write_text(json.dumps({"threads": options.threads, "versions": versions, "missing": missing,
                                        "copy_bytes_per_second": 2 * COPY_BYTES / statistics.median(copies), "matrices": found}))


if __name__ == "__main__":
    main()
