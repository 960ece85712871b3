#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/solvers: results under every policy against SciPy where it is found, and against their
equations in any case; exit codes and one-sentence errors.

usage: solvers.py FOLDER_OF_PROGRAMS [MPI_LAUNCH MPIRUN]"""
import gzip
import json
import math
import os
import random
import resource
import struct
import subprocess
import sys
import unittest
import zipfile

sys.dont_write_bytecode = True
from program_case import ProgramCase, npy, numbers, run as run_program
from solver_inputs import Graph, columns_of, dot, grid, ints, market, minus, norm, sums, times

try:
    import numpy
    import scipy.sparse
    import scipy.sparse.csgraph
    import scipy.sparse.linalg
except ImportError:
    scipy = None

FOLDER = sys.argv[1]
LAUNCH = sys.argv[2:4]
ARRANGEMENTS = [["--policy", policy, "--ranks", "6"] for policy in ("row_1d", "replicated_1_5d", "grid_2d", "split_3d", "feature_column", "feature_row")]
ARRANGEMENTS += [["--ranks", ranks] for ranks in ("1", "3", "4")] + [["--policy", "split_3d", "--ranks", "8", "--mesh", "2x2x2"]]
HAS_LAPACK = os.path.exists(os.path.join(FOLDER, "svds"))


def run(name, *arguments, command=()):
    return run_program(os.path.join(FOLDER, name), *arguments, command=command)


def in_scipy(entries, shape):
    places = list(entries)
    return scipy.sparse.csr_matrix(([entries[p] for p in places], ([i for i, j in places], [j for i, j in places])), shape=shape)


class Solvers(ProgramCase):
    def setUp(self):
        super().setUp()
        self.graph = Graph()
        self.edges = self.file("g.txt", self.graph.text)
        self.side = (9, 7)
        self.grid = grid(*self.side)
        self.market = self.file("grid.mtx", market(self.grid, 63))

    def file(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(content.encode() if isinstance(content, str) else content)
        return path

    def solve(self, name, matrix, *arguments, command=()):
        """The JSON and the columns of the .npy that the program writes."""
        out, log = os.path.join(self.folder, "out.npy"), os.path.join(self.folder, "out.json")
        done = run(name, "--matrix", matrix, "--out", out, "--json", log, *arguments, command=command)
        self.assertEqual((done.returncode, done.stderr if not command else ""), (0, ""), done.stderr)
        with open(log) as f:
            return json.load(f), columns_of(out)

    def everywhere(self, check, name, matrix, *arguments):
        """check(result, columns) under every arrangement."""
        for arrangement in ARRANGEMENTS:
            with self.subTest(program=name, matrix=os.path.basename(matrix), arrangement=arrangement):
                check(*self.solve(name, matrix, *arguments, *arrangement))
        if LAUNCH:
            with self.subTest(program=name, comm="mpi"):
                check(*self.solve(name, matrix, *arguments, "--comm", "mpi", command=[*LAUNCH, "3"]))

    def near(self, x, y, bound, what=""):
        self.assertEqual(len(x), len(y))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(x, y)), bound, what)

    def orthonormal(self, columns, bound=1e-12):
        for i, x in enumerate(columns):
            for j, y in enumerate(columns[: i + 1]):
                self.assertLess(abs(dot(x, y) - (i == j)), bound)

    def test_pagerank(self):
        g = self.graph
        out_degree = times(g.directed, [1.0] * g.n, g.n)
        self.assertIn(0.0, out_degree)

        def step(x):
            lost = sum(v for v, d in zip(x, out_degree) if d == 0)
            y = [(0.15 + 0.85 * lost) / g.n] * g.n
            for (u, v), weight in g.directed.items():
                y[v] += 0.85 * x[u] / out_degree[u] * weight
            return y

        if scipy:
            a = in_scipy(g.directed, (g.n, g.n)).toarray()
            for u in range(g.n):
                a[u] = a[u] / a[u].sum() if a[u].any() else 1 / g.n
            expected = scipy.linalg.solve(numpy.eye(g.n) - 0.85 * a.T, numpy.full(g.n, 0.15 / g.n))
        def check(result, columns):
            [x] = columns
            self.assertLess(sum(map(abs, minus(step(x), x))), 1e-12)
            self.assertAlmostEqual(sum(x), 1, delta=1e-13)
            order = sorted(range(g.n), key=lambda v: -x[v])
            self.near(result["top_values"], [x[v] for v in order[:10]], 0)
            self.assertEqual(result["top"][0], g.ids[order[0]])
            if scipy:
                self.near(x, list(expected), 1e-10)

        self.everywhere(check, "pagerank", self.edges)
        _, [x] = self.solve("pagerank", self.edges)
        _, [again] = self.solve("pagerank", self.file("g.txt.gz", gzip.compress(g.text.encode())))
        self.near(again, x, 1e-14)
        weighted = "%%MatrixMarket matrix coordinate integer general\n3 3 3\n1 2 3\n1 3 1\n2 1 2\n"
        result, [x] = self.solve("pagerank", self.file("w.mtx", weighted), "--ranks", "2")
        self.near(x[1:2], [0.05 + 0.85 * (x[2] / 3 + 0.75 * x[0])], 1e-12)
        self.assertEqual(sorted(result["top"]), [1, 2, 3])

    def system(self, matrix):
        """A of block_cg, and its rows."""
        if matrix == self.market:
            return self.grid, 63
        g = self.graph
        degree = times(g.undirected, [1.0] * g.n, g.n)
        return {**{p: -1.0 for p in g.undirected}, **{(v, v): 1 + degree[v] for v in range(g.n)}}, g.n

    @unittest.skipIf(not HAS_LAPACK, "this build has no LAPACKE; the configure step says so")
    def test_block_cg(self):
        for matrix, k in ((self.market, 1), (self.market, 5), (self.edges, 4)):
            a, n = self.system(matrix)
            b = [[math.cos(i * (j + 1)) for i in range(n)] for j in range(k)]
            if scipy:
                direct = scipy.sparse.linalg.splu(in_scipy(a, (n, n)).tocsc()).solve(numpy.array(b).T).T
                steps = []
                if k == 1:
                    scipy.sparse.linalg.cg(in_scipy(a, (n, n)), numpy.array(b[0]), atol=0, callback=steps.append, **{RELATIVE: 1e-10})

            def check(result, x):
                self.assertEqual(len(x), k)
                for xj, bj in zip(x, b):
                    self.assertLess(norm(minus(bj, times(a, xj, n))) / norm(bj), 1.1e-10)
                if scipy:
                    for xj, expected in zip(x, direct):
                        self.near(xj, list(expected), 1e-8)
                    if k == 1:
                        self.assertLessEqual(abs(result["iterations"] - len(steps)), 1)
                self.assertLess(result["residual"], 1.1e-10)

            self.everywhere(check, "block_cg", matrix, "--k", str(k))
        # As many columns as rows: the first block of directions is the whole space.
        small = self.file("small.mtx", market(grid(2, 3), 6))
        self.assertLessEqual(self.solve("block_cg", small, "--k", "6", "--ranks", "4")[0]["iterations"], 2)

    @unittest.skipIf(not HAS_LAPACK, "this build has no LAPACKE; the configure step says so")
    def test_eigs(self):
        of_grid = {p: -value for p, value in self.grid.items() if p[0] != p[1]}
        for matrix, weights, n in ((self.edges, self.graph.undirected, self.graph.n), (self.market, of_grid, 63)):
            degree = times(weights, [1.0] * n, n)
            laplacian = {(i, j): -w / math.sqrt(degree[i] * degree[j]) for (i, j), w in weights.items()}
            laplacian.update({(v, v): 1.0 for v in range(n) if degree[v] > 0})
            if scipy:
                of_scipy = scipy.sparse.csgraph.laplacian(in_scipy(weights, (n, n)), normed=True)
                expected = numpy.linalg.eigvalsh(of_scipy.toarray())[:7]
                self.near(list(numpy.sort(scipy.sparse.linalg.eigsh(of_scipy, 7, which="SA", return_eigenvectors=False))), list(expected), 1e-8)

            def check(result, x):
                values = result["eigenvalues"]
                self.assertEqual(values, sorted(values))
                self.near(values[:1], [0.0], 1e-8)
                self.orthonormal(x)
                for value, xj in zip(values, x):
                    self.assertLess(norm(minus(times(laplacian, xj, n), [value * v for v in xj])), 1.1e-9)
                if scipy:
                    self.near(values, list(expected), 1e-8)

            self.everywhere(check, "eigs", matrix, "--k", "7")

    def test_label_propagation(self):
        g = self.graph
        degree = times(g.undirected, [1.0] * g.n, g.n)
        labels = [v % 3 if v % 9 < 3 else -1 for v in range(g.n)]
        path = self.file("labels.npy", ints(labels))
        seeds = {c * g.n // 4: c for c in range(4)}
        for options, known in ((["--labels", path], labels), (["--k", "4"], [seeds.get(v, -1) for v in range(g.n)])):
            classes = max(known) + 1
            free = [v for v in range(g.n) if known[v] < 0 and degree[v] > 0]
            if scipy:
                a = in_scipy(g.undirected, (g.n, g.n)).tocsr()
                y = numpy.array([[float(label == c) for c in range(classes)] for label in known])
                fixed = [v for v in range(g.n) if known[v] >= 0]
                block = scipy.sparse.diags([degree[v] for v in free]) - a[free][:, free]
                y[free] = scipy.sparse.linalg.spsolve(block.tocsc(), a[free][:, fixed] @ y[fixed]).reshape(len(free), classes)

            def check(result, x):
                self.assertEqual((result["classes"], len(x)), (classes, classes))
                self.assertEqual(sum(result["sizes"]) + result["unreached"], g.n)
                for c, xc in enumerate(x):
                    means = [s / d if d else 0.0 for s, d in zip(times(g.undirected, xc, g.n), degree)]
                    self.near([xc[v] for v in free], [means[v] for v in free], 1e-12)
                    self.near([xc[v] for v in range(g.n) if known[v] >= 0], [float(label == c) for label in known if label >= 0], 0)
                    if scipy:
                        self.near(xc, list(y[:, c]), 1e-10)
                self.assertEqual(result["unreached"], sum(known[v] < 0 and degree[v] == 0 for v in range(g.n)))

            self.everywhere(check, "label_propagation", self.edges, *options)

    def rectangle(self):
        choose = random.Random(3)
        return sums(((choose.randrange(40), choose.randrange(23)), choose.uniform(-1, 1)) for _ in range(200))

    def npz(self, entries, rows, cols):
        """As scipy.sparse.save_npz writes it."""
        places = sorted(entries)
        begins = [sum(i < r for i, j in places) for r in range(rows + 1)]
        path = os.path.join(self.folder, "r.npz")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            for name, content in (("indices", ints([j for i, j in places])), ("indptr", ints(begins)), ("shape", ints([rows, cols])),
                                  ("format", npy("|S3", (), b"csr")), ("data", npy("<f8", (len(places),), struct.pack(f"<{len(places)}d", *(entries[p] for p in places))))):
                z.writestr(name + ".npy", content)
        return path

    @unittest.skipIf(not HAS_LAPACK, "this build has no LAPACKE; the configure step says so")
    def test_svds(self):
        a = self.rectangle()
        a_transposed = {(j, i): value for (i, j), value in a.items()}
        if scipy:
            expected = numpy.linalg.svd(in_scipy(a, (40, 23)).toarray(), compute_uv=False)[:5]
            self.near(list(numpy.sort(scipy.sparse.linalg.svds(in_scipy(a, (40, 23)), 5, return_singular_vectors=False))[::-1]), list(expected), 1e-8)

        def check(result, x):
            values = result["singular_values"]
            u, v = [xj[:40] for xj in x], [xj[40:] for xj in x]
            self.orthonormal(u)
            self.orthonormal(v)
            for value, uj, vj in zip(values, u, v):
                self.assertLess(norm(minus(times(a, vj, 40), [value * c for c in uj])), 1e-5)
                self.assertLess(norm(minus(times(a_transposed, uj, 23), [value * c for c in vj])), 1e-5)
            if scipy:
                self.near(values, list(expected), 1e-8)

        path = self.npz(a, 40, 23)
        self.everywhere(check, "svds", path, "--k", "5")
        values = self.solve("svds", path, "--k", "5")[0]["singular_values"]
        wide, _ = self.solve("svds", self.npz(a_transposed, 23, 40), "--k", "5", "--ranks", "4")
        self.near(wide["singular_values"], values, 1e-10)
        if scipy:
            for form in ("csc", "coo"):
                path = os.path.join(self.folder, form + ".npz")
                scipy.sparse.save_npz(path, in_scipy(a, (40, 23)).asformat(form), compressed=form == "csc")
                self.near(self.solve("svds", path, "--k", "5", "--ranks", "3")[0]["singular_values"], values, 1e-12)
        # A matrix of rank 2
        low = {(i, j): float((i + 1) * (j + 2) + (i == 3) * (j == 4)) for i in range(9) for j in range(12)}
        result, x = self.solve("svds", self.npz(low, 9, 12), "--k", "4", "--ranks", "6")
        self.near(result["singular_values"][2:], [0, 0], 1e-12)
        self.orthonormal([xj[:9] for xj in x])

    def refused(self, code, part, name, *arguments, command=()):
        for more in ((), ("--ranks", "4")) if not command and "--ranks" not in arguments else ((),):
            done = run(name, *arguments, *more, command=command)
            self.check_refused(done, code, part, 29 if command else 1)
            self.assertEqual(sum(part in line for line in done.stderr.splitlines()), 1, done.stderr)

    def test_the_programs_are_short(self):
        sources = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "solvers")
        for name in ("pagerank", "block_cg", "eigs", "label_propagation", "svds"):
            with open(os.path.join(sources, name + ".cpp")) as f:
                self.assertLessEqual(len(f.readlines()), 120, name)

    def test_wrong_command_lines(self):
        good = ["pagerank", "--matrix", self.edges]
        self.refused(2, "--matrix is required", "pagerank")
        self.refused(2, "--policy: auto is not one of row_1d, ", *good, "--policy", "auto")
        self.refused(2, "mesh 3x2x1 has 6 places for 4 ranks", *good, "--ranks", "4", "--mesh", "3x2x1")
        self.refused(2, "ROWxCOLxDEPTH", *good, "--ranks", "4", "--mesh", "2by2")
        self.refused(2, "--comm: nccl is not one of threads, mpi", *good, "--comm", "nccl")
        self.refused(2, "--tolerance: 0 is not a positive number", *good, "--tolerance", "0")
        self.refused(2, "there is no option --k; pagerank --help lists every option", *good, "--k", "3")
        self.refused(2, "--k: 0 is not a positive whole number", "label_propagation", "--matrix", self.edges, "--k", "0")
        self.refused(1, "cannot write", *good, "--json", "/no/such/folder/x.json")
        if LAUNCH:
            mpi = {"command": [*LAUNCH, "2"]}
            self.refused(2, "there is no option --k", *good, "--comm", "mpi", "--k", "3", **mpi)
            self.refused(1, "cannot write", *good, "--comm", "mpi", "--out", "/no/such/folder/x.npy", **mpi)
        done = run("label_propagation", "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--matrix FILE", "--policy NAME", "--mesh RxCxD", "--out FILE.npy", "--labels FILE.npy", "taken as undirected", "(default 1e-12)"):
            self.assertIn(option, " ".join(done.stdout.split()))

    def test_malformed_files(self):
        def bad(part, name, content, program="pagerank"):
            self.refused(1, part, program, "--matrix", self.file(name, content))

        head = "%%MatrixMarket matrix coordinate real general\n"
        bad('b.txt:2: expected two vertex ids, found "1 x"', "b.txt", "0 1\n1 x\n")
        bad('b.txt.gz:1: expected two vertex ids, found "0"', "b.txt.gz", gzip.compress(b"0\n"))
        bad("b.txt.gz: cannot be unpacked", "b.txt.gz", gzip.compress(self.graph.text.encode())[:-20])
        packed = self.file("b.txt.gz", gzip.compress(self.graph.text.encode()))
        self.refused(1, "b.txt.gz: has more than 10 bytes, the limit of what is unpacked", "pagerank", "--matrix", packed, "--unpack-limit", "10")
        bad("b.txt: has no edges", "b.txt", "# none\n")
        bad("b.mtx:1: expected %%MatrixMarket matrix", "b.mtx", "3 3 1\n")
        bad('b.mtx:1: a matrix that is "dense" is not read, only coordinate, array', "b.mtx", "%%MatrixMarket matrix dense real general\n")
        bad('that is "complex" is not read', "b.mtx", "%%MatrixMarket matrix coordinate complex general\n")
        bad("b.mtx:3: expected the rows, columns and entries", "b.mtx", head + "%\n2 2\n")
        bad('b.mtx:3: expected a row, a column and a value, found "1 2"', "b.mtx", head + "2 2 1\n1 2\n")
        bad("b.mtx:4: entry (3, 1) is outside a matrix of 2 x 2", "b.mtx", head + "2 2 2\n1 2 1\n3 1 1\n")
        bad("b.mtx:4: expected 2 entries, found 1", "b.mtx", head + "2 2 2\n1 2 1\n")
        bad("b.mtx:4: expected no more than 1 entries", "b.mtx", head + "2 2 1\n1 2 1\n2 1 1\n")
        bad("b.mtx: the value at (1, 2) is not a finite number", "b.mtx", head + "2 2 1\n1 2 nan\n")
        bad("b.mtx:2: a symmetric matrix cannot be 2 x 3", "b.mtx", head.replace("general", "symmetric") + "2 3 1\n")
        bad("b.mtx:3: a skew-symmetric matrix has no entries on its diagonal", "b.mtx", head.replace("general", "skew-symmetric") + "2 2 1\n1 1 1\n")
        bad("b.npz: is not a zip archive", "b.npz", "nothing")
        bad("the matrix is 2 x 3, not square", "b.mtx", head + "2 3 1\n1 2 1\n")
        bad("the weight of 1 -> 2 is negative", "b.mtx", head + "2 2 1\n1 2 -1\n")
        bad("not symmetric: (1, 2) and (2, 1) differ", "b.mtx", head + "2 2 1\n1 2 1\n", "label_propagation")
        skew = head.replace("general", "skew-symmetric") + "2 2 1\n2 1 1\n"
        bad("not symmetric: (1, 2) and (2, 1) differ", "b.mtx", skew, "label_propagation")
        self.refused(1, "nowhere.mtx: no such file", "pagerank", "--matrix", "nowhere.mtx")
        if LAUNCH:
            self.refused(1, "nowhere.mtx: no such file", "pagerank", "--matrix", "nowhere.mtx", "--comm", "mpi", command=[*LAUNCH, "2"])
            self.refused(2, "--ranks 3, but the MPI job has 2", "pagerank", "--matrix", self.edges, "--comm", "mpi", "--ranks", "3", command=[*LAUNCH, "2"])
        labels = ["label_propagation", "--matrix", self.edges, "--labels"]
        self.refused(1, "few.npy: expected a vector of 60 labels", *labels, self.file("few.npy", ints([0, 1])))
        self.refused(1, "a label is neither -1 nor between 0 and 59", *labels, self.file("l.npy", ints([-2] * 60)))
        self.refused(1, "every label is unknown", *labels, self.file("l.npy", ints([-1] * 60)))
        self.refused(1, "--k 61 is more than the 60 vertices", "label_propagation", "--matrix", self.edges, "--k", "61")

    def programs(self):
        return ["pagerank", "label_propagation", *["eigs", "svds", "block_cg"] * HAS_LAPACK]

    def test_more_rows_than_memory_has_room_for(self):
        most = "ulimit -v 2000000"  # KiB, which the sentence names
        for rows in (10**9, 2**62, 2**63 - 8):
            market = self.file("rows.mtx", f"%%MatrixMarket matrix coordinate real symmetric\n{rows} {rows} 1\n1 1 1\n")
            packed = os.path.join(self.folder, "rows.npz")
            with zipfile.ZipFile(packed, "w") as z:
                for name, content in (("row", ints([0])), ("col", ints([0])), ("shape", ints([rows, rows])), ("format", npy("|S3", (), b"coo")), ("data", numbers("<f8", [1.0]))):
                    z.writestr(name + ".npy", content)
            for program in self.programs():
                for path in (market, packed):
                    done = run(program, "--matrix", path, command=["sh", "-c", most + '; exec "$@"', "sh"])
                    self.check_refused(done, 1, f"{path}: the matrix is {rows} x {rows}, whose vectors do not fit into the ")
                    self.assertRegex(done.stderr, r" \d+ MiB of memory that are free$")

    def test_files_that_are_none(self):
        pipe = os.path.join(self.folder, "pipe.mtx")
        os.mkfifo(pipe)
        for program in self.programs():
            self.refused(1, "pipe.mtx: is not a regular file", program, "--matrix", pipe)
            for option in ("--out", "--json"):
                self.refused(1, "pipe.mtx: is not a regular file", program, "--matrix", self.market, option, pipe)
            with open("/dev/full", "w") as full:
                done = subprocess.run([os.path.join(FOLDER, program), "--matrix", self.edges], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (1, f"{program}: cannot write to standard output (No space left on device)\n"))

    def test_a_full_disk_leaves_what_was_there(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
        for program in self.programs():
            for option in ("--out", "--json"):
                old = self.file("old", "old")
                done = run_program(os.path.join(FOLDER, program), "--matrix", self.edges, option, old, preexec_fn=limit)
                self.check_refused(done, 1, f"{program}: {old}: cannot be written (File too large)")
                with open(old) as f:
                    self.assertEqual(f.read(), "old")
            self.assertFalse([name for name in os.listdir(self.folder) if name.startswith(".partita")])

    def test_work_that_cannot_be_done(self):
        left = os.path.join(self.folder, "left.npy")
        self.refused(1, "no convergence", "pagerank", "--matrix", self.edges, "--iterations", "3", "--out", left)
        self.assertFalse(os.path.exists(left))
        self.refused(1, "no convergence to 1e-12 in 3 iterations: the residual is ", "pagerank", "--matrix", self.edges, "--iterations", "3")
        huge = self.file("huge.mtx", market({(i, j): 1e308 for i in range(3) for j in range(3) if i != j}, 3))
        tiny = self.file("tiny.mtx", market({(i, j): 1e-320 for i in range(3) for j in range(3) if abs(i - j) == 1}, 3))
        for program in ["pagerank", "label_propagation", *["eigs"] * HAS_LAPACK]:
            options = ["--k", "1"] * (program != "pagerank")
            self.refused(1, "huge.mtx: the weights at vertex 1 add up to inf", program, "--matrix", huge, *options)
            self.refused(1, "tiny.mtx: the weights at vertex 1 add up to 1e-320", program, "--matrix", tiny, *options)
        if HAS_LAPACK:
            for program in ("svds", "block_cg"):
                self.refused(1, "", program, "--matrix", huge, "--k", "1")
            negative = self.file("n.mtx", market({p: -value for p, value in self.grid.items()}, 63))
            self.refused(1, "n.mtx: the matrix is not positive definite", "block_cg", "--matrix", negative)
            lopsided = self.file("l.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
            self.refused(1, "l.mtx: the matrix is not symmetric: (1, 2) and (2, 1) differ", "block_cg", "--matrix", lopsided)
            self.refused(1, "no convergence to 1e-09 in 1 iterations", "eigs", "--matrix", self.market, "--iterations", "1", "--k", "5")
            self.refused(1, "--k 24 is more than the 23 singular values", "svds", "--matrix", self.npz(self.rectangle(), 40, 23), "--k", "24")
            if LAUNCH:
                self.refused(1, "no convergence", "svds", "--matrix", self.edges, "--iterations", "1", "--comm", "mpi", command=[*LAUNCH, "2"])


# scipy.sparse.linalg.cg calls its tolerance rtol since 1.12.
RELATIVE = scipy and ("rtol" if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 12) else "tol")

if __name__ == "__main__":
    print("against SciPy " + scipy.__version__ if scipy else "without SciPy", file=sys.stderr)
    unittest.main(argv=sys.argv[:1], verbosity=2)
