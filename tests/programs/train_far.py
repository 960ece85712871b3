#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training over far memory in the program: train_far.py TRAIN [word of the command that starts MPI ranks ...]"""
import array
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
from program_case import ProgramCase, far_folder, npy, run

TRAIN, *LAUNCH = sys.argv[1:]
POLICIES = ["row_1d", "replicated_1_5d", "grid_2d", "split_3d", "feature_column", "feature_row"]
KEYS = ["chunks", "far_bytes", "predicted_far_bytes", "replication", "overlap", "near_peak_bytes", "far_peak_bytes"]
VERTICES, EDGES, FEATURES, CLASSES = 6000, 60000, 24, 5


def write_graph(folder, vertices=VERTICES):
    """A directed weighted graph by chance, with a few vertices that many edges lead to."""
    rng = random.Random(17)
    ends = [int(vertices * rng.random() ** 2) for _ in range(2 * EDGES)]
    files = {"edges": npy("<i8", (EDGES, 2), array.array("q", ends).tobytes()),
             "edge_weight": npy("<f8", (EDGES,), array.array("d", (0.5 + rng.random() for _ in range(EDGES))).tobytes()),
             "features": npy("<f4", (vertices, FEATURES), array.array("f", (rng.random() for _ in range(vertices * FEATURES))).tobytes()),
             "labels": npy("<i8", (vertices,), array.array("q", (rng.randrange(CLASSES) for _ in range(vertices))).tobytes()),
             "split": npy("|u1", (vertices,), bytes(1 + v % 3 for v in range(vertices)))}
    for name, content in files.items():
        with open(os.path.join(folder, name + ".npy"), "wb") as f:
            f.write(content)


