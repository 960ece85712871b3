#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts graphs between all formats, and compares them as SciPy, NumPy and this script read them.

usage: convert.py PROGRAM [TRAIN]"""
import gzip
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile

import numpy
import scipy.io
import scipy.sparse

ENDINGS = [".mtx", ".txt", ".txt.gz", ".graph", ".npz", ".npy", ".part", ""]


def ring(n, weighted):
    """The entries of an undirected graph without loops: {(u, v): weight}."""
    return {(u, (u + s) % n): (u * ((u + s) % n) % 7 + 1 if weighted else 1) for u in range(n) for s in (1, 2, 5, n - 1, n - 2, n - 5)}


class Formats:
    def __init__(self, program, train, folder):
        self.program, self.train, self.folder = program, train, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *args):
        return subprocess.run([self.program, *args], capture_output=True, text=True, timeout=60)

    def convert(self, *args):
        ran = self.run(*args)
        assert ran.returncode == 0 and not ran.stderr, (args, ran)
        return ran.stdout

    def refused(self, code, sentence, *args):
        ran = self.run(*args)
        assert ran.returncode == code and re.fullmatch("convert: .*" + sentence + ".*\n", ran.stderr), (args, ran, sentence)

    def parts(self):
        """Parts beside the graph, and what they cut."""
        path = self.write("path.txt", "".join(f"{u} {u + 1}\n{u + 1} {u}\n" for u in (0, 2, 1, 3, 4)))
        report = (r"{0}.part.2: (\S+), 2 parts: 20.0 % of the edges are cut; in a product 2 rows travel, of which a part sends at most 1 and "
                  r"receives at most 1; the largest part has 1.00 times the mean of edges, 1.00 of vertices")
        for name in ("none", "rcm", "metis-volume", "metis-balanced"):
            out = self.path(f"path.{name}.npz")
            ran = self.run(path, out, "--partition", name, "--ranks", "2")
            if "without METIS" in ran.stderr:
                continue
            assert ran.returncode == 0 and re.search(report.format(re.escape(out)), ran.stdout)[1] == name, ran
            with open(out + ".part.2") as f:
                parts = f.read().split()
            assert parts in (["0"] * 3 + ["1"] * 3, ["1"] * 3 + ["0"] * 3), (name, parts)
        self.refused(2, "best is not one of none, random, degree", path, self.path("path.npz"), "--partition", "best")
        wide = self.write("wide.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 3 1\n")
        self.refused(1, "parts are of the vertices of a graph, and there is a matrix of 2 x 3", wide, self.path("wide.npz"), "--partition", "none")

    def check_dialects(self):
        """Options for edge lists of others, and files that are none."""
        self.refused(1, "empty.txt: has no vertices", self.write("empty.txt", "# nothing\n"), self.path("empty"))
        dated = self.write("dated.txt", "u,v,day\n1,2,2004-04-15\n2,3,2004-04-16\n7,8,2004-04-17\n")
        self.refused(1, 'the third column cannot be a weight, which is a finite number: "2004-04-15"', dated, self.path("dated.npz"))
        out = self.path("dated.mtx")
        self.convert(dated, out, "--ignore-weights", "--largest-component")
        assert scipy.io.mmread(out).toarray().tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
        assert numpy.load(self.path("dated.ids.npy")).tolist() == [1, 2, 3]
        self.refused(1, "vertex 18446744073709551615 is larger than 9223372036854775807", self.write("large.txt", "18446744073709551615 1\n"), out)
        rows = self.write("rows.mtx", "%%MatrixMarket matrix coordinate real general\n9223372036854775807 9223372036854775807 1\n1 1 1\n")
        self.refused(1, "take more than the .* of memory that are free", rows, self.path("rows.npz"))
        for shape in (2**62, 2**40):
            rows = self.path("rows_coo.npz")
            numpy.savez(rows, row=[0], col=[1], data=[1.0], shape=[shape, shape], format=b"coo")
            for ending in (".npz", ".txt", ".txt.gz", ".graph", ".npy", ".part", ""):
                self.refused(1, f"the rows of a matrix of {shape} x {shape} take more than the .* of memory that are free", rows, self.path("rows_out" + ending))
            self.refused(1, "take more than the .* of memory that are free", rows, self.path("rows_out.mtx"), "--largest-component")
            assert f"{shape} x {shape} with 1 entries" in self.convert(rows, self.path("rows_out.mtx"))
        folder = self.path("odd")
        os.mkdir(folder)
        numpy.save(folder + "/edges.npy", numpy.array([[0, 1]]))
        numpy.save(folder + "/labels.npy", numpy.array([0, 1]))
        self.refused(1, "--largest-component leaves out vertices", folder, self.path("odd_out"), "--largest-component")
        for make, sentence in ((lambda path: os.mkfifo(path), "is not a regular file"), (lambda path: open(path, "w").close(), "truncated header"), (lambda path: os.symlink("none", path), "no such file")):
            make(folder + "/split.npy")
            self.refused(1, "split.npy: " + sentence, folder, self.path("odd_out"))
            os.remove(folder + "/split.npy")
        os.symlink("none", folder + "/edge_weight.npy")
        self.refused(1, "edge_weight.npy: no such file", folder, self.path("odd_out"))

    def write(self, name, content):
        with open(self.path(name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return self.path(name)

    def blocks(self, path):
        """A .part as its documentation describes it."""
        with open(path, "rb") as f:
            raw = f.read()
        assert raw[:8] == b"\x93PARTITA"
        version, value_bytes, column_bytes, _ = struct.unpack_from("<4I", raw, 8)
        rows, _, entries, count = struct.unpack_from("<4q", raw, 24)
        assert version == 1
        found = {}
        for k in range(count):
            begin, end, size, position, _, _ = struct.unpack_from("<4q2I", raw, 56 + 40 * k)
            offsets = numpy.frombuffer(raw, "<i8", end - begin + 1, position)
            at = position + 8 * (end - begin + 1)
            columns = numpy.frombuffer(raw, f"<i{column_bytes}", size, at)
            at = (at + column_bytes * size + 7) // 8 * 8
            values = numpy.frombuffer(raw, f"<f{value_bytes}", size, at) if value_bytes else numpy.ones(size)
            for row in range(begin, end):
                for e in range(offsets[row - begin], offsets[row - begin + 1]):
                    found[row, int(columns[e])] = float(values[e])
        assert end == rows and len(found) == entries
        return found

    def read(self, path):
        """Entries of a file."""
        def of(matrix):
            matrix = scipy.sparse.coo_matrix(matrix)
            return {(int(i), int(j)): float(v) for i, j, v in zip(matrix.row, matrix.col, matrix.data)}

        def rows_of(table, weights=None):
            assert table.dtype == numpy.int64
            return {(int(u), int(v)): 1 if weights is None else float(weights[k]) for k, (u, v) in enumerate(table)}

        if path.endswith(".mtx"):
            return of(scipy.io.mmread(path))
        if path.endswith(".npz"):
            return of(scipy.sparse.load_npz(path))
        if path.endswith(".npy"):
            return rows_of(numpy.load(path))
        if path.endswith(".part"):
            return self.blocks(path)
        if os.path.isdir(path):
            weights = os.path.join(path, "edge_weight.npy")
            return rows_of(numpy.load(os.path.join(path, "edges.npy")), numpy.load(weights) if os.path.exists(weights) else None)
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
            lines = [[float(word) for word in line.split()] for line in f]
        if path.endswith(".graph"):
            step = 2 if len(lines[0]) > 2 else 1
            return {(u, int(line[k]) - 1): line[k + 1] if step == 2 else 1 for u, line in enumerate(lines[1:]) for k in range(0, len(line), step)}
        return {(int(line[0]), int(line[1])): line[2] if len(line) > 2 else 1 for line in lines}

    def all_pairs(self, weighted):
        """Through every pair of formats; .npy loses weights."""
        n, entries = 41, ring(41, weighted)
        without = {place: 1 for place in entries}
        u, v = zip(*entries)
        matrix = scipy.sparse.coo_matrix((list(entries.values()), (u, v)), (n, n))
        scipy.io.mmwrite(self.path("0.mtx"), matrix)
        for first in ENDINGS:
            a = self.path(f"a{int(weighted)}" + first)
            said = self.convert(self.path("0.mtx"), a)
            assert ("without weights" in said) == (weighted and first == ".npy"), said
            expected = without if first == ".npy" else entries
            assert self.read(a) == expected, first
            for second in ENDINGS:
                b = self.path(f"b{int(weighted)}{first.replace('.', '_')}{second}")
                self.convert(a, b, "--threads", "3")
                assert self.read(b) == (without if second == ".npy" else expected), (first, second)
        for form in ("csr", "csc", "coo"):
            for kind in ("float32", "float64", "int8", "int16", "int32", "int64", "uint16", "uint64"):
                scipy.sparse.save_npz(self.path("f.npz"), matrix.asformat(form).astype(kind))
                self.convert(self.path("f.npz"), self.path("f.mtx"))
                assert self.read(self.path("f.mtx")) == entries, (form, kind)

    def matrices(self):
        """Rectangles and any values are for matrices only."""
        a = scipy.sparse.random(23, 40, 0.2, random_state=5)
        scipy.sparse.save_npz(self.path("r.npz"), a)
        expected = self.read(self.path("r.npz"))
        self.convert(self.path("r.npz"), self.path("r.part"), "--parts", "5")
        self.convert(self.path("r.part"), self.path("r.mtx"))
        self.convert(self.path("r.mtx"), self.path("again.npz"))
        for name in ("r.part", "r.mtx", "again.npz"):
            assert self.read(self.path(name)) == expected
        assert scipy.sparse.load_npz(self.path("again.npz")).shape == (23, 40)
        for ending in (".txt", ".graph", ".npy", "", ".txt.gz"):
            self.refused(1, "cannot have a matrix of 23 x 40, only a graph", self.path("r.npz"), self.path("r" + ending))

    def ids(self):
        """Gaps in ids are kept beside the output, and used again by another edge list."""
        text = "# c\n30\t1412\n3\t30\n1412\t7\n"
        self.write("g.txt", text)
        self.convert(self.path("g.txt"), self.path("g.npz"))
        assert numpy.load(self.path("g.ids.npy")).tolist() == [3, 7, 30, 1412]
        assert self.read(self.path("g.npz")) == {(2, 3): 1, (0, 2): 1, (3, 1): 1}
        self.convert(self.path("g.txt"), self.path("gd"))
        assert numpy.load(os.path.join(self.path("gd"), "ids.npy")).tolist() == [3, 7, 30, 1412]
        self.convert(self.path("gd"), self.path("g.txt.gz"))
        assert self.read(self.path("g.txt.gz")) == self.read(self.write("h.txt", text.split("\n", 1)[1]))
        assert "without 2 vertices without edges" in self.convert(self.write("i.mtx", "%%MatrixMarket matrix coordinate pattern general\n4 4 1\n2 3\n"), self.path("i.txt"))

    def ogb(self):
        files = {"raw/num-node-list": "4\n", "raw/num-edge-list": "2\n", "raw/edge": "0,1\n2,3\n", "raw/node-feat": "0.5,1\n2,3\n4,5\n6,7\n",
                 "raw/node-label": "1\nnan\n0\n2\n", "split/time/train": "0\n", "split/time/valid": "3\n", "split/time/test": "2\n"}
        for name, text in files.items():
            os.makedirs(os.path.dirname(self.path("ogb/" + name)), exist_ok=True)
            self.write(f"ogb/{name}.csv.gz", gzip.compress(text.encode()))
        self.convert(self.path("ogb"), self.path("d"), "--undirected")
        load = lambda name: numpy.load(os.path.join(self.path("d"), name))
        assert self.read(self.path("d")) == {(0, 1): 1, (1, 0): 1, (2, 3): 1, (3, 2): 1}
        assert load("features.npy").tolist() == [[0.5, 1], [2, 3], [4, 5], [6, 7]] and load("labels.npy").tolist() == [1, -1, 0, 2]
        assert load("split.npy").tolist() == [1, 0, 3, 2]
        assert "without features, labels and split" in self.convert(self.path("d"), self.path("d.graph"))
        self.convert(self.path("d"), self.path("e"))
        assert numpy.load(os.path.join(self.path("e"), "features.npy")).tolist() == load("features.npy").tolist()

    def ogb_types(self):
        """Several types of vertices become a folder that train takes."""
        files = {"num-node-dict": "author,paper,topic\n3,4,2\n", "triplet-type-list": "paper,of,topic\nauthor,writes,paper\n", "node-feat/paper/node-feat": "0.5,1\n2,3\n4,5\n6,7\n",
                 "node-label/paper/node-label": "1\n0\n0\n1\n", "relations/author___writes___paper/edge": "0,1\n2,3\n1,0\n", "relations/author___writes___paper/num-edge-list": "3\n",
                 "relations/author___writes___paper/edge-feat": "1\n0.5\n-2\n", "relations/paper___of___topic/edge": "3,1\n", "relations/paper___of___topic/num-edge-list": "1\n"}
        splits = {"../split/time/paper/train": "0\n1\n", "../split/time/paper/valid": "3\n", "../split/time/paper/test": "2\n"}
        for name, text in (files | splits).items():
            os.makedirs(os.path.dirname(self.path("mag/raw/" + name)), exist_ok=True)
            self.write(f"mag/raw/{name}.csv.gz", gzip.compress(text.encode()))
        out = self.path("types")
        load = lambda name: numpy.load(os.path.join(out, name)).tolist()
        self.refused(1, "mag: has several types of vertices, which need a new folder, and .*mag.npz is none", self.path("mag"), self.path("mag.npz"))
        self.refused(1, "whose edges are kept as they are; train --inverse-relations", self.path("mag"), out, "--undirected")
        self.refused(1, "of its own", self.path("mag"), out, "--features", self.write("f.csv", "1\n"))
        assert "types/vertices/paper: 4 vertices, 2 features, labels and split" in self.convert(self.path("mag"), out)
        assert load("vertices/author/count.npy") == 3 and load("vertices/paper/features.npy") == [[0.5, 1], [2, 3], [4, 5], [6, 7]]
        assert load("vertices/paper/labels.npy") == [1, 0, 0, 1] and load("vertices/paper/split.npy") == [1, 1, 3, 2]
        assert load("edges/author-writes-paper.npy") == [[0, 1], [2, 3], [1, 0]] and load("edges/paper-of-topic.npy") == [[3, 1]]
        assert load("edges/author-writes-paper.features.npy") == [[1], [0.5], [-2]] and len(os.listdir(os.path.join(out, "edges"))) == 3
        self.refused(1, "types is there", self.path("mag"), out)
        self.refused(1, "types: has several types of vertices; train reads it as it is", out, self.path("short"))
        if self.train:
            ran = subprocess.run([self.train, "--data", out, "--model", "rgcn", "--inverse-relations", "--epochs", "2", "--ranks", "2"], capture_output=True, text=True, check=True, timeout=60)
            assert "vertices are 0 to 2 author, 3 to 6 paper, 7 to 8 topic; relations are 0 author-writes-paper, 1 paper-of-topic" in ran.stderr, ran

    def ogb_links(self):
        """Links that were exported from .pt become files of a folder, and follow to the next one."""
        files = {"num-node-list": "5\n", "num-edge-list": "2\n", "edge": "0,1\n1,2\n", "edge_weight": "2\n0.5\n", "edge_reltype": "1\n0\n"}
        for name, text in files.items():
            os.makedirs(self.path("collab/raw"), exist_ok=True)
            self.write(f"collab/raw/{name}.csv.gz", gzip.compress(text.encode()))
        os.makedirs(self.path("collab/split/time"))
        self.write("collab/split/time/valid.pt", "PK")
        out, again = self.path("links"), self.path("links2")
        self.refused(1, "valid.pt: is an archive of PyTorch, .* docs/links.md, .* make links_valid.npy of it", self.path("collab"), out)
        arrays = {"links_valid": [[3, 0]], "links_valid_negatives": [[3, 1], [4, 0]], "links_test": [[0, 2], [2, 4]], "links_test_negatives": [[1, 3, 4], [0, 1, 3]]}
        for name, values in arrays.items():
            numpy.save(self.path(f"collab/split/time/{name}.npy"), numpy.array(values))
        assert "links/links_test.npy: 2 links" in self.convert(self.path("collab"), out, "--undirected")
        self.convert(out, again)
        for folder in out, again:
            load = lambda name: numpy.load(os.path.join(folder, name + ".npy")).tolist()
            assert all(load(name) == values for name, values in arrays.items()) and load("count") == 5
            assert load("edges") == [[0, 1], [1, 2], [1, 0], [2, 1]] and load("edge_weight") == [2, 0.5, 2, 0.5] and load("edge_type") == [1, 0, 1, 0]
        assert "without links" in self.convert(out, self.path("links.npz"))
        os.remove(os.path.join(out, "edge_type.npy"))
        self.refused(1, "features and links cannot follow", out, self.path("links3"), "--largest-component")

    def tables(self):
        """CSV tables make a folder that train takes."""
        gaps, path = self.write("v.txt", "30 1412\n3 30\n1412 7\n"), self.path("v")
        load = lambda name: numpy.load(os.path.join(path, name)).tolist()
        csv = lambda text: self.write("v.csv", text)
        features = self.write("f.csv", "\ufeff,x,y\n7,1,2\n3,0.5,-1\n99,0,0\n\n1412,3,4\n30,5,6\n")
        said = self.convert(gaps, path, "--features", features, "--labels", csv("id,label\n3,0\n7,1\n30,1\n1412,0\n"))
        assert "f.csv: the first column is taken for the ids" in said and "split.npy: 3 vertices for training, 0 for validation and 1 for test" in said and "5 x 5" in said, said
        assert load("ids.npy") == [3, 7, 30, 99, 1412] and load("edges.npy") == [[2, 4], [0, 2], [4, 1]]
        assert load("features.npy") == [[0.5, -1], [1, 2], [5, 6], [0, 0], [3, 4]]
        assert load("labels.npy") == [0, 1, 1, -1, 0] and load("split.npy")[3] == 0 and 1 in load("split.npy")
        if self.train:
            subprocess.run([self.train, "--data", path, "--model", "gcn", "--epochs", "2", "--quiet"], check=True, timeout=60)
        self.refused(1, "v: has features, labels or a split of its own", path, self.path("w"), "--labels", features)
        self.convert(gaps, path, "--largest-component", "--features", features, "--labels", csv("7,1,0\n3,0,1\n"), "--split", self.write("s.csv", "3,1\n7,2\n"))
        assert load("ids.npy") == [3, 7, 30, 1412] and load("labels.npy") == [[0, 1], [1, 0], [0, 0], [0, 0]] and load("split.npy") == [1, 2, 0, 0]
        plain = self.write("p.txt", "0 2\n2 4\n")  # row v is vertex v, also of those without edges
        self.convert(plain, path, "--features", csv("1\n2\n3\n4\n5\n6\n"))
        assert load("features.npy") == [[k] for k in range(1, 7)] and load("edges.npy") == [[0, 2], [2, 4]] and sorted(os.listdir(path)) == ["edges.npy", "features.npy"]
        market = self.write("p.mtx", "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
        for option, of, text, sentence in (
                ("features", plain, "1\n2\n", r"csv:2: has no row for vertex 2, as it has 2 rows, and row v, from 0, is vertex v.*; this is the row of vertex 1"),
                ("labels", plain, "0\n1\n", r"csv:2: has no row for vertex 2"),
                ("labels", gaps, "id,class\n3,cat\n7,dog\n", r'csv:2: expected 2 numbers and commas between, found "3,cat"; replace names by numbers first, in NumPy with names, classes = numpy.unique\(column, return_inverse=True\)'),
                ("features", gaps, "3,1\n7,2\n30,1e39\n1412,0\n", r"csv:3: feature 0 is 1e\+39, which is not a finite 32-bit number"),
                ("features", gaps, "i,x\n3,1\n7,2\n30,\n1412,0\n", r"csv:4: feature 0 is nan"),
                ("features", gaps, "i,x\n3,1\n7,2\n30,1\n1412,0\n\n7,1\n", r"csv:7: vertex 7 has come before"),
                ("features", gaps, "3,1\n7,x\n", r'csv:2: expected 2 numbers and commas between, found "7,x"'),
                ("features", gaps, "3,1\n7\n", r'csv:2: expected 2 numbers and commas between, found "7"$'),
                ("features", market, "1\n2\n3\n", r"csv:3: vertex 2 is not in .*p.mtx"),
                ("features", market, "", r"csv: has no rows"),
                ("labels", market, "0\n1.5\n", r"csv:2: the label 1.5 is not a class, a whole number from 0 to 1, or -1 or nothing"),
                ("labels", market, "0\n2\n", r"csv:2: the label 2 is not a class"),
                ("labels", plain, "0,1\n0,7\n0,1\n0,0\n0,0\n", r"csv:2: the label 7 is neither 0 nor 1"),
                ("labels", market, "-1\n-1\n", r"csv: no vertex has a label")):
            self.refused(1, sentence, of, self.path("w"), "--" + option, csv(text))
        for text, sentence in (("3,1\n30,2\n", r"s.csv:2: vertex 30 is in the split, but has no label"), ("3,4\n", r"s.csv:1: the split 4 is not 1 \(training\)"), ("3,2\n", r"s.csv: no vertex is in the training set"), ("3,1,1\n", "s.csv: expected one column")):
            self.refused(1, sentence, gaps, self.path("w"), "--labels", csv("3,1\n7,1\n"), "--split", self.write("s.csv", text))
        assert not os.path.exists(self.path("w"))
        with_ids = csv("3,1\n7,2\n30,1\n1412,0\n")
        self.refused(1, r"v.csv:1: has no row for vertex 5, which .*l.csv has; this is the row of vertex 3", gaps, self.path("w"), "--features", with_ids, "--labels", self.write("l.csv", "5,1\n3,0\n"))
        self.refused(1, r"v.csv: has no row for vertex 0, which .*l.csv has, where row v, from 0, is vertex v", gaps, self.path("w"), "--features", with_ids, "--labels", self.write("l.csv", "3,1\n3,0\n"))
        table = self.write("edges.csv", "\ufeffsource,target,weight\n30,1412,1\n3,30,2\n1412,7,1\n")
        self.convert(table, path, "--features", with_ids)
        assert load("edges.npy") == [[2, 3], [0, 2], [3, 1]] and load("edge_weight.npy") == [1, 2, 1]
        self.refused(2, "--features, --labels and --split are for a folder, which .*w.npz is not", plain, self.path("w.npz"), "--labels", features)
        self.refused(2, "--split goes with --labels", plain, self.path("w"), "--split", features)
        self.refused(1, "more than --memory 33M", plain, self.path("w"), "--memory", "33M", "--features", csv("1\n" * 99999))

    def edge_features(self):
        """Columns of a table of edges, and a folder's, both ways the same; gone with another graph."""
        table, folder, copy = self.write("rows.csv", "source,target,a,b\n0,1,0.5,1\n1,2,2,-3\n"), self.path("rows"), self.path("rows_copy")
        self.convert(table, folder, "--edge-features")
        self.convert(folder, copy, "--undirected")
        for path, rows in ((folder, [[0.5, 1], [2, -3]]), (copy, [[0.5, 1], [2, -3], [0.5, 1], [2, -3]])):
            found = numpy.load(path + "/edge_features.npy")
            assert found.dtype == numpy.float32 and found.tolist() == rows, found
        assert "without features of edges" in self.convert(folder, self.path("rows.mtx"))
        self.refused(1, "their features cannot follow", folder, self.path("rows_simple"), "--simple")
        self.refused(1, "expected source, target and features", self.write("two.csv", "0,1\n1,2\n"), self.path("two"), "--edge-features")
        self.refused(2, "--edge-features is for a .csv", table, self.path("rows.npy"), "--edge-features")
        assert "edge_features.npy: removed" in self.convert(self.path("rows.mtx"), copy)

    def edge_types(self):
        """A column of a table of edges, with features behind it or without, and a folder's."""
        table, folder, copy = self.write("typed.csv", "source,target,type,a\n0,1,1,0.5\n1,2,0,2\n"), self.path("typed"), self.path("typed_copy")
        self.convert(table, folder, "--edge-types", "--edge-features")
        self.convert(folder, copy, "--undirected")
        for path, types in ((folder, [1, 0]), (copy, [1, 0, 1, 0])):
            found = numpy.load(path + "/edge_type.npy")
            assert found.dtype == numpy.int64 and found.tolist() == types, found
        assert numpy.load(folder + "/edge_features.npy").tolist() == [[0.5], [2]]
        assert "without types of edges" in self.convert(folder, self.path("typed.mtx"))
        self.refused(1, "expected source, target and type in each", table, self.path("x"), "--edge-types")
        only = self.write("types.csv", "0,1,2\n1,2,0.5\n")
        self.refused(1, "types.csv:1: the type of the edge is not a whole number from 0, less than", only, self.path("x"), "--edge-types")
        half = self.write("types.txt", "# a type\n0 1\t0\n\n1 2\t0.5\n")
        self.refused(1, "types.txt:4: the type of the edge is not a whole number", half, self.path("x"), "--edge-types")
        self.convert(self.write("types.txt", "# a type\n0 1\t1 0.5\n1 2;0;2\n"), self.path("x"), "--edge-types", "--edge-features")
        assert numpy.load(self.path("x/edge_type.npy")).tolist() == [1, 0] and numpy.load(self.path("x/edge_features.npy")).tolist() == [[0.5], [2]]
        self.refused(2, "--edge-types is for a .csv or .txt", table, self.path("rows.npy"), "--edge-types")
        self.refused(1, "their types cannot follow", self.write("good.csv", "0,1,1\n1,2,0\n"), self.path("x"), "--edge-types", "--simple")
        assert "edge_type.npy: removed" in self.convert(self.path("typed.mtx"), copy)

    def stale(self):
        """What an output had before goes, and only when the new one is there."""
        gaps, dense, both = self.write("s.txt", "3\t30\t2\n30\t3\t0.5\n"), self.write("t.txt", "0 1\n1 2\n"), self.path("s")
        assert f"{self.path('s.ids.npy')}: the ids of the 2 vertices\n" in self.convert(gaps, self.path("s.npz"))
        kept = lambda: numpy.load(self.path("s.ids.npy")).tolist()
        self.convert(self.path("s.npz"), self.path("s.mtx"))
        self.convert(self.path("s.npz"), self.path("s.npz"))
        assert kept() == [3, 30]
        other = self.write("u.txt", "7 9\n")
        self.refused(1, "positive whole numbers", gaps, self.path("s.graph"))
        self.refused(1, "which does not have it", other, self.path("s.graph"))
        assert kept() == [3, 30]
        assert "s.ids.npy: removed" in self.convert(dense, self.path("s.npz"))
        assert not os.path.exists(self.path("s.ids.npy"))
        self.convert(gaps, both)
        for name in ("features.npy", "features_csr.npz", "labels.npy", "split.npy", "mine.npy"):
            self.write("s/" + name, b"old")
        assert sorted(os.listdir(both)) == ["edge_weight.npy", "edges.npy", "features.npy", "features_csr.npz", "ids.npy", "labels.npy", "mine.npy", "split.npy"]
        negative = self.write("minus.txt", "0 1 -1\n")
        self.refused(1, "cannot have the weight -1", negative, both)
        assert len(os.listdir(both)) == 8
        assert self.convert(dense, both).count("removed") == 6
        assert sorted(os.listdir(both)) == ["edges.npy", "mine.npy"]
        assert self.read(both) == {(0, 1): 1, (1, 2): 1}
        numpy.save(os.path.join(both, "labels.npy"), numpy.zeros(3, "int64"))  # in its place, a folder keeps what it has
        assert "removed" not in self.convert(both, both, "--undirected")
        assert sorted(os.listdir(both)) == ["edges.npy", "labels.npy", "mine.npy"] and len(self.read(both)) == 4

    def last_vertices(self):
        """Isolated vertices that an output does not have are counted, and its shape is said."""
        lone = self.write("lone.mtx", "%%MatrixMarket matrix coordinate pattern general\n6 6 1\n2 4\n")
        for name in ("lone.npy", "lone"):
            said = self.convert(lone, self.path(name))
            assert "without the last 2 vertices, which have no edges" in said and "4 x 4 with 1 entries" in said, said
        assert "2 x 2 with 1 entries" in self.convert(lone, self.path("lone.txt"))
        assert "6 x 6 with 1 entries" in self.convert(lone, self.path("lone.npz"))
        numpy.save(os.path.join(self.path("lone"), "features.npy"), numpy.zeros((6, 1)))
        self.convert(self.path("lone"), self.path("again.npz"))
        assert scipy.sparse.load_npz(self.path("again.npz")).shape == (6, 6)
        os.remove(os.path.join(self.path("lone"), "features.npy"))
        scipy.sparse.save_npz(os.path.join(self.path("lone"), "features_csr.npz"), scipy.sparse.csr_matrix((7, 2)))
        self.convert(self.path("lone"), self.path("again.npz"))
        assert scipy.sparse.load_npz(self.path("again.npz")).shape == (7, 7)
        said = self.convert(self.path("lone"), self.path("lone_too"))
        assert "7 x 7" in said and "without" not in said

    def not_finite(self):
        for value in (numpy.nan, numpy.inf):
            scipy.sparse.save_npz(self.path("nan.npz"), scipy.sparse.coo_matrix(([1, value], ([0, 1], [1, 2])), (3, 3)))
            for name in ("nan.txt", "nan.txt.gz"):
                self.refused(1, f"nan.npz: the entry in row 1 and column 2, counted from 0, is {value}, which .*{name} cannot have", self.path("nan.npz"), self.path(name))
                assert not os.path.exists(self.path(name))

    def simple(self):
        text = "# SNAP\n10 11\n11 10\n11 11\n12 10\n10 11\n"
        graph = self.write("multi.txt", text)
        self.refused(1, "vertex", graph, self.path("multi.graph"), "--undirected")
        self.convert(graph, self.path("multi.graph"), "--undirected", "--simple")
        assert self.read(self.path("multi.graph")) == {(0, 1): 1, (1, 0): 1, (0, 2): 1, (2, 0): 1}
        self.convert(self.write("heavy.txt", "1 0 2\n0 1 3\n1 0 4\n1 1 9\n"), self.path("heavy.txt.gz"), "--simple")
        assert self.read(self.path("heavy.txt.gz")) == {(0, 1): 3, (1, 0): 6}
        self.convert(self.path("heavy.txt"), self.path("heavy.graph"), "--simple", "--undirected")
        assert self.read(self.path("heavy.graph")) == {(0, 1): 9, (1, 0): 9}
        self.refused(1, "the matrix is 23 x 40, which is no graph", self.path("r.npz"), self.path("r.mtx"), "--simple")

    def memory(self):
        """The bound that is said holds."""
        numpy.save(self.path("far.npy"), numpy.array([[0, 10**7]]))
        far = self.path("far.npy")
        self.refused(1, "more than --memory 100M", far, self.path("far.npz"), "--memory", "100M")
        unit = {"MiB": 2**20, "GiB": 2**30}
        for out in ("far.npz", "far.mtx", "far.part", "far.txt", "far_folder", "far.npy"):
            with subprocess.Popen([self.program, far, self.path(out)], stdout=subprocess.PIPE, text=True) as ran:
                said = ran.stdout.read()
                _, status, used = os.wait4(ran.pid, 0)
                ran.returncode = os.waitstatus_to_exitcode(status)
            most, word = re.search("up to ([0-9.]+) ([MG]iB) of memory", said).groups()
            assert ran.returncode == 0 and 1024 * used.ru_maxrss <= float(most) * unit[word], (out, said, used.ru_maxrss)
        scipy.sparse.save_npz(self.path("tall.npz"), scipy.sparse.coo_matrix(([1.0], ([0], [1])), (10**7, 10**7)))
        self.refused(1, "more than --memory 100M", self.path("tall.npz"), self.path("tall.mtx"), "--memory", "100M")
        for vertex in (2**62, 2**63 - 1, 2**40):
            numpy.save(self.path("huge.npy"), numpy.array([[0, 1], [0, vertex]]))
            self.refused(1, f"huge.npy: row 1 has the vertex {vertex}, and a graph that is converted has no more", self.path("huge.npy"), self.path("x.npz"))
        numpy.save(self.path("huge.npy"), numpy.array([[0, 1], [0, 2**64 - 1]], "uint64"))
        self.refused(1, "huge.npy: row 1, column 1, is 18446744073709551615, larger than 9223372036854775807", self.path("huge.npy"), self.path("x.npz"))
        numpy.save(self.path("huge.npy"), numpy.array([[0, -1]]))
        self.refused(1, "row 0 has a negative vertex", self.path("huge.npy"), self.path("x.npz"))
        packed = self.write("packed.txt.gz", gzip.compress(b"0 1\n" * 10**6))
        self.refused(1, "packed.txt.gz: has more than 1048576 bytes, the limit of what is unpacked, which .* or --unpack-limit SIZE sets", packed, self.path("x.npz"), "--unpack-limit", "1M")
        self.convert(packed, self.path("unpacked.npz"), "--unpack-limit", "4M")
        for texts in (["0 1\n", "1 2\n"], ["0 1\n1 2"], ["0 1\n" * 30000, "1 2\n"]):  # members of a packed file
            packed = self.write("members.txt.gz", b"".join(gzip.compress(text.encode()) for text in texts))
            lines = len("".join(texts).splitlines())
            said = self.convert(packed, self.path("members.npz"))
            assert f"up to {lines} entries" in said and f"with {lines} entries" in said and "MiB" in said, said

    def outputs(self):
        """What is no regular file, and what is full."""
        edges, pipe = self.write("small.txt", "0 1\n"), self.path("pipe")
        for ending in (".mtx", ".txt", ".txt.gz", ".graph", ".npz", ".npy", ".part"):
            os.mkfifo(pipe + ending)
            self.refused(1, "pipe" + ending + ": is not a regular file", edges, pipe + ending, "--undirected")
            self.refused(1, "pipe" + ending + ": is not a regular file", pipe + ending, self.path("from_pipe.mtx"))
        with open("/dev/full", "w") as full:
            for words in ([edges, self.path("said.npz")], ["--help"]):
                done = subprocess.run([self.program, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                assert (done.returncode, done.stderr) == (1, "convert: cannot write to standard output (No space left on device)\n"), done
        long, old = self.write("long.txt", "".join(f"{v} {v + 1}\n" for v in range(1000))), self.write("old.mtx", "old")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        done = subprocess.run([self.program, long, old], capture_output=True, text=True, timeout=60, preexec_fn=limit)
        assert (done.returncode, done.stderr) == (1, f"convert: {old}: cannot be written (File too large)\n"), done
        with open(old) as f:
            assert f.read() == "old" and not [name for name in os.listdir(self.folder) if name.startswith(".partita")]

    def errors(self):
        bad = self.write("bad.txt", "0 1\n1 x\n")
        self.refused(1, re.escape(bad) + ':2: expected two vertex ids, found "1 x"', bad, self.path("x.npz"))
        bad = self.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n")
        self.refused(1, re.escape(bad) + r":3: entry \(3, 1\) is outside a matrix of 2 x 2", bad, self.path("x.npz"))
        bad = self.write("bad.graph", "% c\n2 1\n2\n\n")
        self.refused(1, re.escape(bad) + ": expected 1 edges", bad, self.path("x.npz"))
        bad = self.write("bad.txt.gz", gzip.compress(b"0 1\n" * 1000)[:-8])
        self.refused(1, re.escape(bad) + ": cannot be unpacked", bad, self.path("x.npz"))
        bad = self.write("bad.part", b"\x93PARTITA")
        self.refused(1, re.escape(bad) + ": is cut off", bad, self.path("x.npz"))
        bad = self.write("bad.npz", b"zip")
        self.refused(1, re.escape(bad) + ": is not a zip archive", bad, self.path("x.mtx"))
        bad = self.write("bad.npy", b"\x93NUMPY")
        self.refused(1, re.escape(bad) + ": truncated header", bad, self.path("x.mtx"))
        self.refused(1, "none.mtx: no such file", self.path("none.mtx"), self.path("x.npz"))
        self.refused(1, "none: no such file", self.path("none"), self.path("x.npz"))
        one_way = self.write("one.txt", "0 1\n")
        self.refused(1, "vertex 1 has the neighbour 2, which does not have it", one_way, self.path("x.graph"))
        assert not os.path.exists(self.path("x.graph")) and not os.path.exists(self.path("x.npz"))
        self.convert(one_way, self.path("x.graph"), "--undirected")
        self.refused(1, "takes up to .* of memory, more than --memory 1M", one_way, self.path("y.npz"), "--memory", "1M")
        self.convert(one_way, self.path("y.npz"), "--memory", "0.5G")
        for size in ("1g", "1GB", "1GiB", "1gib", "1.5T", "999999k", "999999999"):
            self.convert(one_way, self.path("y.npz"), "--memory", size)
        for size in ("3X", "2GG", "2BG", "2iB", "-1G", "G", "nan"):
            self.refused(2, f'--memory "{size}" is not a size such as 512M or 2G, with K, M, G, T', one_way, self.path("y.npz"), f"--memory={size}")
        self.refused(2, "--memory needs a value", one_way, self.path("y.npz"), "--memory=")
        self.refused(2, '--memory "" is not a size', one_way, self.path("y.npz"), "--memory", "")
        self.refused(2, "/dev/stdout does not end in .* and is not a folder", one_way, "/dev/stdout")
        self.refused(1, "cannot be created", one_way, self.path("one.txt") + "/folder")
        assert re.fullmatch(r"convert \d+\.\d+\.\d+\n", self.convert("--version"))
        self.refused(2, "x.csv does not end in", one_way, self.path("x.csv"))
        self.refused(2, "OUT is required", one_way)
        self.refused(1, "cannot be written", one_way, self.path("no/x.npz"))


def main(program, train=None):
    with tempfile.TemporaryDirectory() as folder:
        formats = Formats(program, train, folder)
        for test in (lambda: formats.all_pairs(False), lambda: formats.all_pairs(True), formats.matrices, formats.ids, formats.edge_features, formats.edge_types, formats.stale,
                     formats.last_vertices, formats.not_finite, formats.simple, formats.memory, formats.ogb, formats.ogb_types, formats.ogb_links, formats.tables, formats.outputs, formats.parts, formats.errors, formats.check_dialects):
            test()
    print("every pair of formats, matrices, ids, what is removed and lost, memory, OGB folders, CSV tables and errors")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
