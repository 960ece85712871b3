#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of the program: signals, damaged files, folders that cannot be written: checkpoints.py TRAIN [word of the command that starts MPI ranks ...]"""
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from program_case import ProgramCase, environment, wait_until_caught

TRAIN, *LAUNCH = sys.argv[1:]


class Checkpoints(ProgramCase):
    def setUp(self):
        super().setUp()
        self.scratch = self.folder
        self.folder = os.path.join(self.scratch, "checkpoints")

    def words(self, epochs, *arguments, launch=()):
        usual = [word for name, value in (("--model", "gcn"), ("--policy", "row_1d")) if name not in arguments for word in (name, value)]
        return [*launch, TRAIN, "--data", "karate", *usual, "--precision", "f64", "--epochs", str(epochs), "--quiet",
                "--json", self.out, *arguments, *(["--comm", "mpi"] if launch else [])]

    def kept(self, *arguments):
        return ["--checkpoint", self.folder, *arguments]

    def run_with(self, epochs, *arguments, launch=(), **more):
        return subprocess.run(self.words(epochs, *arguments, launch=launch), capture_output=True, text=True, timeout=60, env=environment(launch), **more)

    def train(self, epochs, *arguments, launch=(), says=""):
        done = self.run_with(epochs, *arguments, launch=launch)
        return self.result_of(done, says)

    def refused(self, code, part, epochs, *arguments, launch=(), **more):
        done = self.run_with(epochs, *arguments, launch=launch, **more)
        self.check_refused(done, code, part, 29 if launch else 1)

    def files(self):
        return sorted(os.listdir(self.folder)) if os.path.isdir(self.folder) else []

    def path(self, epoch):
        return os.path.join(self.folder, f"checkpoint-{epoch}.safetensors")

    def signalled(self, which, *arguments, launch=(), to=lambda process: process.pid, twice=False):
        """A long run that is sent a signal when it has written a checkpoint, and what it left and said."""
        there = set(self.files())
        process = subprocess.Popen(self.words(10**8, *arguments, launch=launch), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=environment(launch))
        try:
            until = time.monotonic() + 50
            while time.monotonic() < until and not any(name.startswith("checkpoint-") for name in set(self.files()) - there):
                time.sleep(0.01)
            os.kill(to(process), which)
            return process, *process.communicate(timeout=50)
        finally:
            process.kill()
            process.wait()

    def test_a_resumed_run_ends_as_one_that_was_not_interrupted(self):
        models = [[], ["--embedding", "5"], ["--model", "sage", "--batch", "8", "--fanout", "3"], ["--model", "gcnii", "--stages", "2", "--history", "exact"]]
        for k, model in enumerate(models):
            self.folder = os.path.join(self.scratch, str(k))
            expected = self.train(30, "--ranks", "4", *model)
            self.assertEqual((expected["resumed_from"], expected["stopped"]), (None, False))
            first = self.train(13, "--ranks", "4", *model, *self.kept("--every", "5"))
            self.assertEqual(self.files(), ["checkpoint-10.safetensors", "checkpoint-13.safetensors"])
            self.assertEqual(first["loss"], expected["loss"][:13])
            result = self.train(30, "--ranks", "4", *model, *self.kept("--keep", "1", "--resume"))
            self.assertEqual((result["resumed_from"], result["epochs"]), (13, 30))
            for same in ("loss", "train_accuracy", "test_accuracy", "best_val_epoch", "test_accuracy_at_best_val", "words_received", "messages"):
                self.assertEqual(result[same], expected[same], same)
            self.assertEqual(result["words_received"], result["predicted_words_received"])
            self.assertEqual(self.files(), ["checkpoint-30.safetensors"])
            again = self.train(30, "--ranks", "4", *model, *self.kept("--resume"))
            self.assertEqual((again["resumed_from"], again["loss"], again["words_received"]["total"]), (30, expected["loss"], 0))

    def test_on_other_ranks_under_another_policy_and_partition(self):
        expected = self.train(24, "--embedding", "3", "--dropout", "0")["loss"]
        # An embedding begins by the order of the rows, so the first part has that of the data.
        places = [["--policy", "grid_2d", "--ranks", "4"], ["--ranks", "2", "--partition", "random"], ["--policy", "auto", "--ranks", "3", "--partition", "random"]]
        if LAUNCH:
            places.insert(1, ["--policy", "split_3d"])
        for k, place in enumerate(places):
            launch = [*LAUNCH, "4"] if place == ["--policy", "split_3d"] else []
            result = self.train(24 * (k + 1) // len(places), "--embedding", "3", "--dropout", "0", *place, *self.kept(*(["--resume"] if k else [])), launch=launch)
        self.assertEqual(len(result["loss"]), 24)
        for a, b in zip(result["loss"], expected):
            self.assertLess(abs(a - b), 1e-10 * b)

    def test_signals_end_the_run_after_an_epoch(self):
        shapes = [["--ranks", "3"], ["--ranks", "2", "--batch", "8"], ["--stages", "2"]]
        for k, shape in enumerate(shapes):
            self.folder = os.path.join(self.scratch, str(k))
            which = [signal.SIGTERM, signal.SIGINT][k % 2]
            process, said, errors = self.signalled(which, *shape, *self.kept("--every", "3"), "--evaluate-every", "999999999")
            with open(self.out) as f:
                result = json.load(f)
            done = result["epochs"]
            scores = result["val_accuracies"]  # of the epoch that the signal ends, and of no other
            self.assertEqual((scores[:-1], scores[-1]), ([None] * (done - 1), result["val_accuracy"]))
            self.assertEqual((result["val_accuracy"], result["best_val_epoch"]), (result["scores"]["val"]["accuracy"], done))
            self.assertEqual((process.returncode, said), (0, ""))
            self.assertEqual(errors, f"train: {which.name} ended training after epoch {done} of 100000000; --resume continues from there\n")
            self.assertEqual((result["stopped"], len(result["loss"])), (True, done))
            self.assertTrue(os.path.exists(self.path(done)))
            self.assertEqual(self.train(done + 2, *shape, *self.kept("--resume"))["resumed_from"], done)

    @unittest.skipUnless(LAUNCH, "there is no mpirun here: CMake says so")
    def test_a_signal_to_one_process_of_a_job_ends_all_after_the_same_epoch(self):
        def children(process):
            with open(f"/proc/{process}/task/{process}/children") as f:
                return [int(word) for word in f.read().split()]

        def last_rank(process):
            ranks = [p for p in children(process.pid) if os.path.samefile(f"/proc/{p}/exe", TRAIN)]
            return ranks[-1]
        process, said, errors = self.signalled(signal.SIGTERM, *self.kept("--every", "3"), launch=[*LAUNCH, "3"], to=last_rank)
        self.assertEqual((process.returncode, said), (0, ""), errors)
        self.assertIn("train: a signal to another rank ended training after epoch ", errors)
        process, said, errors = self.signalled(signal.SIGKILL, *self.kept("--every", "3", "--resume"), launch=[*LAUNCH, "3"], to=last_rank)
        self.assertNotEqual(process.returncode, 0)
        newest = max(int(name[11:-12]) for name in self.files() if name.startswith("checkpoint-"))
        self.assertEqual(self.train(newest + 5, *self.kept("--resume"))["resumed_from"], newest)

    def test_without_checkpoints_a_signal_keeps_the_report(self):
        process = subprocess.Popen(self.words(10**8), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until_caught(signal.SIGTERM, process.pid)
        process.terminate()
        errors = process.communicate(timeout=50)[1]
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)
        self.assertIn("without --checkpoint, nothing is saved", errors)

    @unittest.skipUnless(LAUNCH, "there is no mpirun here: CMake says so")
    def test_without_checkpoints_a_signal_to_one_process_of_a_job_is_its_exit_code(self):
        process = subprocess.Popen(self.words(10**8, launch=[*LAUNCH, "3"]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(True))
        ranks = []
        until = time.monotonic() + 30
        while len(ranks) < 3 and time.monotonic() < until:
            time.sleep(0.1)
            with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
                ranks = [p for p in f.read().split() if os.path.samefile(f"/proc/{p}/exe", TRAIN)]
        wait_until_caught(signal.SIGTERM, ranks[-1])
        os.kill(int(ranks[-1]), signal.SIGTERM)
        errors = process.communicate(timeout=50)[1]
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)

    def test_a_folder_is_for_one_run_at_a_time(self):
        first = subprocess.Popen(self.words(10**8, *self.kept("--every", "1")), stderr=subprocess.PIPE, text=True)
        try:
            until = time.monotonic() + 50
            while time.monotonic() < until and not any(name.startswith("checkpoint-") for name in self.files()):
                time.sleep(0.01)
            for resume in ([], ["--resume"]):
                self.refused(1, f"{self.folder}: another run is writing its checkpoints there", 5, *self.kept(*resume))
            self.assertIsNone(first.poll())
            first.terminate()
            self.assertIn("--resume continues from there", first.communicate(timeout=50)[1])
            self.assertEqual(first.returncode, 0)
        finally:
            first.kill()

    def test_killed_and_resumed(self):
        for _ in range(3):
            process, _, _ = self.signalled(signal.SIGKILL, *self.kept("--every", "2", "--resume"))
            self.assertEqual(process.returncode, -signal.SIGKILL)
        result = self.train(max(int(name[11:-12]) for name in self.files() if name.startswith("checkpoint-")) + 3, *self.kept("--resume"))
        self.assertGreater(result["resumed_from"], 0)
        self.assertFalse([name for name in self.files() if not name.startswith("checkpoint-")])

    def test_damaged_checkpoints_are_named_and_passed_over(self):
        self.train(6, *self.kept("--every", "2", "--keep", "3"))
        with open(self.path(6), "r+b") as f:
            f.truncate(1000)
        with open(self.path(4), "r+b") as f:
            f.seek(-5, os.SEEK_END)
            byte = f.read(1)[0]
            f.seek(-5, os.SEEK_END)
            f.write(bytes([byte ^ 16]))
        done = self.run_with(6, *self.kept("--resume"))
        said = done.stderr.splitlines()
        self.assertEqual((done.returncode, len(said)), (0, 2), done.stderr)
        self.assertTrue(said[0].startswith(f"train: {self.path(6)}: ") and said[0].endswith("; it is passed over"), said[0])
        self.assertEqual(said[1], f"train: {self.path(4)}: is not as its checksum says; it is passed over")
        with open(self.out) as f:
            self.assertEqual(json.load(f)["resumed_from"], 2)
        for epoch in (4, 6):
            open(self.path(epoch), "wb").close()
        os.remove(self.path(2)) if os.path.exists(self.path(2)) else None
        done = self.run_with(6, *self.kept("--resume"))
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (0, 3), done.stderr)
        self.assertIn("has no checkpoint to resume from; training starts anew", done.stderr)

    def test_what_is_refused(self):
        self.refused(2, "--resume needs --checkpoint", 5, "--resume")
        self.refused(2, "--every needs --checkpoint", 5, "--every", "2")
        self.refused(2, "--every: 0 is not a positive whole number", 5, *self.kept("--every", "0"))
        self.assertEqual(self.train(4, *self.kept("--resume"), says=f"train: {self.folder} has no checkpoint to resume from; training starts anew\n")["resumed_from"], None)
        for more in ([], ["--ranks", "3"]):
            self.refused(1, "has checkpoints of an earlier run, the newest of epoch 4; resume it", 8, *self.kept(), *more)
            self.refused(1, "that run was trained with --model gcn, this one is with --model sage", 8, *self.kept("--resume"), *more, "--model", "sage")
            self.refused(1, "that run was trained with --lr 0.01, this one is with --lr 0.1", 8, *self.kept("--resume"), *more, "--lr", "0.1")
            self.refused(1, "that run was trained without --clip, this one is with --clip 1", 8, *self.kept("--resume"), *more, "--clip", "1")
            self.refused(1, "4 epochs have been trained, more than the 3", 3, *self.kept("--resume"), *more)
        if LAUNCH:
            self.refused(1, "that run was trained with --seed 0, this one is with --seed 3", 8, *self.kept("--resume"), "--seed", "3", launch=[*LAUNCH, "3"])

    def test_where_nothing_can_be_written(self):
        open(self.folder, "w").close()
        self.refused(1, f"cannot make {self.folder}", 5, *self.kept())
        self.folder = os.path.join(self.folder, "below")
        self.refused(1, f"cannot make {self.folder}", 5, *self.kept())

    def test_a_full_disk_ends_the_run_and_leaves_the_last_checkpoint(self):
        self.train(4, *self.kept())
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        self.refused(1, f"{self.path(8)}: cannot be written (File too large)", 8, *self.kept("--resume"), "--ranks", "3", preexec_fn=limit)
        self.assertEqual(self.files(), ["checkpoint-4.safetensors"])
        disk = os.path.join(self.scratch, "disk")
        os.mkdir(disk)
        mounted = shutil.which("mount") and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", disk], capture_output=True).returncode == 0
        if mounted:
            self.addCleanup(subprocess.run, ["umount", disk])
            self.folder = os.path.join(disk, "kept")
            self.refused(1, "cannot be written (No space left on device)", 40, *self.kept("--every", "1", "--keep", "9"))
            newest = max(int(name[11:-12]) for name in self.files())
            shutil.copytree(self.folder, os.path.join(self.scratch, "copy"))
            self.folder = os.path.join(self.scratch, "copy")
            self.assertEqual(self.train(newest + 1, *self.kept("--resume"))["resumed_from"], newest)
            if LAUNCH:
                self.folder = os.path.join(disk, "kept")
                self.refused(1, "cannot be written (No space left on device)", 40, *self.kept("--every", "1", "--keep", "9", "--resume"), launch=[*LAUNCH, "3"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
