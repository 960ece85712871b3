#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What train makes of data files that are damaged: exit code 1 and one sentence that names the file, at once, over threads
and over MPI.

usage: damaged_data.py TRAIN [MPI_LAUNCH MPIRUN]"""
import io
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.dont_write_bytecode = True
from program_case import ProgramCase, environment, npy, numbers, run

TRAIN = sys.argv[1]
LAUNCH = sys.argv[2:4]
VERTICES, SECONDS = 40, 60  # of a run that hangs


def features_csr():
    """One feature of each vertex in four."""
    arrays = {"format": npy("|S3", (), b"csr"), "shape": numbers("<i8", [VERTICES, 4]),
              "indptr": numbers("<i4", range(VERTICES + 1)), "indices": numbers("<i4", [v % 4 for v in range(VERTICES)]),
              "data": numbers("<f4", [1.0] * VERTICES)}
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            archive.writestr(name + ".npy", array)
    return content.getvalue()


def whole_data():
    """A ring with chords."""
    edges = [v for u in range(VERTICES) for step in (1, 7) for v in (u, (u + step) % VERTICES)]
    return {"edges.npy": numbers("<i8", edges, (len(edges) // 2, 2)),
            "features.npy": numbers("<f4", [0.25 * (v % 5) + 0.5 for v in range(4 * VERTICES)], (VERTICES, 4)),
            "labels.npy": numbers("<i8", [v % 3 for v in range(VERTICES)]),
            "split.npy": numbers("|u1", [1 + v % 3 for v in range(VERTICES)]),
            "edge_weight.npy": numbers("<f8", [1.0 + k % 2 for k in range(len(edges) // 2)])}


DATA = whole_data()
FILES = {**DATA, "features_csr.npz": features_csr()}


def flipped(content, byte, bit):
    return content[:byte] + bytes([content[byte] ^ 1 << bit]) + content[byte + 1:]


def replace(path, content):
    """By bytes, or by what is no file: None, "folder", "pipe", "loop" or "locked"."""
    if os.path.lexists(path):
        os.remove(path)
    if content == "folder":
        os.mkdir(path)
    elif content == "pipe":
        os.mkfifo(path)
    elif content == "loop":
        os.symlink(os.path.basename(path), path)
    elif content is not None:
        with open(path, "wb") as f:
            f.write(FILES[os.path.basename(path)] if content == "locked" else content)
        if content == "locked":
            os.chmod(path, 0)


class DamagedData(ProgramCase):
    def run_with(self, name, content, *arguments, launch=()):
        """Trains where the file `name` has another content; with features_csr.npz there is no features.npy."""
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            for other, whole in DATA.items():
                if other != "features.npy" or name != "features_csr.npz":
                    replace(os.path.join(data, other), whole)
            replace(os.path.join(data, name), content)
            return run(TRAIN, "--data", data, "--model", "gcn", "--epochs", "1", "--policy", "row_1d", "--quiet", *arguments, command=launch, timeout=SECONDS)

    def refused(self, name, content, what, *arguments, launch=()):
        with self.subTest(file=name, damage=what, over=" ".join(launch)):
            done = self.run_with(name, content, *arguments, launch=launch)
            said = [line for line in done.stderr.splitlines() if line.startswith("train: ") or line.startswith("partita: ")]
            self.assertEqual((done.returncode, done.stdout, len(said)), (1, "", 1), done.stderr)
            named = "(features|features_csr)" if content is None and name.startswith("features") else re.escape(os.path.splitext(name)[0])
            self.assertRegex(said[0], f"^(train|partita: rank 0): .*{named}")
            if not launch:
                self.assertEqual(done.stderr, said[0] + "\n")

    def damages(self, name):
        content = FILES[name]
        for length in (0, 1, 9, 10, 64, 127, 128, len(content) - 1):
            yield f"the first {length} bytes", content[:length]
        for what in ("folder", "pipe", "loop"):
            yield what, what
        if os.geteuid() != 0:  # who may read everything
            yield "locked", "locked"
        if name != "edge_weight.npy":  # which may be absent
            yield "deleted", None
        if name.endswith(".npy"):
            yield "bytes behind it", content + bytes(8)
            # the magic number, the version, the length, the dictionary, its end
            for byte, bit in ((0, 7), (5, 0), (6, 1), (8, 1), (8, 6), (9, 7), (10, 3), (21, 1), (22, 0), (45, 2), (60, 4), (62, 1), (127, 0)):
                yield f"bit {bit} of byte {byte}", flipped(content, byte, bit)

    def test_whole_data_trains(self):
        for name in FILES:
            done = self.run_with(name, FILES[name], "--ranks", "2")
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_damage_is_refused(self):
        for name in FILES:
            for what, content in self.damages(name):
                self.refused(name, content, what, "--ranks", "2")

    def test_flipped_bits_train_or_are_refused(self):
        # Not every bit of a zip archive matters, and one of a value is another value.
        for name, content in FILES.items():
            for byte in range(0, len(content), len(content) // (25 if name.endswith(".npz") else 12)):
                done = self.run_with(name, flipped(content, byte, byte % 8), "--ranks", "2")
                lines = done.stderr.splitlines()
                self.assertTrue(done.returncode in (0, 1) and len(lines) in (done.returncode, 1), f"{name}, byte {byte}: {done.stderr}")

    def test_what_is_unpacked_has_a_limit(self):
        content = FILES["features_csr.npz"]
        self.refused("features_csr.npz", content, "more than --unpack-limit", "--unpack-limit", "200")
        self.assertEqual(self.run_with("features_csr.npz", content, "--unpack-limit", "1K").returncode, 0)

    def test_numbers_that_are_none_of_the_graph(self):
        self.refused("edges.npy", DATA["edges.npy"][:-8] + struct.pack("<q", VERTICES), "a vertex too many")
        self.refused("labels.npy", DATA["labels.npy"][:-8] + struct.pack("<q", 1 << 60), "a class too many")
        self.refused("features.npy", DATA["features.npy"][:-4] + struct.pack("<f", float("nan")), "not a number")
        self.refused("edge_weight.npy", DATA["edge_weight.npy"][:-8] + struct.pack("<d", -1.0), "less than nothing")
        self.refused("split.npy", DATA["split.npy"][:-1] + b"\x83", "a part too many")

    def test_files_that_change_while_they_are_read(self):
        with tempfile.TemporaryDirectory(dir=self.folder) as data:
            for name, whole in DATA.items():
                replace(os.path.join(data, name), whole)
            out, edges = os.path.join(self.folder, "r.json"), os.path.join(data, "edges.npy")
            process = subprocess.Popen([TRAIN, "--data", data, "--model", "gcn", "--epochs", "100000000", "--ranks", "2", "--policy", "row_1d", "--json", out],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not process.stdout.readline().startswith("epoch"):
                pass
            os.truncate(edges, 0)  # the results are there all the same
            process.terminate()
            said = process.communicate(timeout=SECONDS)[1]
            self.assertEqual(process.returncode, 128 + signal.SIGTERM, said)
            self.assertIn(f"train: {edges} has changed since training began; repeated edges are not counted", said)
            with open(out) as f:
                written = json.load(f)
            self.assertEqual((written["duplicate_edges"], written["run"]["data"]["fnv1a_64"]["edges.npy"]), (None, None))

    def test_over_mpi_ranks_have_the_same_options_and_data(self):
        if not LAUNCH:
            self.skipTest("no MPI")
        folders = [tempfile.mkdtemp(dir=self.folder) for _ in range(2)]
        for folder in folders:
            for name, whole in DATA.items():
                replace(os.path.join(folder, name), whole)

        def refused(what, *other, data=folders[0]):
            one = [TRAIN, "--model", "gcn", "--epochs", "2", "--quiet", "--comm", "mpi", "--policy", "row_1d"]
            words = [LAUNCH[0], LAUNCH[1], "1", *one, "--data", folders[0], ":", "-n", "1", *one, "--data", data, *other]
            done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, env=environment(True))
            self.assertNotEqual(done.returncode, 0, what)
            self.assertIn(f"the processes of the job differ in their {what}: rank 1's differ from those of rank 0", done.stderr)

        for option, value in (("--seed", "5"), ("--lr", "0.5"), ("--weight-decay", "0"), ("--partition", "random")):
            refused(f"option {option}", option, value)
        refused("option --raw-features", "--raw-features")
        for name, what in (("edges.npy", "edges"), ("edge_weight.npy", "weights of edges"), ("labels.npy", "labels"), ("features.npy", "features")):
            size = 16 if name == "edges.npy" else 8
            content = DATA[name]
            replace(os.path.join(folders[1], name), content[:-2 * size] + content[-size:] + content[-2 * size:-size])
            refused(what, data=folders[1])
            replace(os.path.join(folders[1], name), content)

    def test_numbers_that_overflow_a_precision(self):
        far = numbers("<f8", [1e39] + [1.0] * (4 * VERTICES - 1), (VERTICES, 4))
        weights = numbers("<f8", [1e300] * (2 * VERTICES))
        for name, content, option, said in (("features.npy", far, ["--raw-features"], "feature 0 of vertex 0 is not a finite number in f32"),
                                            ("features.npy", far, ["--reproducible"], "feature 0 of vertex 0 is not a finite number in f32"),
                                            ("edge_weight.npy", weights, [], "is infinite, which is not a finite number")):
            done = self.run_with(name, content, *option)
            self.assertEqual(done.returncode, 1)
            self.assertIn(said, done.stderr)
        self.assertEqual(self.run_with("features.npy", far, "--precision", "f64").returncode, 0)

    def test_over_mpi_one_rank_says_so(self):
        if not LAUNCH:
            self.skipTest("no MPI")
        launch = [*LAUNCH, "2"]
        over_mpi = ["--comm", "mpi"]
        for name in FILES:
            self.refused(name, FILES[name][:130], "the first 130 bytes", *over_mpi, launch=launch)
        self.refused("edges.npy", "pipe", "pipe", *over_mpi, launch=launch)
        self.refused("labels.npy", None, "deleted", *over_mpi, launch=launch)
        self.refused("split.npy", "folder", "folder", *over_mpi, launch=launch)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