class Far(ProgramCase):
    @classmethod
    def setUpClass(cls):
        cls.data = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.data.cleanup)
        write_graph(cls.data.name)

    def setUp(self):
        super().setUp()
        far = tempfile.TemporaryDirectory(dir=far_folder(self.folder))
        self.addCleanup(far.cleanup)
        self.far = far.name

    def run_train(self, *arguments, **more):
        return run(TRAIN, *arguments, **more)

    def train(self, *arguments, epochs="2", command=None, data=None):
        done = self.run_train("--data", data or self.data.name, "--precision", "f64", "--epochs", epochs, "--quiet", "--json", self.out, *arguments, command=command)
        return self.result_of(done)

    def far_options(self, memory):
        return ["--memory", str(memory), "--far", self.far]

    def test_losses_are_those_of_near_memory_within_the_budget(self):
        runs = [(["--model", "gcn", "--hidden", "16"], policy, ranks) for policy in POLICIES for ranks in ("1", "4")]
        runs += [(model.split(), "auto", "2") for model in ("--model sage --layers 2", "--model sgc --hops 2", "--model gcn --coupling decoupled --layers 3")]
        runs += [(["--model", "sage", "--aggregation", "max"], "row_1d", "2"), (["--model", "gat", "--heads", "2", "--hidden", "4"], "row_1d", "2"), (["--model", "gcn", "--batch", "600", "--fanout", "3,3"], "row_1d", "2"),
                 (["--model", "gcn", "--reproducible"], "grid_2d", "4"), (["--model", "gcn", "--embedding", "6"], "row_1d", "2")]
        for model, policy, ranks in runs:
            arguments = [*model, "--policy", policy, "--ranks", ranks]
            expected = self.train(*arguments)
            self.assertFalse(set(KEYS) & set(expected))
            most = expected["peak_bytes"]["max_rank"]
            for memory in (most // 3, most // 20):
                result = self.train(*arguments, *self.far_options(memory))
                self.same_losses(result, expected, arguments)
                self.assertEqual(result["policy"], expected["policy"])
                self.assertLessEqual(result["near_peak_bytes"]["max_rank"], memory, arguments)
                self.assertEqual(result["peak_bytes"]["max_rank"], result["near_peak_bytes"]["max_rank"])
                self.assertGreater(result["far_peak_bytes"]["max_rank"], 0, arguments)
                can_tell = "--batch" not in model and "--reproducible" not in model
                self.assertEqual(result["predicted_far_bytes"], result["far_bytes"] if can_tell else None, arguments)
                for same in ("words_received", "test_accuracy"):
                    self.assertEqual(result[same], expected[same], arguments)
                self.assertEqual(os.listdir(self.far), [])

    def test_exchanges_in_chunks(self):
        arguments = ["--model", "gcn", "--policy", "row_1d", "--ranks", "3"]
        whole, cut = [self.train(*arguments, "--exchange-pieces", chunks) for chunks in ("1", "5")]
        self.assertEqual(cut["loss"], whole["loss"])
        self.assertEqual(cut["words_received"], whole["words_received"])
        self.assertGreater(cut["messages"]["total"], whole["messages"]["total"])
        self.assertEqual(cut["run"]["options"]["exchange-pieces"], 5)
        for chunks, same in (("1", whole), ("5", cut)):
            result = self.train(*arguments, "--exchange-pieces", chunks, *self.far_options(1 << 17))
            self.same_losses(result, whole, chunks)
            self.assertEqual((result["words_received"], result["messages"]), (same["words_received"], same["messages"]))
            self.assertEqual(result["predicted_far_bytes"], result["far_bytes"])
        result = self.train(*arguments, *self.far_options(1 << 17))
        self.assertGreater(result["messages"]["total"], whole["messages"]["total"])

    def test_parts_bring_rows_that_are_needed_together(self):
        # Communities that are numbered at random: each row is read often, unless --partition finds them.
        rng = random.Random(3)
        with tempfile.TemporaryDirectory() as data:
            write_graph(data)
            number = list(range(VERTICES))
            rng.shuffle(number)
            ends = array.array("q")
            for v in range(VERTICES):
                for _ in range(EDGES // VERTICES):
                    ends.extend((number[v], number[rng.randrange(VERTICES) if rng.random() < 0.1 else v // 200 * 200 + rng.randrange(200)]))
            with open(os.path.join(data, "edges.npy"), "wb") as f:
                f.write(npy("<i8", (EDGES, 2), ends.tobytes()))
            arguments = ["--model", "gcn", "--policy", "row_1d", "--dropout", "0"]
            expected = self.train(*arguments, data=data)
            arguments += self.far_options(expected["peak_bytes"]["max_rank"] // 24)
            apart, together = [self.train(*arguments, "--partition", name, data=data) for name in ("none", "stream")]
            for result in (apart, together):
                self.same_losses(result, expected, arguments)
                self.assertEqual(result["predicted_far_bytes"], result["far_bytes"])
            self.assertLess(1.5 * together["replication"], apart["replication"])

    def test_loops_that_are_there_are_forecast_once(self):
        # A + I has a place for each vertex, also where the data have its loop, or have it twice.
        with tempfile.TemporaryDirectory() as data:
            write_graph(data)
            ends = array.array("q", (v for u in range(VERTICES) for e in [(u, (7 * u + 1) % VERTICES), *[(u, u)] * (u % 3), (u, (u + 1) % VERTICES)] for v in e))
            count = len(ends) // 2
            with open(os.path.join(data, "edges.npy"), "wb") as f:
                f.write(npy("<i8", (count, 2), ends.tobytes()))
            for weights in ([1 + k % 3 for k in range(count)], None):
                if weights:
                    with open(os.path.join(data, "edge_weight.npy"), "wb") as f:
                        f.write(npy("<f8", (count,), array.array("d", weights).tobytes()))
                else:
                    os.remove(os.path.join(data, "edge_weight.npy"))
                for ranks in ("1", "2", "4"):
                    for loops in ("sum", "once"):
                        arguments = ["--model", "gcn", "--policy", "row_1d", "--ranks", ranks, "--self-loops", loops]
                        expected = self.train(*arguments, data=data)
                        result = self.train(*arguments, *self.far_options(expected["peak_bytes"]["max_rank"] // 4), data=data)
                        self.same_losses(result, expected, arguments)
                        self.assertEqual(result["predicted_far_bytes"], result["far_bytes"], (arguments, weights is None))

    def test_resident_memory_stays_near_the_budget(self):
        # Wide hidden layers of a small graph: what is far is a multiple of what may be resident.
        with tempfile.TemporaryDirectory() as data:
            write_graph(data, vertices=1 << 14)
            arguments = ["--model", "gcn", "--hidden", "3072", "--policy", "row_1d", "--threads", "1"]
            expected = self.train(*arguments, epochs="1", data=data)
            budget, beside = 32 << 20, 300 * 10**6
            if expected["peak_rss_bytes"]["max_rank"] > expected["peak_bytes"]["max_rank"] + beside:
                self.skipTest("this build needs memory for itself")
            self.assertGreater(expected["peak_rss_bytes"]["max_rank"], budget + beside + 10**8)
            result = self.train(*arguments, *self.far_options(budget), epochs="1", data=data)
            self.same_losses(result, expected, arguments)
            self.assertLessEqual(result["near_peak_bytes"]["max_rank"], budget)
            self.assertLessEqual(result["peak_rss_bytes"]["max_rank"], budget + beside)

    def test_the_json(self):
        arguments = ["--model", "gcn", "--policy", "row_1d", "--ranks", "2"]
        whole = list(self.train(*arguments))
        result = self.train(*arguments, *self.far_options(1 << 17))
        at = whole.index("peak_bytes")
        self.assertEqual(list(result), whole[:at] + KEYS + whole[at:])
        for key in ("chunks", "near_peak_bytes", "far_peak_bytes"):
            self.assertTrue(0 < result[key]["max_rank"] < result[key]["total"], (key, result[key]))
        for way in ("read", "written"):
            self.assertTrue(0 < result["far_bytes"][way]["max_rank"] < result["far_bytes"][way]["total"], result["far_bytes"])
        self.assertTrue(0 <= result["overlap"] <= 1, result["overlap"])
        self.assertGreater(result["replication"], 1)
        self.assertLess(self.train(*arguments, *self.far_options(1 << 20))["replication"], result["replication"])
        # The same command moves the same bytes, and the options in the JSON repeat the run.
        options = [f"--{name}={value}" for name, value in result["run"]["options"].items()]
        self.assertIn(f"--far={os.path.abspath(self.far)}", options)
        done = self.run_train(*options, "--quiet", "--json", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.out) as f:
            again = json.load(f)
        for same in ("loss", "chunks", "far_bytes", "replication", "near_peak_bytes", "far_peak_bytes"):
            self.assertEqual(again[same], result[same], same)

    def test_what_is_shown(self):
        done = self.run_train("--data", self.data.name, "--model", "gcn", "--epochs", "1", *self.far_options("256K"))
        self.assertEqual(done.returncode, 0, done.stderr)
        amounts = r"\d+\.\d+ MB read and \d+\.\d+ MB written in \d+ chunks, \d+\.\d+ MB near"
        self.assertRegex(done.stdout, rf"(?m)^an epoch on the first rank over far memory: {amounts}.*, about \d+\.\d+ s at \d+\.\d+ MB/s far and \d+\.\d+ MB/s near$")
        self.assertRegex(done.stdout, rf"(?m)^  \d+ x product of A \(6000 x 6000, \d+ entries\) and \d+ columns, in chunks of \d+ to \d+ rows and \d+ to \d+ entries: {amounts}, which read each row \d+\.\d+ times$")
        self.assertRegex(done.stdout, rf"(?m)^  \d+ x operation by rows: {amounts}$")
        self.assertLess(done.stdout.index("an epoch on the first rank"), done.stdout.index("far memory: "))
        self.assertRegex(done.stdout, r"(?m)^far memory: \d+ chunks in an epoch on all ranks, \d+\.\d+ MB read, \d+\.\d+ MB written; overlap \d\.\d\d$")
        self.assertRegex(done.stdout, r"(?m)^buffers of the busiest rank: 0\.\d+ MB near, \d+\.\d+ MB far$")

    def test_checkpoints_and_saved_values(self):
        arguments = ["--model", "gcn", "--policy", "row_1d", "--ranks", "2"]
        expected = self.train(*arguments, "--save-logits", os.path.join(self.folder, "near.npy"), epochs="4")
        kept = ["--checkpoint", os.path.join(self.folder, "kept")]
        self.train(*arguments, *kept, *self.far_options("128K"))
        result = self.train(*arguments, *kept, "--resume", *self.far_options("128K"), "--save", os.path.join(self.folder, "model.safetensors"), "--save-logits", os.path.join(self.folder, "far.npy"), epochs="4")
        self.same_losses(result, expected, "resumed")
        logits = []
        for name in ("near.npy", "far.npy"):
            with open(os.path.join(self.folder, name), "rb") as f:
                logits.append(array.array("d", f.read()[128:]))
        self.assertEqual(len(logits[0]), VERTICES * CLASSES)
        self.assertLess(max(abs(a - b) for a, b in zip(*logits)), 1e-12)

    def test_signals_leave_nothing_behind(self):
        arguments = [TRAIN, "--data", self.data.name, "--model", "gcn", "--epochs", "1000000", "--ranks", "2", "--policy", "row_1d", "--quiet", *self.far_options("64K")]
        rng = random.Random(5)
        with tempfile.TemporaryDirectory() as elsewhere:
            self.interrupt(arguments, rng, {**os.environ, "TMPDIR": elsewhere})
            self.assertEqual(os.listdir(elsewhere), [])

    def interrupt(self, arguments, rng, environment):
        for how in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            for _ in range(3):
                process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment)
                time.sleep(1.2 * rng.random())
                self.assertEqual(os.listdir(self.far), [])
                process.send_signal(how)
                _, said = process.communicate(timeout=60)
                self.assertEqual(os.listdir(self.far), [])
                self.assertIn(process.returncode, (128 + how, -how), said)
                self.assertLess(len(said.splitlines()), 2, said)

    def test_what_is_refused(self):
        karate = ["--data", "karate", "--model", "gcn", "--quiet"]
        file = os.path.join(self.folder, "file")
        open(file, "w").close()
        for code, part, *arguments in ((2, "--far needs --memory", "--far", self.far), (2, "--far needs a value", "--memory", "1M", "--far="),
                                       (2, "--stages and --far do not go together", *self.far_options("1M"), "--stages", "2"),
                                       (2, "--far with --device cuda takes the word pinned", *self.far_options("1M"), "--device", "cuda"),
                                       (1, f"cannot make {file}: Not a directory", "--memory", "1M", "--far", file)):
            self.check_refused(self.run_train(*karate, *arguments), code, part)
        done = self.run_train("--data", self.data.name, "--model", "gcn", "--quiet", *self.far_options("1000"), "--ranks", "2")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        self.assertRegex(done.stderr, r"bytes, which a window of near memory of \d+ bytes does not hold twice|window")
        memory, said = 1000, ["--memory"]
        while said:  # each says what its operation needs, and a later one may need more
            done = self.run_train(*karate, *self.far_options(memory), "--epochs", "2")
            said = re.findall(r": it must have (\d+); --memory, half of which is the window, needs at least (\d+), and for a later operation perhaps more$", done.stderr)
            self.assertEqual((done.returncode, len(said)), (1, 1) if said else (0, 0), done.stderr)
            for window, least in said:
                self.assertEqual((int(least), int(least) > memory), (2 * int(window), True), done.stderr)
                memory = int(least)
        self.assertLess(memory, 20000)

    def test_a_folder_that_is_not_there_is_made(self):
        nowhere = os.path.join(self.far, "not", "there")
        done = self.run_train("--data", "karate", "--model", "gcn", "--epochs", "2", "--quiet", "--memory", "1M", "--far", nowhere)
        self.assertEqual((done.returncode, done.stderr, os.listdir(nowhere)), (0, "", []))

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_a_folder_that_is_not_writable(self):
        os.chmod(self.far, 0o500)
        done = self.run_train("--data", "karate", "--model", "gcn", "--quiet", *self.far_options("1M"))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"no scratch file can be made in the folder {self.far}: Permission denied", done.stderr)

    def test_a_file_that_may_not_grow(self):
        # As on a full disk, posix_fallocate fails; the reason is the one of the limit.
        done = self.run_train("--data", self.data.name, "--model", "gcn", "--ranks", "2", "--quiet", *self.far_options("64K"),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        self.assertRegex(done.stderr, rf"^train: .*a block of \d+ bytes cannot be made in the folder {self.far} for far memory, beside blocks of \d+ bytes: File too large$")

    def test_a_full_disk(self):
        # A file system of a MiB, where this user may mount one for a process.
        script = 'mount -t tmpfs -o size=1M tmpfs "$1" && shift && exec "$@"'
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", self.far]
        try:
            able = subprocess.run([*command, "true"], capture_output=True).returncode == 0
        except FileNotFoundError:
            able = False
        if not able:
            self.skipTest("no file system can be mounted here")
        done = self.run_train("--data", self.data.name, "--model", "gcn", "--ranks", "2", "--quiet", *self.far_options("64K"), command=command)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)
        self.assertRegex(done.stderr, rf"^train: .*the folder {self.far} for far memory is full: a block of \d+ bytes needs \d+ bytes more than are free, beside blocks of \d+ bytes$")

    @unittest.skipUnless(LAUNCH, "there is no mpirun here: CMake says so")
    def test_over_mpi(self):
        arguments = ["--model", "gcn", "--policy", "grid_2d"]
        expected = self.train(*arguments, "--ranks", "4")
        result = self.train(*arguments, "--comm", "mpi", *self.far_options("96K"), command=[*LAUNCH, "4"])
        self.same_losses(result, expected, arguments)
        self.assertLessEqual(result["near_peak_bytes"]["max_rank"], 96 << 10)
        self.assertEqual(os.listdir(self.far), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
