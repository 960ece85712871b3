# SPDX-License-Identifier: Apache-2.0
"""What the tests of the main programs share: running one, the JSON it writes, what it refuses, and .npy files."""
import json
import os
import shutil
import struct
import subprocess
import tempfile
import time
import unittest


def npy(descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def numbers(descr, values, shape=None):
    """An array of these numbers, a vector unless a shape is given."""
    code = {"<i8": "q", "<i4": "i", "<f4": "f", "<f8": "d", "|u1": "B"}[descr]
    return npy(descr, shape or (len(values),), struct.pack(f"<{len(values)}{code}", *values))


def good_data():
    """A ring of six vertices with two features and two classes."""
    edges = [v for u in range(6) for v in (u, (u + 1) % 6)]
    return {"edges.npy": numbers("<i8", edges, (6, 2)), "features.npy": numbers("<f4", [0.5, 1.0] * 6, (6, 2)),
            "labels.npy": numbers("<i8", [0, 1, 0, 1, 0, 1]), "split.npy": numbers("|u1", [1, 1, 2, 2, 3, 3])}


def environment(command):
    """What MPI's modules leave behind is not the program's; the tests of the library over MPI look at leaks."""
    return {**os.environ, **({"ASAN_OPTIONS": "detect_leaks=0"} if command else {})}


def run(program, *arguments, command=None, timeout=120, **more):
    return subprocess.run([*(command or []), program, *arguments], capture_output=True, text=True, timeout=timeout, env=environment(command), **more)


def wait_until_caught(number, process, seconds=60):
    """Until a process has a handler for this signal: it has begun what the signal is to end."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with open(f"/proc/{process}/status") as f:
            caught = next(int(line.split()[1], 16) for line in f if line.startswith("SigCgt:"))
        if caught >> (number - 1) & 1:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {process} has no handler for signal {number}")


def far_folder(default):
    """Where far memory is put: in memory where there is a GiB of it, since a disk takes most of the time."""
    try:
        return "/dev/shm" if shutil.disk_usage("/dev/shm").free >> 30 else default
    except OSError:
        return default


class ProgramCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(folder.name, "run.json")

    def result_of(self, done, says=None):
        """The JSON of a run that ended well and quietly."""
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        if says is not None:
            self.assertEqual(done.stderr, says)
        with open(self.out) as f:
            return json.load(f)

    def check_refused(self, done, code, part, at_most=1):
        """That a run ended with this code, and said so in one line."""
        self.assertEqual(done.returncode, code, (done.args, done.stderr))
        self.assertIn(part, done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), at_most, done.stderr)

    def same_losses(self, result, expected, what, tolerance=1e-12):
        self.assertEqual(len(result["loss"]), len(expected["loss"]))
        for a, b in zip(result["loss"], expected["loss"]):
            self.assertLess(abs(a - b), tolerance * b, what)

    def again(self, program, first, *compared):
        """Runs what the options in its JSON say, and compares what is named."""
        options = [f"--{name}={json.dumps(value) if not isinstance(value, str) else value}" for name, value in first["run"]["options"].items()]
        again = self.result_of(run(program, *options, "--quiet", "--json", self.out))
        for same in compared:
            self.assertEqual(again[same], first[same], same)
        self.assertEqual(again["run"]["options"], first["run"]["options"])
