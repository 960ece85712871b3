#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers over stages in the program: train_stages.py TRAIN [word of the command that starts MPI ranks ...]"""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from program_case import ProgramCase, run

TRAIN, *LAUNCH = sys.argv[1:]
MODELS = {"gcn": ["--layers", "4"], "sage": ["--layers", "3"], "gin": ["--layers", "3"], "gcnii": ["--layers", "2"], "resgcn": ["--layers", "2"]}
KEYS = ["stages", "chunks", "stage_layers", "bubble", "boundary_words", "history_bytes", "exact_loss"]
WITH_METIS = "without METIS" not in run(TRAIN, "--data", "karate", "--model", "gcn", "--epochs", "1", "--partition", "metis", "--quiet").stderr


class Stages(ProgramCase):
    def train(self, model, *arguments, command=None, precision="f64"):
        done = run(TRAIN, "--data", "karate", "--model", model, *MODELS[model], "--hidden", "6", "--epochs", "5", "--precision", precision, "--quiet", "--json", self.out,
                   *arguments, command=command)
        return self.result_of(done)

    def test_without_history_losses_are_those_of_the_whole_graph(self):
        for model in MODELS:
            expected = self.train(model)
            self.assertFalse(set(KEYS) & set(expected))
            for arguments in (["--stages", "2", "--chunks", "1"], ["--stages", "1"], ["--stages", "2", "--history", "exact"],
                              ["--stages", "2", "--ranks", "4", "--chunks", "1"],
                              ["--stages", "2", "--ranks", "8", "--policy", "grid_2d", "--mesh", "2x2x1", "--history", "exact", "--chunks", "3"]):
                result = self.train(model, *arguments)
                self.same_losses(result, expected, (model, arguments))
                self.assertEqual(result["words_received"], result["predicted_words_received"], (model, arguments))
                self.assertEqual(result["test_accuracy"], expected["test_accuracy"], (model, arguments))

    def test_the_json(self):
        result = self.train("gcn", "--stages", "2", "--guard", "2", "--stage-layers", "3,1", "--ranks", "4")
        whole = list(self.train("gcn"))
        at = whole.index("peak_bytes")
        self.assertEqual(list(result), whole[:at] + KEYS + whole[at:])
        self.assertEqual((result["policy"], result["ranks"], result["mesh"], result["candidates"]), ("row_1d", 4, [2, 1, 1], []))
        self.assertEqual((result["stages"], result["chunks"], result["stage_layers"]), (2, 8, [3, 1]))
        self.assertEqual(len(result["bubble"]), 2)
        for share in result["bubble"]:
            self.assertTrue(0 <= share <= 1, result["bubble"])
        self.assertEqual(result["boundary_words"], {"max_rank": 17 * 6, "total": 2 * 34 * 6})  # forward and backward
        self.assertGreater(result["history_bytes"]["max_rank"], 0)
        self.assertLess(result["history_bytes"]["max_rank"], result["history_bytes"]["total"])
        self.assertEqual([c["epoch"] for c in result["exact_loss"]], [2, 4])
        for c in result["exact_loss"]:
            self.assertEqual(list(c), ["epoch", "loss", "exact_loss", "logits_difference", "gradient_cosine", "diverged", "reason"])
            self.assertEqual(c["loss"], result["loss"][c["epoch"] - 1])
            self.assertNotEqual(c["loss"], c["exact_loss"])
        self.assertEqual(self.train("gcn", "--stages", "2", "--history", "exact")["history_bytes"], {"max_rank": 0, "total": 0})
        self.assertEqual(self.train("gcnii", "--stages", "2", "--chunks", "3")["boundary_words"]["total"], 2 * 34 * 2 * 6)  # and H_0

    def test_numbers_of_2_bytes(self):
        own, half, stored = (self.train("gcn", "--stages", "2", "--ranks", "4", *more, precision="f32") for more in ([], ["--operands", "bf16"], ["--storage", "bf16"]))
        for result in (half, stored):
            self.assertEqual(result["words_received"], own["words_received"])
            self.assertEqual(2 * result["history_bytes"]["total"], own["history_bytes"]["total"])
            self.assertNotEqual(result["loss"], own["loss"])

    def test_policies_are_compared_inside_a_stage(self):
        chosen = self.train("gcn", "--stages", "2", "--ranks", "8", "--policy", "auto", "--chunks", "3")
        k, = (k for k in chosen["candidates"] if k["chosen"])
        self.assertEqual((k["policy"], k["mesh"]), (chosen["policy"], chosen["mesh"]))
        self.assertEqual(k["predicted_words_received"]["max_rank"], chosen["words_received"]["max_rank"])
        self.assertEqual((chosen["stages"], chosen["chunks"]), (2, 3))
        every = self.train("gcn", "--stages", "2", "--ranks", "8", "--policy", "grid_2d", "--mesh", "auto")
        self.assertEqual([k["mesh"] for k in every["candidates"]], [[4, 1, 1], [2, 2, 1], [1, 4, 1]])

    def test_every_option_has_its_effect(self):
        stages = ["--stages", "2", "--chunks", "4"]
        expected = self.train("resgcn", *stages, "--dropout", "0")["loss"]
        for arguments in (["--window", "2"], ["--no-shuffle"], ["--no-compensation"], ["--history", "zero", "--no-compensation"], ["--history", "halo"], ["--exact-epochs", "2"],
                          ["--guard", "2", "--tolerance", "1e-9", "--on-divergence", "refresh"], ["--guard", "2", "--tolerance", "1e-9", "--on-divergence", "warm-up"],
                          ["--guard", "2", "--tolerance", "1e-9", "--on-divergence", "exact"]):
            self.assertNotEqual(self.train("resgcn", *stages, "--dropout", "0", *arguments)["loss"], expected, arguments)
        for arguments in (["--no-shuffle=false"], ["--guard", "2", "--tolerance", "1e-9"], ["--stage-layers", "1,4"], ["--stage-layers", "measured"], ["--chunk-cut", "even"]):
            self.same_losses(self.train("resgcn", *stages, "--dropout", "0", *arguments), {"loss": expected}, arguments)

    def test_chunks_of_partitions(self):
        for cut in ["even", "nonzeros"] + ["metis"] * WITH_METIS:
            for partition in ["none", "random"] + ["metis"] * WITH_METIS:
                arguments = ["--stages", "2", "--chunk-cut", cut, "--partition", partition, "--ranks", "4"]
                result = self.train("gcn", *arguments)
                self.assertEqual(result["words_received"], result["predicted_words_received"], arguments)
                self.assertEqual(result["partition"]["parts"], 2)
        if not WITH_METIS:
            done = run(TRAIN, "--data", "karate", "--model", "gcn", "--stages", "2", "--chunk-cut", "metis", "--quiet")
            self.check_refused(done, 1, "this program was built without METIS; install libmetis-dev")

    def test_the_json_repeats_the_run(self):
        for arguments in (["--stages", "2", "--ranks", "4", "--chunk-cut", "metis" if WITH_METIS else "nonzeros", "--partition", "random", "--window", "2", "--no-compensation"],
                          ["--stages", "3", "--chunks", "5", "--history", "zero", "--no-shuffle", "--guard", "1", "--tolerance", "0.01", "--least-cosine", "-0.5", "--on-divergence", "warm-up"],
                          ["--stages", "2", "--ranks", "4", "--chunks", "3", "--history", "halo", "--window", "2"],
                          ["--stages", "2", "--ranks", "8", "--policy", "split_3d", "--mesh", "2x1x2", "--exact-epochs", "2", "--stage-layers", "1,3"]):
            first = self.train("gcn", *arguments)
            self.again(TRAIN, first, "loss", "stage_layers", "chunks", "exact_loss", "words_received", "history_bytes", "test_accuracy")

    def test_what_is_shown(self):
        arguments = ["--data", "karate", "--model", "gcn", "--layers", "3", "--epochs", "6", "--stages", "3", "--chunks", "2", "--guard", "3"]
        done = run(TRAIN, *arguments, "--tolerance", "1e-9")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        said = [line for line in done.stdout.splitlines() if line.startswith("guard: loss ")]
        self.assertEqual(["no longer follows the exact computation: its loss is " in line for line in said], [True, True], done.stdout)
        self.assertEqual(run(TRAIN, *arguments, "--tolerance", "1e9", "--least-cosine", "-1").stdout.count("no longer follows"), 0)
        for part in ("row_1d on 3 ranks (1x1x1 in each stage)", "stage 2: 1 layer, idle for ", "2 chunks: ", "words between stages"):
            self.assertIn(part, done.stdout)
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "run.json")
            stopped = run(TRAIN, *arguments, "--tolerance", "1e-9", "--on-divergence", "stop", "--json", out)
            self.assertFalse(os.path.exists(out))
        self.assertEqual((stopped.returncode, len(stopped.stderr.splitlines())), (1, 1), stopped.stderr)
        self.assertIn("the pipeline no longer follows the exact computation in epoch 3: its loss is ", stopped.stderr)
        self.assertEqual(stopped.stdout.count("guard: loss "), 1, stopped.stdout)
        alone = run(TRAIN, *arguments[:-4], "--chunks", "1")
        self.assertIn("\n1 chunk: ", alone.stdout)

    def test_what_is_refused(self):
        two = ["--stages", "2"]
        for code, part, *arguments in ((2, "--chunks needs --stages", "--chunks", "5"), (2, "--no-shuffle needs --stages", "--no-shuffle"),
                                       (2, "--exact-epochs needs --stages", "--exact-epochs", "2"), (2, "--stages: 0 is not a positive", "--stages", "0"),
                                       (2, "--batch and --stages do not go together", *two, "--batch", "4"),
                                       (2, "--embedding and --stages do not go together", *two, "--embedding", "4"),
                                       (2, "--stages is for --model gcn", *two, "--model", "appnp"), (2, "--stages is for --model gcn", *two, "--coupling", "decoupled"),
                                       (2, "--stages is for --model gcn", *two, "--model", "sage", "--aggregation", "max"),
                                       (2, "--stage-layers has 3 numbers for 2 stages", *two, "--stage-layers", "1,1,1"),
                                       (2, "3 layers in total for 2 stages; this model has 2 layers with parameters", *two, "--stage-layers", "1,2"),
                                       (2, "a model of 2 layers with parameters cannot be cut into 3 stages", "--stages", "3"),
                                       (2, "3 ranks are not 2 stages of equally many", *two, "--ranks", "3"), (2, "1 rank is not 2 stages", *two, "--ranks", "1"),
                                       (2, "--window is for --history window and halo", *two, "--history", "zero", "--window", "3"),
                                       (2, "--tolerance needs --guard", *two, "--tolerance", "0.1"), (2, "--least-cosine needs --guard", *two, "--least-cosine", "0.1"),
                                       (2, "--stage-layers takes numbers, or measured alone", *two, "--stage-layers", "1,measured"),
                                       (2, "--stage-layers: all is not a positive whole number", *two, "--stage-layers", "all"),
                                       (2, "--on-divergence needs --guard", *two, "--on-divergence", "stop"),
                                       (2, "--history: old is not one of window", *two, "--history", "old"),
                                       (2, "--guard has nothing to compare with --history exact", *two, "--guard", "2", "--history", "exact"),
                                       (2, "--guard 7 compares nothing in 6 epochs", *two, "--guard", "7", "--epochs", "6"),
                                       (2, "--chunks 40 is more than the 34 vertices", *two, "--chunks", "40"),
                                       (2, "--chunk-cut metis needs a --policy and a --mesh", *two, "--policy", "auto", "--chunk-cut", "metis"),
                                       (2, "--memory needs a --policy and a mesh for --stages", *two, "--policy", "auto", "--memory", "1G"),
                                       (2, "--exchange-pieces and --stages do not go together", *two, "--exchange-pieces", "2"),
                                       (2, "--ranks-of-node and --stages do not go together", *two, "--ranks-of-node", "2"),
                                       (2, "in a stage, mesh 2x1x1 has 2 places for 1 ranks", *two, "--policy", "row_1d", "--mesh", "2x1x1")):
            model = [] if "--model" in arguments else ["--model", "gcn"]
            done = run(TRAIN, "--data", "karate", *model, *arguments, "--quiet")
            self.check_refused(done, code, part)

    @unittest.skipUnless(LAUNCH, "there is no mpirun here: CMake says so")
    def test_over_mpi(self):
        for arguments in (["--stages", "2", "--chunk-cut", "metis" if WITH_METIS else "even"], ["--stages", "4", "--chunks", "3", "--guard", "2"], ["--stages", "2", "--history", "halo"], ["--stages", "2", "--history", "exact"]):
            expected = self.train("gcn", *arguments, "--ranks", "4")
            result = self.train("gcn", *arguments, "--comm", "mpi", command=[*LAUNCH, "4"])
            self.same_losses(result, expected, arguments)
            for same in ("words_received", "boundary_words", "stage_layers", "history_bytes"):
                self.assertEqual(result[same], expected[same], (arguments, same))
        done = run(TRAIN, "--data", "karate", "--model", "gcn", "--layers", "3", "--stages", "3", "--comm", "mpi", "--quiet", command=[*LAUNCH, "4"])
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("4 ranks are not 3 stages of equally many", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
