#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saving and predicting as users meet them: what train saves, predict computes again under other policies and on other ranks,
and so does the script for PyTorch; exit codes and one-sentence errors.

usage: predict_program.py TRAIN PREDICT SCRIPT PYTHON_WITH_NUMPY|- torch|numpy [MPI_LAUNCH MPIRUN]"""
import array
import json
import os
import re
import struct
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from predict_data import CLASSES, FEATURES, N, data, npy, number, read_npy
from program_case import ProgramCase, run

TRAIN, PREDICT, SCRIPT, PYTHON, LIBRARY, *LAUNCH = sys.argv[1:]
ARRANGEMENTS = [("row_1d", "3"), ("grid_2d", "6"), ("feature_column", "2")]
OF_ALL = ["--epochs", "5", "--quiet"]
LEARNED = ["--embedding", "3"]


def read_tensors(path):
    """Shapes and values by name, and the metadata."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        content = f.read()
    metadata = header.pop("__metadata__")
    return {name: (t["shape"], list(array.array({"F32": "f", "F64": "d"}[t["dtype"]], content[slice(*t["data_offsets"])])))
            for name, t in header.items()}, metadata


def difference(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


class Predict(ProgramCase):
    def setUp(self):
        super().setUp()
        self.data = self.data_folder("data", data())
        self.model, self.logits, self.hidden, self.out = (os.path.join(self.folder, f) for f in ("m.safetensors", "l.npy", "h.npy", "p.npy"))

    def data_folder(self, name, files):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        for file, content in files.items():
            with open(os.path.join(path, file), "wb") as f:
                f.write(content)
        return path

    def train(self, *arguments, precision="f64", command=()):
        ranks = [] if "--ranks" in arguments or command else ["--ranks", "4"]
        hidden = [] if "sgc" in arguments else ["--hidden", "4"]
        done = run(TRAIN, "--data", self.data, *OF_ALL, *hidden, *ranks, "--precision", precision, "--save", self.model, "--save-logits", self.logits,
                   "--save-hidden", self.hidden, "--json", os.path.join(self.folder, "run.json"), *arguments, command=command)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        with open(os.path.join(self.folder, "run.json")) as f:
            return json.load(f)

    def predict(self, *arguments, data=None, command=()):
        done = run(PREDICT, "--model", self.model, "--data", data or self.data, "--out", self.out, *arguments, command=command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def predicts_as_saved(self, tolerance, what, arrangements=ARRANGEMENTS, data=None):
        shape, expected = read_npy(self.logits)
        self.assertEqual(shape, (N, CLASSES), what)
        self.assertGreater(max(expected) - min(expected), 1e-3, what)
        for policy, ranks in arrangements:
            self.predict("--policy", policy, "--ranks", ranks, "--quiet", data=data)
            found_shape, found = read_npy(self.out)
            self.assertEqual(found_shape, shape, what)
            self.assertLess(difference(found, expected), tolerance, (what, policy))

    def test_every_model_predicts_what_it_did_when_it_was_saved(self):
        for model in (["gcn"], ["sage"], ["sage", "--aggregation", "max"], ["gin", "--epsilon", "0.25"], ["gat", "--heads", "2"], ["sgc", "--hops", "3"],
                      ["appnp", "--alpha", "0.3"], ["gcnii", "--layers", "3", "--lambda", "0.7"], ["resgcn", "--layers", "2"],
                      ["gcn", "--coupling", "decoupled"], ["sage", "--coupling", "decoupled"], ["gat", "--coupling", "decoupled", "--heads", "2"],
                      ["gcn", "--raw-features"], ["gcn", "--self-loops", "once"], ["gcn", *LEARNED]):
            self.train("--model", *model)
            self.predicts_as_saved(1e-12, model)
        self.train("--model", "gcn", precision="f32")
        self.predicts_as_saved(1e-5, "f32")
        self.predict("--precision", "f64", "--quiet")
        self.assertLess(difference(read_npy(self.out)[1], read_npy(self.logits)[1]), 1e-5)

    def test_other_ways_of_training(self):
        for arguments in (["gcn", "--batch", "8", "--partition", "random"], ["sage", "--batch", "8", "--scores", "sampled", *LEARNED],
                          ["gat", "--heads", "2", "--batch", "8", "--placement", "column", "--partition", "random", *LEARNED],
                          ["gcn", "--partition", "random", *LEARNED], ["gin", "--layers", "3", "--stages", "2", "--chunks", "3"],
                          ["resgcn", "--layers", "2", "--stages", "4", "--chunks", "3", "--partition", "random"],
                          ["gcnii", "--layers", "2", "--stages", "2", "--history", "halo", "--partition", "random"]):
            self.train("--model", *arguments)
            self.predicts_as_saved(1e-12, arguments)

    def test_scores_of_pairs(self):
        pairs = [(number(k) % N, number(k, 1) % N) for k in range(30)]
        files = self.data_folder("pairs", {"pairs.npy": npy("q", (30, 2), [v for p in pairs for v in p]), "bad.npy": npy("q", (1, 2), [0, N])})
        file = os.path.join(files, "pairs.npy")
        for decoder in ("dot", "distmult", "mlp"):  # without held-out links rows are those of the whole graph, too
            self.train("--model", "gcn", "--task", "links", "--held-out", "0,0", "--decoder", decoder, "--link-width", "3")
            (_, width), rows = read_npy(self.logits)
            of = read_tensors(self.model)[0]
            products = [[rows[u * 3 + j] * rows[v * 3 + j] for j in range(3)] for u, v in pairs]
            if decoder == "mlp":
                hidden = [[max(0, of["decoder_bias_1"][1][i] + sum(p[j] * of["decoder_weight_1"][1][j * 3 + i] for j in range(3))) for i in range(3)] for p in products]
                expected = [of["decoder_bias_2"][1][0] + sum(h[i] * of["decoder_weight_2"][1][i] for i in range(3)) for h in hidden]
            else:
                weights = of["decoder_diagonal"][1] if decoder == "distmult" else [1, 1, 1]
                expected = [sum(p[j] * weights[j] for j in range(3)) for p in products]
            for policy, ranks in ARRANGEMENTS:
                self.predict("--policy", policy, "--ranks", ranks, "--links", file, "--quiet")
                self.assertLess(difference(read_npy(self.out)[1], expected), 1e-12, (decoder, policy))
            self.predict("--quiet")
            self.assertLess(difference(read_npy(self.out)[1], rows), 1e-12, decoder)
        with open(os.path.join(self.data, "edges.npy"), "rb") as f:
            content = f.read()
        ends = iter(array.array("q", content[10 + struct.unpack("<H", content[8:10])[0]:]))
        edges = {frozenset(e) for e in zip(ends, ends)}
        linked = sum(frozenset(p) in edges for p in pairs)
        shown = run(PREDICT, "--model", self.model, "--data", self.data, "--out", self.out, "--links", file)
        self.assertEqual((linked > 0, f": {linked} of the 30 pairs of --links are edges of this graph, over which messages pass: " in shown.stderr), (True, True), shown.stderr)
        bad = run(PREDICT, "--model", self.model, "--data", self.data, "--out", self.out, "--links", os.path.join(files, "bad.npy"))
        self.check_refused(bad, 1, f"row 0 has vertex {N}, which is not one of {N}")
        self.train("--model", "gcn")
        self.check_refused(run(PREDICT, "--model", self.model, "--data", self.data, "--out", self.out, "--links", file), 2, "--links is for a model of --task links")

    def test_rows_are_in_the_order_of_the_data(self):
        for arguments in ([], ["--partition", "random"], ["--stages", "2", "--chunks", "3"], ["--stages", "2", "--chunks", "3", "--partition", "random"]):
            self.train("--model", "resgcn", "--layers", "2", *arguments)
            (n, width), hidden = read_npy(self.hidden)
            tensors, _ = read_tensors(self.model)
            weight, bias = tensors["Wout"][1], tensors["bout"][1]
            of_hidden = [bias[k] + sum(hidden[v * width + j] * weight[j * CLASSES + k] for j in range(width)) for v in range(n) for k in range(CLASSES)]
            self.assertLess(difference(of_hidden, read_npy(self.logits)[1]), 1e-12, arguments)
            self.predicts_as_saved(1e-12, arguments, [("row_1d", "1")])

    def test_names_and_metadata_do_not_depend_on_ranks_and_stages(self):
        found = []
        for arguments in (["--ranks", "1"], ["--policy", "grid_2d", "--ranks", "6"], ["--stages", "2", "--ranks", "2"]):
            self.train("--model", "gcn", "--layers", "3", *arguments)
            tensors, metadata = read_tensors(self.model)
            found.append(({name: shape for name, (shape, _) in tensors.items()}, metadata))
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])
        self.assertEqual(found[0][0], {"W0": [5, 4], "b0": [1, 4], "W1": [4, 4], "b1": [1, 4], "W2": [4, 3], "b2": [1, 3]})
        version = run(TRAIN, "--version").stdout.split()[1]
        self.assertEqual({key: found[0][1][key] for key in ("model", "hidden", "layers", "features", "classes", "precision", "data", "partita")},
                         {"model": "gcn", "hidden": "4", "layers": "3", "features": "5", "classes": "3", "precision": "f64", "data": "data", "partita": version})

    def test_accuracy_is_that_of_training(self):
        result = self.train("--model", "gcn")
        parts = re.search(r"accuracy: train (.*) %, validation (.*) %, test (.*) %\n", self.predict())
        for found, key in zip(parts.groups(), ("train_accuracy", "val_accuracy", "test_accuracy")):
            self.assertAlmostEqual(float(found), 100 * result[key], delta=0.051)
        self.train("--model", "gcn", *LEARNED)
        for more in ({}, {"features.npy": b""}):
            bare = {name: content for name, content in data().items() if name not in ("labels.npy", "split.npy", *more)}
            folder = self.data_folder(f"bare{len(bare)}", bare)
            self.assertNotIn("accuracy", self.predict(data=folder))
            self.predicts_as_saved(1e-12, bare.keys(), [("row_1d", "2")], folder)
        several = data() | {"labels.npy": npy("q", (N, CLASSES), [number(v, k) % 2 for v in range(N) for k in range(CLASSES)])}
        self.data = self.data_folder("several", several)
        result = self.train("--model", "gcn")
        self.assertRegex(self.predict("--ranks", "3"), f"micro-F1: .*test {100 * result['test_accuracy']:.1f} %")
        values = data() | {"labels.npy": npy("d", (N, 2), [number(v, k) / 7 for v in range(N) for k in range(2)])}
        self.data = self.data_folder("values", values)
        result = self.train("--model", "gcn")
        self.assertRegex(self.predict("--ranks", "3"), f"R\\^2: .*test {result['test_accuracy']:.4f}")
        self.data = self.data_folder("untested", data() | {"split.npy": npy("B", (N,), [1 + v % 2 for v in range(N)])})
        self.train("--model", "gcn")
        self.assertIn("test n/a", self.predict())

    def test_negative_features_are_not_divided_where_the_model_is_used(self):
        def features(shift):
            return {"features.npy": npy("f", (N, FEATURES), [number(v, j, 2) / 997 - shift for v in range(N) for j in range(FEATURES)])}

        self.data = self.data_folder("signed", data() | features(0.5))
        self.train("--model", "gcn")
        self.assertEqual(read_tensors(self.model)[1]["raw_features"], "true")
        self.predicts_as_saved(1e-12, "signed")
        self.train("--model", "gcn", "--raw-features")
        raw = read_npy(self.logits)[1]
        self.train("--model", "gcn")
        self.assertEqual(read_npy(self.logits)[1], raw)
        self.data = self.data_folder("positive", data())
        self.train("--model", "gcn")
        done = run(PREDICT, "--model", self.model, "--data", self.folder + "/signed", "--out", self.out)
        self.assertIn("some features are negative, so features are not divided by their row sums, which the model's were", done.stderr)

    def test_over_mpi(self):
        if not LAUNCH:
            self.skipTest("MPI was not found")
        self.train("--model", "gcn", "--partition", "random", *LEARNED, "--comm", "mpi", command=[*LAUNCH, "4"])
        self.predicts_as_saved(1e-12, "saved over MPI")
        self.predict("--comm", "mpi", "--policy", "split_3d", "--quiet", command=[*LAUNCH, "4"])
        self.assertLess(difference(read_npy(self.out)[1], read_npy(self.logits)[1]), 1e-12)

    def test_the_script_for_pytorch(self):
        if PYTHON == "-":
            self.skipTest("there is no python3 with numpy")
        how = [] if LIBRARY == "torch" else ["--numpy"]

        def script(*arguments):
            return subprocess.run([PYTHON, "-B", SCRIPT, self.model, *arguments, *how], capture_output=True, text=True, timeout=120)

        for arguments in (["--layers", "3"], ["--raw-features"], ["--self-loops", "once"], ["--partition", "random", *LEARNED]):
            for precision in ("f64", "f32"):
                self.train("--model", "gcn", *arguments, precision=precision)
                self.predict("--policy", "grid_2d", "--ranks", "4", "--quiet")
                done = script(self.data, self.out)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("PyTorch" if LIBRARY == "torch" else "NumPy", done.stdout)
        self.assertEqual(script(self.data, self.out, "--tolerance", "1e-30").returncode, 1)
        other = self.data_folder("other", data() | {"edge_weight.npy": npy("d", (len(data()["edges.npy"]) // 16 - 8,), [1] * (len(data()["edges.npy"]) // 16 - 8))})
        self.assertEqual(script(other, self.out).returncode, 1)
        self.train("--model", "gin")
        self.assertIn("not a coupled gcn", script(self.data, self.out).stderr)

    def refused(self, code, part, program, *arguments):
        self.check_refused(run(program, *arguments), code, part)

    def test_what_cannot_be_saved(self):
        train = ["--data", self.data, "--model", "gcn", "--epochs", "100000000", "--quiet"]
        for option in ("--save", "--save-logits", "--save-hidden"):
            self.refused(1, self.folder + "/none/file: cannot be written", TRAIN, *train, option, os.path.join(self.folder, "none", "file"))
        self.refused(2, "--save-hidden needs a hidden layer", TRAIN, *train, "--layers", "1", "--save-hidden", self.hidden)
        self.refused(1, "not finite", TRAIN, "--data", self.data, "--model", "gin", "--lr", "1e30", "--quiet", "--save", self.model, "--save-logits", self.logits)
        self.assertEqual(os.listdir(self.folder), ["data"])

    def test_models_that_do_not_fit(self):
        def predict(*arguments, of=None):
            return ["--model", self.model, "--data", of or self.data, "--out", self.out, *arguments]

        self.refused(1, "m.safetensors: no such file", PREDICT, *predict())
        self.train("--model", "gcn")
        fewer, more = self.data_folder("fewer", data(features=4)), self.data_folder("more", data(classes=4))
        self.refused(1, f"m.safetensors does not fit {fewer}: the model has 5 features, and the data 4 features", PREDICT, *predict(of=fewer))
        self.refused(1, "the model has 3 classes, and the data 4 classes", PREDICT, *predict(of=more))
        self.refused(1, "is not a directory", PREDICT, *predict(of=self.folder + "/none"))
        self.refused(2, "stripes is not one of row_1d", PREDICT, *predict("--policy", "stripes"))
        self.refused(2, "a mesh is written as ROWxCOLxDEPTH", PREDICT, *predict("--mesh", "2"))
        self.refused(2, "--model is required", PREDICT, "--data", self.data, "--out", self.out)
        self.refused(1, "cannot be written", PREDICT, "--model", self.model, "--data", self.data, "--out", self.folder + "/none/p.npy")
        with open(self.model, "rb") as f:
            content = f.read()
        with open(self.model, "wb") as f:
            f.write(content[:-1])
        self.refused(1, "m.safetensors: tensor", PREDICT, *predict("--ranks", "4"))
        with open(self.model, "wb") as f:
            f.write(content.replace(b'"W1"', b'"V1"'))
        self.refused(1, 'm.safetensors: has no tensor "W1"', PREDICT, *predict("--ranks", "4"))
        with open(self.model, "wb") as f:
            f.write(content.replace(b'"hidden":"4"', b'"hidden":"6"'))
        self.refused(1, "m.safetensors: tensor W0 is 5 x 4, the model's is 5 x 6", PREDICT, *predict("--ranks", "4"))
        with open(self.model, "wb") as f:
            f.write(content[:-8] + struct.pack("<d", float("nan")))
        self.refused(1, "has a value that is not a finite number", PREDICT, *predict("--ranks", "2"))
        with open(self.model, "wb") as f:
            f.write(content)
        done = run(PREDICT, *predict(), command=["sh", "-c", 'ulimit -f 0; exec "$@"', "sh"])
        self.assertEqual((done.returncode, done.stderr), (1, f"predict: {self.out}: cannot be written (File too large)\n"))
        os.mkfifo(self.out)
        self.refused(1, "p.npy: is not a regular file", PREDICT, *predict())
        os.remove(self.out)
        self.train("--model", "gcn", *LEARNED)
        bigger = self.data_folder("bigger", data(n=24))
        self.refused(1, "expected 23 labels, one for each row of the embedding, found 24", PREDICT, *predict(of=bigger))
        for name in ("labels.npy", "split.npy"):
            os.remove(os.path.join(bigger, name))
        self.refused(1, "outside the graph of 23 vertices", PREDICT, *predict(of=bigger))
        self.refused(1, "does not fit karate: the model has 23 rows of its embedding, and the data 34 vertices", PREDICT, *predict(of="karate"))
        self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
