# SPDX-License-Identifier: Apache-2.0
"""Training and prediction: the bits of the programs `train` and `predict`, which PARTITA_TRAIN and PARTITA_PREDICT name."""
import ast
import concurrent.futures
import inspect
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import unittest

import numpy as np
import partita
import partita._core
import partita.sparse

TRAIN, PREDICT = os.environ["PARTITA_TRAIN"], os.environ["PARTITA_PREDICT"]
DATA = os.environ.get("PARTITA_DATA")  # a folder with cora


def losses_of_program(folder, *words):
    """The losses that the program writes."""
    out = pathlib.Path(folder) / "out.json"
    subprocess.run([TRAIN, *map(str, words), "--quiet", "--json", out], check=True)
    return json.loads(out.read_text())["loss"]


class Training(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def tearDown(self):
        partita.ranks(1)

    def test_losses_are_the_programs_bit_for_bit(self):
        for ranks, policy, precision, options in (
                (1, "row_1d", "f32", {"model": "gcn"}), (2, "grid_2d", "f64", {"model": "gat", "heads": 2, "hidden": [4]}),
                (4, "grid_2d", "f32", {"model": "sage", "hidden": [8, 8], "dropout": 0.3}), (3, "auto", "f32", {"model": "gcnii", "layers": 3}),
                (4, "split_3d", "f64", {"model": "gin", "optimizer": "sgd", "momentum": 0.5, "lr": 1e-3}),
                (2, "row_1d", "f32", {"model": "gcn", "class_weights": "balanced", "label_smoothing": 0.1, "clip": 1.0}),
                (2, "row_1d", "f32", {"model": "sage", "batch": 2, "fanout": [3, 3], "seed": 5})):
            with self.subTest(ranks=ranks, policy=policy, options=options):
                words = [w for name, value in options.items() for w in ("--" + name.replace("_", "-"),
                         ",".join(map(str, value)) if isinstance(value, list) else value)]
                right = losses_of_program(self.folder.name, "--data", "karate", *words, "--epochs", 8, "--ranks", ranks, "--policy", policy,
                                          "--precision", precision, "--threads", 1)
                partita.ranks(ranks)
                fit = partita.train("karate", policy=policy, precision=precision, threads=1, epochs=8, **options)
                self.assertEqual(fit.loss, right)
                self.assertEqual(len(right), 8)

    @unittest.skipUnless(DATA, "there is no real data")
    def test_three_lines_train_cora(self):
        cora = pathlib.Path(DATA, "cora")
        right = losses_of_program(self.folder.name, "--data", cora, "--model", "gcn", "--epochs", 30)
        fit = partita.train(cora, model="gcn", epochs=30)
        self.assertEqual(fit.loss, right)
        self.assertGreater(fit.test_accuracy, 0.7)

    def test_words_are_those_that_were_predicted(self):
        partita.ranks(4)
        fit = partita.train("karate", policy="grid_2d", epochs=3)
        self.assertEqual((fit.policy, fit.mesh), ("grid_2d", "2x2x1"))
        self.assertGreater(fit.words_received, 0)
        self.assertEqual(fit.words_received, fit.predicted_words_received)
        self.assertEqual([len(fit.val_accuracies), len(fit.train_accuracies), len(fit.test_accuracies), len(fit.seconds)], [3] * 4)

    def test_arrays_train_as_the_same_files_do(self):
        rng = np.random.default_rng(2)
        n = 60
        edges, features = rng.integers(0, n, (300, 2)), rng.random((n, 7), np.float32)
        labels, train, test = rng.integers(0, 3, n), np.arange(n) < 20, np.arange(40, n)
        folder = pathlib.Path(self.folder.name)
        split = np.zeros(n, np.uint8)
        split[train], split[20:40], split[test] = 1, 2, 3
        for name, array in (("edges", edges), ("features", features), ("labels", labels), ("split", split)):
            np.save(folder / f"{name}.npy", array)
        right = losses_of_program(folder, "--data", folder, "--model", "gcn", "--epochs", 5)
        data = partita.graph(edges, features, labels, train=train, validation=np.arange(20, 40), test=test)
        self.assertEqual((data.vertices, data.features, data.classes, data.edges), (n, 7, 3, 300))
        self.assertEqual(partita.train(data, epochs=5).loss, right)
        for wrong in ({"edges": edges + n}, {"labels": labels - 1}, {"features": features[:9]}):
            given = {"edges": edges, "features": features, "labels": labels, **wrong}
            with self.subTest(wrong=list(wrong)), self.assertRaises(ValueError):
                partita.graph(**given, train=train)

    def test_saved_models_predict_on_other_ranks(self):
        model = pathlib.Path(self.folder.name) / "gcn.safetensors"
        partita.ranks(2)
        fit = partita.train("karate", epochs=20, policy="row_1d")
        fit.save(str(model))
        logits = fit.logits()
        self.assertEqual((logits.shape, logits.dtype), ((34, 4), np.float32))
        out = str(pathlib.Path(self.folder.name) / "logits.npy")
        subprocess.run([PREDICT, "--model", model, "--data", "karate", "--out", out, "--ranks", "2", "--quiet"], check=True)
        np.testing.assert_array_equal(partita.predict(model, "karate"), np.load(out), strict=True)
        np.testing.assert_allclose(np.load(out), logits, rtol=1e-5, atol=1e-6)  # which may be products of a BLAS
        partita.ranks(3, policy="feature_column")
        np.testing.assert_allclose(partita.predict(model, partita.load("karate")), logits, rtol=1e-4, atol=1e-5)

    def test_served_vertices_have_the_rows_of_predict(self):
        model = pathlib.Path(self.folder.name) / "model.safetensors"
        for words, keeps in ((["gcn"], False), (["gin", "--precision", "f64"], False), (["gcn", "--embedding", 3], False),
                             (["gat", "--heads", 2], True), (["gcn", "--task", "links"], False), (["gat", "--task", "links"], True)):
            with self.subTest(model=words):
                subprocess.run([TRAIN, "--data", "karate", "--epochs", "5", "--quiet", "--save", model, "--model", *map(str, words)], check=True)
                rows, served = partita.predict(model, "karate"), partita.serve(model, partita.load("karate"))
                self.assertEqual((served.keeps_rows, rows.dtype), (keeps, np.float64 if "f64" in words else np.float32))
                self.assertGreater(np.ptp(rows), 1e-3)
                for v in (33, np.int32(2), [5], [7, 0, 7], np.arange(34)[::-1], np.array([[1, 2], [3, 4]], np.uint8), []):
                    np.testing.assert_array_equal(served[v], rows[np.asarray(v, int)], strict=True)
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    np.testing.assert_array_equal(list(pool.map(served.__getitem__, [*range(34)] * 5)), np.tile(rows, (5, 1)))
        for wrong, error in ((34, partita.ShapeError), ([0, -1], partita.ShapeError), (0.5, TypeError), ([True], TypeError)):
            with self.subTest(wrong=wrong), self.assertRaises(error):
                served[wrong]
        other = partita.graph([[0, 1]], np.ones((2, 3)), [0, 1], train=[0, 1])
        for call in (partita.predict, partita.serve):
            with self.assertRaisesRegex(partita.InputError, "does not fit arrays: .* 34 features.* 3 features"):
                call(model, other)

    def test_same_bits_on_any_ranks(self):
        found = []
        for ranks in (1, 4):
            partita.ranks(ranks)
            found.append(partita.train("karate", policy="row_1d", epochs=5, reproducible=True).loss)
        self.assertEqual(*found)

    def test_wrong_options_are_value_errors(self):
        for options, sentence in (({"epoch": 3}, "there is no option epoch"), ({"epochs": -1}, "epochs: '-1' is not a positive whole number"),
                                  ({"optimizer": "lion"}, "adam|adamw|sgd"), ({"momentum": 0.5}, "needs --optimizer sgd"),
                                  ({"heads": 3}, "heads is for model"), ({"precision": "f16"}, "f16")):
            with self.subTest(options=options), self.assertRaisesRegex(ValueError, sentence.replace("|", r"\|")):
                partita.train("karate", **options)
        with self.assertRaisesRegex(partita.InputError, "no_such"):
            partita.train("no_such_folder")

    def test_a_failed_run_ends_its_ranks_and_the_next_has_new_ones(self):
        partita.ranks(2)
        a = partita.sparse.csr_array(np.eye(5))
        a @ np.ones(5)
        with self.assertRaisesRegex(partita.Error, "finite"):
            partita.train("karate", lr=1e30, epochs=50, optimizer="sgd")
        self.assertEqual(partita.size(), 2)
        np.testing.assert_array_equal(a @ np.ones(5), np.ones(5))

    def test_ctrl_c_ends_training_after_the_epoch(self):
        for ranks in (1, 2):
            partita.ranks(ranks)
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.subTest(ranks=ranks), self.assertRaises(KeyboardInterrupt):
                partita.train("karate", epochs=10**8)
            timer.join()
            self.assertEqual(len(partita.train("karate", epochs=2).loss), 2)

    def test_docstrings_and_stubs(self):
        for module in (partita, partita.sparse):
            self.assertTrue(module.__doc__)
        for name in partita.__all__:
            self.assertTrue(getattr(partita, name).__doc__, name)
            if inspect.isfunction(getattr(partita, name)):
                self.assertIn("return", getattr(partita, name).__annotations__, name)
        package = pathlib.Path(partita.__file__).parent
        self.assertTrue((package / "py.typed").exists())
        stubs = {node.name for node in ast.parse((package / "_core.pyi").read_text()).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertLessEqual({name for name in dir(partita._core) if not name.startswith("_")}, stubs)


if __name__ == "__main__":
    unittest.main()
