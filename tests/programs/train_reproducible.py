#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reproducible runs of the program: train_reproducible.py TRAIN [word of the command that starts MPI ranks ...]"""
import sys
import unittest

sys.dont_write_bytecode = True
from program_case import ProgramCase, run

TRAIN, *LAUNCH = sys.argv[1:]
POLICIES = ["row_1d", "replicated_1_5d", "grid_2d", "split_3d", "feature_column", "feature_row"]


def train(*arguments, command=None):
    return run(TRAIN, "--data", "karate", "--reproducible", "--quiet", *arguments, command=command)


class Reproducible(ProgramCase):
    def train(self, *arguments, model=("gcn",), command=None):
        return self.result_of(train("--model", *model, "--epochs", "6", "--json", self.out, *arguments, command=command))

    def test_losses_are_the_same_numbers_everywhere(self):
        for precision in ("f32", "f64"):
            expected = self.train("--precision", precision)
            self.assertIs(expected["run"]["options"]["reproducible"], True)
            for policy in POLICIES + ["auto"]:
                result = self.train("--precision", precision, "--policy", policy, "--ranks", "6")
                self.assertEqual(result["loss"], expected["loss"], policy)
                self.assertEqual(result["words_received"], result["predicted_words_received"], policy)
            if LAUNCH:
                result = self.train("--precision", precision, "--policy", "grid_2d", "--comm", "mpi", command=[*LAUNCH, "4"])
                self.assertEqual(result["loss"], expected["loss"])

    def test_attention_and_maxima_are_the_same_everywhere(self):
        for model in (("sage", "--aggregation", "max"), ("gat", "--heads", "4", "--hidden", "12")):
            for precision in ("f32", "f64"):
                expected = self.train("--precision", precision, model=model)
                for policy in POLICIES + ["auto"]:
                    result = self.train("--precision", precision, "--policy", policy, "--ranks", "6", model=model)
                    self.assertEqual(result["loss"], expected["loss"], policy)
                    self.assertEqual(result["words_received"], result["predicted_words_received"], policy)
                if LAUNCH:
                    result = self.train("--precision", precision, "--policy", "grid_2d", "--comm", "mpi", model=model, command=[*LAUNCH, "4"])
                    self.assertEqual(result["loss"], expected["loss"])

    def test_so_are_those_of_mini_batches(self):
        for precision in ("f32", "f64"):
            batches = ("--precision", precision, "--batch", "7", "--fanout", "4,3", "--dropout", "0.3")
            expected = self.train(*batches, model=("sage",))
            arrangements = [("--ranks", "3", "--placement", "even", "--threads", "1"), ("--ranks", "6", "--placement", "owner"),
                            ("--ranks", "4", "--placement", "column_gather", "--policy", "grid_2d"),
                            ("--ranks", "2", "--graph", "cut", "--scores", "sampled")]
            for arrangement in arrangements:
                result = self.train(*batches, *arrangement, model=("sage",))
                self.assertEqual(result["loss"], expected["loss"], arrangement)
                if "cut" not in arrangement:
                    self.assertEqual(result["words_received"], result["predicted_words_received"], arrangement)
            if LAUNCH:
                result = self.train(*batches, "--comm", "mpi", model=("sage",), command=[*LAUNCH, "4"])
                self.assertEqual(result["loss"], expected["loss"])

    def test_what_cannot_be_reproducible_is_refused(self):
        for option, part in ((["--model", "gcn", "--stages", "2"], "--stages"),
                             (["--model", "gcn", "--batch", "8", "--sampler", "walks"], "--sampler walks"),
                             (["--model", "gcn", "--batch", "8", "--placement", "column"], "--placement column"),
                             (["--model", "gat", "--batch", "8"], "--model gat"),
                             (["--model", "gcn", "--device", "cuda"], "needs --device cpu")):
            self.check_refused(train(*option), 2, part)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
