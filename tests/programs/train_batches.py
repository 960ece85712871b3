#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mini-batches of the program: train_batches.py TRAIN [word of the command that starts MPI ranks ...]"""
import sys
import unittest

sys.dont_write_bytecode = True
from program_case import ProgramCase, run

TRAIN, *LAUNCH = sys.argv[1:]
PLACEMENTS = ["even", "owner", "column", "column_gather"]
BATCH = ["--batch", "8", "--fanout", "4,3"]


class Batches(ProgramCase):
    def train(self, *arguments, command=None):
        model = [] if "--model" in arguments else ["--model", "sage"]
        return self.result_of(run(TRAIN, "--data", "karate", *model, "--epochs", "6", "--precision", "f64", "--quiet", "--json", self.out, *arguments, command=command))

    def same_losses(self, result, expected, what):
        super().same_losses(result, expected, what, 1e-9)

    def test_every_placement_and_rank_trains_alike_with_the_words_predicted(self):
        for model in ("gcn", "sage", "gin", "gat"):
            expected = self.train("--model", model, *BATCH)
            self.assertEqual(expected["remote_rows"], {"max_rank": 0, "total": 0})
            for placement in PLACEMENTS + ["auto"]:
                result = self.train("--model", model, *BATCH, "--placement", placement, "--ranks", "3", "--micro-batches", "2")
                self.same_losses(result, expected, (model, placement))
                self.assertEqual(result["words_received"], result["predicted_words_received"], (model, placement))
                self.assertIn(result["placement"], PLACEMENTS)
                self.assertEqual(len(result["placements"]), 4 if placement == "auto" else 0)
                self.assertEqual(result["policy"], "row_1d")
        self.assertEqual([k for k in result if k not in expected], [])
        for key in ("iterations", "sampled_edges", "requested_rows"):
            self.assertGreater(result[key], 0)
        self.assertLessEqual(result["roots"]["max_rank"], 3)

    def test_the_other_options(self):
        expected = self.train(*BATCH)
        cut = self.train(*BATCH, "--ranks", "3", "--graph", "cut")
        self.same_losses(cut, expected, "cut")
        self.assertEqual({entry["phase"] for entry in cut["ledger"]}, {"sampling", "features", "training", "evaluation"})
        self.same_losses(self.train(*BATCH, "--ranks", "4", "--scores", "sampled", "--policy", "grid_2d"), expected, "sampled")
        self.assertNotEqual(self.train(*BATCH, "--replace")["loss"], expected["loss"])
        self.same_losses(self.train("--batch", "8", "--fanout", "10"), self.train("--batch", "8"), "default")
        self.assertNotEqual(self.train("--batch", "8", "--fanout", "-1")["loss"], expected["loss"])
        for sampler in (["--sampler", "layers", "--fanout", "9"], ["--sampler", "walks"]):
            first = self.train("--batch", "8", *sampler, "--placement", "even", "--ranks", "2")
            self.same_losses(self.train("--batch", "8", *sampler, "--placement", "column", "--ranks", "2"), first, sampler)

    def test_embeddings(self):
        first = self.train(*BATCH, "--embedding", "6", "--placement", "even")
        self.assertLess(first["loss"][-1], first["loss"][0])
        for placement in PLACEMENTS:
            self.same_losses(self.train(*BATCH, "--embedding", "6", "--placement", placement, "--ranks", "3"), first, placement)
        self.assertLess(self.train("--embedding", "6", "--ranks", "4", "--policy", "split_3d")["loss"][-1], 2)

    def test_the_json_repeats_the_run(self):
        for arguments in ([*BATCH, "--ranks", "3", "--partition", "random"], ["--batch", "6", "--sampler", "walks", "--fanout", "3", "--ranks", "2"]):
            first = self.train(*arguments)
            self.again(TRAIN, first, "loss", "placement", "remote_rows", "test_accuracy")

    def test_what_is_refused(self):
        for code, part, *arguments in ((2, "--fanout needs --batch", "--fanout", "5"), (2, "--placement needs --batch", "--placement", "owner"),
                                       (2, "--fanout has 3 numbers, and the model 2 layers", "--batch", "8", "--fanout", "5,5,5"),
                                       (2, "--fanout of layer 1: 0 draws nothing", "--batch", "8", "--fanout", "0,5"),
                                       (2, "--fanout of layer 2: -2 is not a number of neighbours", "--batch", "8", "--fanout", "5,2/-2"),
                                       (2, "--fanout of layer 2: numbers with slashes are for", "--batch", "8", "--fanout", "5,2/0"), (2, "--batch", "--batch", "0"),
                                       (2, "--fanout of layer 2: 0/0 draws nothing", "--model", "rgcn", "--batch", "8", "--fanout", "5,0/0"),
                                       (2, "--fanout of layer 1: numbers with slashes are for", "--model", "meshgraphnet", "--batch", "8", "--fanout", "5/3"),
                                       (2, "--fanout of layer 2 is 3, and that of layer 1 5: layers of meshgraphnet have the same edges", "--model", "meshgraphnet",
                                        "--layers", "2", "--batch", "8", "--fanout", "5,3"),
                                       (2, "--sampler layers draws other edges for each layer, and model meshgraphnet carries", "--model", "meshgraphnet", "--batch", "8",
                                        "--sampler", "layers"),
                                       (2, "--fanout of --sampler walks is one length from 1 to 10000", "--batch", "8", "--sampler", "walks", "--fanout", "-1"),
                                       (2, "--sampler walks needs --scores exact", "--batch", "8", "--sampler", "walks", "--scores", "sampled"),
                                       (2, "--replace is for --sampler neighbours", "--batch", "8", "--sampler", "layers", "--replace"),
                                       (2, "--fanout of layer 1: -1 is for --sampler neighbours", "--batch", "8", "--sampler", "layers", "--fanout", "-1"),
                                       (2, "--policy auto and --batch do not go together", "--batch", "8", "--policy", "auto"),
                                       (2, "cannot be trained on sampled neighbours", "--batch", "8", "--model", "appnp"),
                                       (2, "--placement column multiplies slices", "--batch", "8", "--placement", "column", "--model", "gine"),
                                       (2, "--sampler walks is for edges of one type", "--batch", "8", "--sampler", "walks", "--model", "rgcn"),
                                       (1, "relations need the type of each edge", "--batch", "8", "--model", "rgcn"),
                                       (2, "gcn in its decoupled form cannot be trained on sampled", "--batch", "8", "--model", "gcn", "--coupling", "decoupled")):
            model = [] if "--model" in arguments else ["--model", "gcn"]
            for ranks in ("1", "3"):
                self.check_refused(run(TRAIN, "--data", "karate", *model, *arguments, "--ranks", ranks, "--quiet"), code, part)

    @unittest.skipUnless(LAUNCH, "there is no mpirun here: CMake says so")
    def test_over_mpi(self):
        expected = self.train(*BATCH)
        for placement in PLACEMENTS:
            result = self.train(*BATCH, "--placement", placement, "--comm", "mpi", command=[*LAUNCH, "2"])
            self.same_losses(result, expected, placement)
            self.assertEqual(result["words_received"], result["predicted_words_received"], placement)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
