#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main program as its users meet it: exit codes, one-sentence errors, the JSON, equal losses.

usage: train_program.py TRAIN [MPI_LAUNCH MPIRUN]"""
import json
import os
import resource
import struct
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
from program_case import ProgramCase, good_data, npy, numbers, run

TRAIN = sys.argv[1]
CORA = os.path.join(os.environ.get("PARTITA_DATA", ""), "cora")
LAUNCH = sys.argv[2:4]
POLICIES = ["row_1d", "replicated_1_5d", "grid_2d", "split_3d", "feature_column", "feature_row"]
KEYS = ["model", "policy", "ranks", "mesh", "device", "comm", "threads", "duplicate_edges", "partition", "epochs", "resumed_from", "stopped", "notes", "loss",
        "train_accuracies", "val_accuracies", "test_accuracies", "score", "train_accuracy", "val_accuracy", "test_accuracy",
        "best_val_epoch", "test_accuracy_at_best_val", "scores", "seconds_per_epoch", "words_received", "predicted_words_received",
        "messages", "peak_bytes", "peak_rss_bytes", "setup_seconds", "setup_peak_bytes", "degenerate_mesh", "candidates", "ledger", "run"]


def ints(values, shape):
    return numbers("<i8", values, shape)


def floats(values, shape):
    return numbers("<f4", values, shape)


def train(*arguments, command=None):
    return run(TRAIN, *arguments, command=command)


class TrainProgram(ProgramCase):
    def data(self, **changed):
        files = good_data() | {name.replace("_npy", ".npy"): content for name, content in changed.items()}
        for name, content in files.items():
            if content is not None:
                with open(os.path.join(self.folder, name), "wb") as f:
                    f.write(content)
        return self.folder

    def train(self, *arguments, data="karate", command=None):
        model = [] if "--model" in arguments or "--preset" in arguments else ["--model", "gcn"]
        return self.result_of(train("--data", data, *model, "--epochs", "12", "--precision", "f64", "--quiet", "--json", self.out, *arguments, command=command))

    def refused(self, code, part, *arguments, command=None):
        for more in ([], ["--ranks", "4"]) if command is None and "--ranks" not in arguments else ([],):
            self.check_refused(train(*arguments, *more, "--quiet", command=command), code, part, 1 if command is None else 29)

    def test_json_has_every_key_and_words_are_as_predicted(self):
        result = self.train("--policy", "grid_2d", "--ranks", "6", "--mesh", "2x3x1")
        self.assertEqual(list(result), KEYS)
        self.assertEqual(result["mesh"], [2, 3, 1])
        self.assertEqual((len(result["loss"]), result["epochs"]), (12, 12))
        self.assertEqual((result["score"], result["notes"]), ("accuracy", []))
        for of_epochs, last in (("train_accuracies", "train_accuracy"), ("val_accuracies", "val_accuracy"), ("test_accuracies", "test_accuracy")):
            self.assertEqual((len(result[of_epochs]), result[of_epochs][-1]), (12, result[last]))
        best = result["best_val_epoch"] - 1
        self.assertEqual((result["val_accuracies"][best], result["test_accuracies"][best]), (max(result["val_accuracies"]), result["test_accuracy_at_best_val"]))
        self.assertEqual(result["words_received"], result["predicted_words_received"])
        training = [e for e in result["ledger"] if e["phase"] in ("forward", "backward")]
        self.assertEqual(sum(e["elements"] for e in training), result["words_received"]["total"])
        self.assertEqual(sum(e["messages"] for e in training), result["messages"]["total"])
        self.assertEqual(list(result["setup_seconds"]), ["read", "distribute", "plan"])
        self.assertGreaterEqual(min(result["setup_seconds"].values()), 0)
        self.assertEqual(list(result["peak_rss_bytes"]), ["max_rank", "total"])
        self.assertGreaterEqual(result["peak_rss_bytes"]["total"], result["peak_rss_bytes"]["max_rank"])
        self.assertGreater(result["peak_rss_bytes"]["max_rank"], result["peak_bytes"]["max_rank"])
        self.assertEqual(list(training[0]), ["phase", "operation", "axis", "elements", "bytes", "messages", "seconds"])

    def test_every_policy_trains_alike(self):
        expected = self.train("--policy", "row_1d")
        for policy in POLICIES + ["auto"]:
            for ranks in ("4", "9"):
                self.same_losses(self.train("--policy", policy, "--ranks", ranks), expected, policy, 1e-9)

    def test_every_model_trains_alike_on_two_policies(self):  # on every one, tests/train/trainer.cpp
        for k, model in enumerate(("sage", "gin", "gat", "sgc", "appnp", "gcnii", "resgcn")):
            options = ["--model", model] + ["--hidden", "8"] * (model != "sgc") + ["--layers", "2"] * (model == "resgcn")
            expected = self.train(*options, "--policy", "row_1d")
            self.assertLess(expected["loss"][-1], expected["loss"][0], model)
            for policy in (POLICIES[k % 6], POLICIES[(k + 3) % 6]):
                result = self.train(*options, "--policy", policy, "--ranks", "6")
                self.assertEqual(result["words_received"], result["predicted_words_received"], (model, policy))
                self.same_losses(result, expected, (model, policy), 1e-9)

    def test_outputs_computed_again(self):
        options = ["--model", "sage", "--layers", "5", "--policy", "row_1d", "--ranks", "3"]
        stored, again, default = (self.train(*options, *how) for how in (["--recompute", "never"], ["--recompute", "always"], []))
        self.assertEqual(again["loss"], stored["loss"])
        self.assertEqual(again["words_received"], again["predicted_words_received"])
        self.assertGreater(again["words_received"]["total"], stored["words_received"]["total"])
        self.assertLess(again["peak_bytes"]["max_rank"], stored["peak_bytes"]["max_rank"])
        self.assertEqual(default["words_received"], stored["words_received"])
        for model, more, said in (("gcn", ["--batch", "4"], "--batch and --recompute always"), ("gcnii", [], "--recompute always is not for gcnii"),
                                  ("gcn", ["--stages", "2", "--ranks", "2"], "--stages and --recompute always")):
            self.refused(2, said, "--data", "karate", "--model", model, "--recompute", "always", *more)

    def test_coupling_and_aggregation(self):
        for options in (["--coupling", "decoupled"], ["--model", "sage", "--aggregation", "max"], ["--model", "sage", "--coupling", "decoupled", "--layers", "3"],
                        ["--model", "gat", "--coupling", "decoupled", "--heads", "2"]):
            self.train(*options, "--policy", "feature_column", "--ranks", "3")
        self.refused(2, "--coupling is for --model gcn, sage and gat, not gin", "--data", "karate", "--model", "gin", "--coupling", "decoupled")

    def with_partition(self, *words):
        """The options for it, or None where this build is without METIS, which it must say."""
        if words == ("metis",) and "without METIS" in train("--data", "karate", "--model", "gcn", "--epochs", "1", "--partition", "metis", "--quiet").stderr:
            self.refused(1, "this program was built without METIS; install libmetis-dev", "--data", "karate", "--model", "gcn", "--partition", "metis")
            return None
        return ["--partition", *words, "--dropout", "0"]

    def given(self, parts, name="graph.part.4"):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(ints(parts, (len(parts),)) if name.endswith(".npy") else "".join(f"{part}\n" for part in parts).encode())
        return path

    def test_every_partition_trains_alike(self):
        expected = self.train("--policy", "row_1d", "--dropout", "0")
        third_is_empty = self.given([3 * (v % 2) + (v % 7 == 0) * (1 - 2 * (v % 2)) for v in range(34)])
        for words in (("random",), ("metis",), ("given", third_is_empty), ("given:" + third_is_empty,)):
            partition = self.with_partition(*words)
            for policy in POLICIES + ["auto"] if partition else []:
                result = self.train("--policy", policy, "--ranks", "4", *partition)
                self.assertEqual(result["words_received"], result["predicted_words_received"], (words, policy))
                self.assertEqual((result["partition"]["name"], result["partition"]["parts"]), (words[0].split(":")[0], 4))
                self.same_losses(result, expected, (words, policy), 1e-9)
                for same in ("train_accuracy", "val_accuracy", "test_accuracy"):
                    self.assertEqual(result[same], expected[same], (words, policy))

    def test_partitions_are_said(self):
        six = self.data()
        cut = {"edge_cut": 2 / 6, "locality": 4 / 6}
        for parts, expected in (([0, 0, 0, 1, 1, 1], cut), ([1, 1, 1, 0, 0, 0], cut), ([0, 1, 0, 1, 0, 1], {"edge_cut": 1, "locality": 0}), ([1] * 6, {"edge_cut": 0, "locality": 1})):
            for name in ("parts", "parts.npy"):
                path = self.given(parts, name)
                result = self.train("--ranks", "2", "--partition", "given", path, data=six)
                self.assertEqual(result["partition"], {"name": "given", "parts": 2, **expected})
                record = result["run"]
                self.assertEqual((record["options"]["partition"], record["blocks"]), ("given:" + path, "given"))
                self.assertEqual(len(record["data"]["fnv1a_64"][path]), 16)
        self.assertEqual(self.train("--ranks", "2", data=six)["partition"], {"name": "none", "parts": 2, **cut})
        self.assertEqual(self.train(data=six)["partition"], {"name": "none", "parts": 1, "edge_cut": 0, "locality": 1})
        done = train("--data", six, "--model", "gcn", "--epochs", "1", "--ranks", "2")
        self.assertIn("--partition none: 2 parts, 33.3 % of the edges are cut, 66.7 % of a vertex's in-neighbours are in its part", done.stdout)
        self.assertNotIn("--partition", train("--data", six, "--model", "gcn", "--epochs", "1").stdout)
        expected = self.train("--policy", "row_1d", "--dropout", "0")
        for name in ["degree", "rcm", "stream"] + ["metis-volume", "metis-balanced"] * bool(self.with_partition("metis")):
            self.same_losses(self.train("--policy", "row_1d", "--ranks", "4", *self.with_partition(name)), expected, name, 1e-9)
        if self.with_partition("metis"):
            for seed in ("0", "1", "2"):
                found = self.train("--ranks", "2", "--partition", "metis", "--seed", seed)["partition"]
                self.assertLess(found["edge_cut"], 0.2)  # 10 of the club's 78 ties are between its halves
                self.assertGreater(found["locality"], 0.7)

    @unittest.skipIf(not os.path.isdir(CORA), "there is no Cora here")
    def test_parts_save_words_on_cora(self):
        words = {}
        for name in ("none", "random", "metis"):
            partition = self.with_partition(name)
            if partition:
                result = self.train("--policy", "row_1d", "--ranks", "4", *partition, data=CORA)
                words[name] = sum(e["elements"] for e in result["ledger"] if e["phase"] in ("forward", "backward") and e["axis"] == "row")
                self.assertAlmostEqual(result["partition"]["edge_cut"], {"none": 0.7, "random": 0.75, "metis": 0.06}[name], delta=0.03)
        if "metis" in words:
            self.assertLess(4 * words["metis"], words["none"])
        self.assertLess(words["none"], words["random"])

    def test_wrong_partitions(self):
        karate = ["--data", "karate", "--model", "gcn", "--ranks", "2"]
        self.refused(2, "--partition needs a value", *karate, command=["sh", "-c", '"$@" --partition', "sh"])
        self.refused(2, "--partition: best is not one of none, random, degree, rcm, stream, metis, metis-volume, metis-balanced, given FILE", *karate, "--partition", "best")
        self.refused(2, "--partition random takes no file, and there is 'x'", *karate, "--partition", "random", "x")
        for words in (["given"], ["given:"], ["given:x", "y"]):
            self.refused(2, "--partition given needs a file", *karate, "--partition", *words)
        self.refused(1, "nowhere: no such file", *karate, "--partition", "given", "nowhere")
        path = self.given([0] * 33)
        self.refused(1, f"{path}: expected a part for each of 34 vertices, found 33", *karate, "--partition", "given", path)
        path = self.given([0] * 20 + [2] + [1] * 13)
        self.refused(1, f"{path}:21: part 2 is not one of the 2 parts", *karate, "--partition", "given", path)

    def test_presets(self):
        done = train("--data", "karate", "--preset", "appnp", "--epochs", "3", "--ranks", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.refused(2, "there is no preset 'best'", "--data", "karate", "--preset", "best")

    def test_auto_says_what_it_chose_from(self):
        run_of = self.train("--policy", "auto", "--ranks", "8", "--model", "sage")
        candidates = run_of["candidates"]
        self.assertEqual([c["policy"] for c in candidates], POLICIES)
        cost = lambda c: (c["predicted_words_received"]["max_rank"] + 1) * c["predicted_bytes"]["max_rank"]
        chosen = [c for c in candidates if c["chosen"]]
        self.assertEqual([(c["policy"], c["mesh"]) for c in chosen], [(run_of["policy"], run_of["mesh"])])
        self.assertEqual(cost(chosen[0]), min(map(cost, candidates)))
        self.assertEqual([c.get("why") for c in candidates].count("the least product of words and bytes"), 1)
        for c in candidates:
            alone = self.train("--policy", c["policy"], "--ranks", "8", "--model", "sage")
            self.assertEqual(alone["candidates"], [])
            self.assertEqual((alone["mesh"], alone["words_received"]), (c["mesh"], c["predicted_words_received"]))
            self.assertLess(alone["setup_peak_bytes"]["max_rank"], c["predicted_bytes"]["max_rank"])
        shown = train("--data", "karate", "--model", "sage", "--policy", "auto", "--ranks", "8", "--epochs", "1").stdout
        for c in candidates:
            self.assertRegex(shown, f"{c['policy']} +{'x'.join(map(str, c['mesh']))} +{c['predicted_words_received']['max_rank']} ")
        self.assertEqual(shown.count("chosen"), 1)

    def test_auto_compares_meshes(self):
        meshes = lambda run_of: [c["mesh"] for c in run_of["candidates"]]
        one = self.train("--policy", "grid_2d", "--mesh", "auto", "--ranks", "4")
        self.assertEqual(meshes(one), [[4, 1, 1], [2, 2, 1], [1, 4, 1]])
        every = self.train("--policy", "auto", "--mesh", "auto", "--ranks", "4")
        self.assertEqual(meshes({"candidates": [c for c in every["candidates"] if c["policy"] == "grid_2d"]}), meshes(one))
        for run_of in (one, every):
            tried = [c for c in run_of["candidates"] if "same_as" not in c]
            cost = lambda c: (c["predicted_words_received"]["max_rank"] + 1) * c["predicted_bytes"]["max_rank"]
            chosen = [c for c in tried if c["chosen"]]
            self.assertEqual([(c["policy"], c["mesh"]) for c in chosen], [(run_of["policy"], run_of["mesh"])])
            self.assertEqual(cost(chosen[0]), min(map(cost, tried)))
            for c in tried:
                alone = self.train("--policy", c["policy"], "--mesh", "x".join(map(str, c["mesh"])), "--ranks", "4")
                self.assertEqual(alone["words_received"], c["predicted_words_received"])
        for more, name in ((("--replication", "2"), "--replication"), (("--batch", "8"), "--batch")):
            self.refused(2, f"{name} and --mesh auto do not go together", "--data", "karate", "--model", "gcn", "--mesh", "auto", *more)

    def test_auto_tries_nothing_twice(self):
        for ranks, others in (("1", POLICIES[:1]), ("7", ["row_1d", "feature_column"]), ("6", [p for p in POLICIES if p != "split_3d"])):
            candidates = self.train("--policy", "auto", "--ranks", ranks)["candidates"]
            self.assertEqual([c["policy"] for c in candidates if "same_as" not in c], others)
        self.assertEqual([c["same_as"] for c in candidates if "same_as" in c], ["grid_2d"])

    def test_auto_weighs_memory(self):
        """A is dense and whole on every rank of feature_column, which moves less than row_1d."""
        n = 200
        edges = [v for u in range(n) for w in range(n) if u != w for v in (u, w)]
        data = self.data(edges_npy=ints(edges, (n * (n - 1), 2)), features_npy=floats([0.5, 1.0] * n, (n, 2)),
                         labels_npy=ints([u % 2 for u in range(n)], (n,)), split_npy=npy("|u1", (n,), bytes([1, 2, 3, 0] * (n // 4))))
        run_of = self.train("--ranks", "5", data=data)
        words = {c["policy"]: c["predicted_words_received"]["max_rank"] for c in run_of["candidates"] if "same_as" not in c}
        self.assertLess(words["feature_column"], words[run_of["policy"]])

    def test_degenerate_meshes_are_said(self):
        for arguments, note in ((["grid_2d", "--ranks", "7"], "grid_2d on 7 ranks is a 7x1x1 mesh: the same as row_1d"),
                                (["split_3d", "--ranks", "6"], "split_3d on 6 ranks is a 3x2x1 mesh: the same as grid_2d"),
                                (["feature_row", "--ranks", "3", "--mesh", "1x3x1"], "feature_row on 3 ranks is a 1x3x1 mesh: the same as feature_column"),
                                (["split_3d", "--ranks", "4", "--mesh", "2x1x2"], "split_3d on 4 ranks is a 2x1x2 mesh: it cuts nothing along col"),
                                (["grid_2d", "--ranks", "4"], None), (["grid_2d", "--ranks", "1"], None), (["row_1d", "--ranks", "7"], None)):
            done = train("--data", "karate", "--model", "gcn", "--epochs", "1", "--policy", *arguments)
            self.assertEqual(done.stderr, f"train: {note}\n" if note else "")
            self.assertEqual(self.train("--policy", *arguments)["degenerate_mesh"], note)

    def test_options_for_rows_that_do_not_travel_are_said(self):
        encoded = ["--row-encoding", "int8", "--exchange", "cover"]
        said = [f"{option} has no effect on a 1x3x1 mesh, where no rows are sent along row" for option in ("--exchange cover", "--row-encoding int8")]
        for policy, ranks, notes in (("feature_column", "3", said), ("row_1d", "3", []), ("feature_column", "1", [])):
            done = train("--data", "karate", "--model", "gcn", "--epochs", "1", "--policy", policy, "--ranks", ranks, *encoded, "--json", self.out)
            self.assertEqual(done.stderr, "".join(f"train: karate: {note}\n" for note in notes))
            with open(self.out) as f:
                self.assertEqual(json.load(f)["notes"], notes)

    def test_peak_bytes_are_of_the_chosen_run(self):
        options = ["--hidden", "4", "--ranks", "8"]
        chosen = self.train("--policy", "auto", *options)
        mesh = "x".join(map(str, chosen["mesh"]))
        asked = self.train("--policy", chosen["policy"], "--mesh", mesh, *options)
        self.assertEqual(chosen["peak_bytes"], asked["peak_bytes"])
        self.assertLessEqual(asked["setup_peak_bytes"]["max_rank"], asked["peak_bytes"]["max_rank"])
        self.assertGreater(chosen["setup_peak_bytes"]["max_rank"], asked["setup_peak_bytes"]["max_rank"])  # of a candidate

    def test_memory_bounds_the_buffers_of_a_rank(self):
        place = ["--ranks", "8", "--hidden", "4"]
        short = ["--data", "karate", "--model", "gcn", "--epochs", "2", "--precision", "f64", *place]
        set_up = {}
        for policy in POLICIES:
            free = self.train("--policy", policy, *place)
            most, set_up[policy] = free["peak_bytes"]["max_rank"], free["setup_peak_bytes"]["max_rank"]
            bound = self.train("--policy", policy, *place, "--memory", str(most))
            self.assertEqual((bound["peak_bytes"]["max_rank"], bound["loss"]), (most, free["loss"]))
            self.refused(1, f"does not fit into the budget of {most - 1} bytes", *short, "--policy", policy, "--memory", str(most - 1))
        # By auto another policy is chosen, which alone can be set up; its epochs need more.
        least = min(set_up, key=set_up.get)
        self.assertNotEqual(self.train(*place)["policy"], least)
        done = train(*short, "--memory", f"{set_up[least] / 1024}KiB")
        self.assertRegex(done.stdout, f"(?m)^ *{least} .* chosen")
        self.assertIn("does not fit into the budget", done.stderr)
        self.refused(1, "no policy fits into buffers of 1 bytes on a rank: ", *short, "--memory", "1")
        self.refused(2, "--memory needs a --policy and a mesh for gat", "--data", "karate", "--model", "gat", "--memory", "1G")
        for size in ("big", "inf", "nan", "-1", "0.5", "8388608T"):
            self.refused(2, f'--memory "{size}" is not a size', *short, f"--memory={size}")

    def test_threads_are_a_share_of_the_cores(self):
        cores = len(os.sched_getaffinity(0))
        self.assertEqual(self.train()["threads"], cores)
        self.assertEqual(self.train("--ranks", str(cores + 1))["threads"], 1)
        self.assertEqual(self.train(command=["taskset", "-c", str(max(os.sched_getaffinity(0)))])["threads"], 1)
        self.assertEqual(self.train("--threads", "1", "--ranks", "2")["threads"], 1)
        self.refused(2, f"--threads {cores + 1} is more than the {cores} core", "--data", "karate", "--model", "gcn", "--threads", str(cores + 1), "--ranks", "1")
        self.refused(2, f"is more than the 1 core that each of {cores} ranks", "--data", "karate", "--model", "gcn", "--threads", "2", "--ranks", str(cores))

    def test_duplicate_edges_are_said(self):
        edges = [v for u in range(6) for v in (u, (u + 1) % 6)]
        data = self.data(edges_npy=ints(edges + [2, 3, 0, 1, 2, 3], (9, 2)))
        note = "3 of 9 edges repeat an earlier one, and the weights of equal edges add up"
        found = self.train(data=data)
        self.assertEqual((found["duplicate_edges"], found["notes"]), (3, [note]))
        done = train("--data", data, "--model", "gcn", "--epochs", "1", "--ranks", "3")
        self.assertEqual(done.stderr, f"train: {data}: {note}\n")
        self.assertEqual(self.train(data=self.data())["duplicate_edges"], 0)

    # What data mean.

    def ring(self, more=(), weights=None, **changed):
        """Data of six vertices, from each of which edges lead to the next two, and of more edges."""
        edges = [v for step in (1, 2) for u in range(6) for v in (u, (u + step) % 6)] + [v for e in more for v in e]
        count = len(edges) // 2
        for name in os.listdir(self.folder):
            os.remove(os.path.join(self.folder, name))
        weight = {} if weights is None else {"edge_weight_npy": npy("<f8", (count,), struct.pack(f"<{count}d", *weights))}
        return self.data(**({"edges_npy": ints(edges, (count, 2)), "features_npy": floats([1, 2, 5, 1, 3, 3, 2, 7, 4, 1, 1, 6], (6, 2))} | weight | changed))

    def loss(self, options, *data, **changed):
        """The loss, and a note, or none."""
        result = self.train(*options, *["--dropout", "0"] * (options[1] not in ("sgc", "meshgraphnet")), data=self.ring(*data, **changed))
        return result["loss"][-1], "".join(result["notes"])

    def test_the_table_of_what_edges_mean(self):
        with open(os.path.join(os.path.dirname(__file__), "../../docs/models.md")) as f:
            table = f.read().split("## What edges mean")[1].split("## ")[0]
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")][1:]
        self.assertEqual(len(rows), 9)
        tried = []
        for names, weights, vectors, types, repeated, loops, negative in rows:
            for name in names.strip("`").split("`, `"):
                tried.append(name.split()[0])
                if name in ("rgcn", "rgat"):
                    continue  # these need types of edges
                options = ["--model", *name.split(), *["--hidden", "4"] * (name != "sgc"), *["--layers", "2"] * (name == "resgcn")]
                plain, note = self.loss(options)
                self.assertEqual(note, "")
                ways = [[]] + [["--batch", "6", "--fanout", "-1"]] * (name in ("gcn", "sage", "gin", "gat")) + [["--ranks", "2", "--stages", "2", "--chunks", "2", "--history", "exact"]] * (name in ("gcn", "sage", "gin"))
                varied = [0.5, 1, 2, 3, 1, 4, 1, 1, 1, 2, 5, 3]
                whole = self.loss(options, weights=varied)
                for way in ways:
                    loss, note = self.loss(options + way, weights=varied) if way else whole
                    self.assertAlmostEqual(loss, whole[0], delta=1e-9, msg=(name, way))
                    self.assertEqual((loss != plain, note != ""), (True, False) if weights.startswith("used") else (False, True), (name, way))
                    self.assertTrue(note == "" or note.startswith(name.split()[0] + " "), note)
                twice, once, double = (self.loss(options, *given)[0] for given in ([[(0, 1)]], [], [[], [2] + [1] * 11]))
                self.assertAlmostEqual(twice, double if repeated == "add up" else once, delta=1e-12, msg=name)
                loop, note = self.loss(options, [(1, 1)])
                if loops.startswith("A + I"):
                    self.assertIn("1 of 13 edges are loops, to whose weights A + I adds 1", note)
                    self.assertNotEqual(loop, plain, name)
                    for way in ways:
                        self.assertAlmostEqual(self.loss(options + way + ["--self-loops", "once"], [(1, 1)])[0], plain, delta=1e-9, msg=(name, way))
                    self.assertEqual(self.loss(options + ["--self-loops", "once"], [(1, 1)])[1], "")
                    heavier = self.loss(options + ["--self-loops", "once"], [(1, 1)], [1] * 12 + [2])[0]
                    self.assertAlmostEqual(heavier, loop, delta=1e-12, msg=name)
                else:
                    self.assertEqual((loop == plain, note), (loops.startswith("count once"), ""), name)
                self.assertEqual(negative, "refused")
        self.assertEqual(sorted(tried), sorted(["gcn", "sgc", "appnp", "gcnii", "sage", "resgcn", "gin", "gat", "sage", "gatv2", "gine", "transformer", "meshgraphnet", "rgcn", "rgat"]))
        self.refused(1, "edge_weight.npy: the weight of row 1 is -1.000000", "--data", self.ring(weights=[1, -1] + [1] * 10), "--model", "gcn")
        vectors = {"edge_features_npy": floats([0.5] * 13, (13, 1))}
        types = {"edge_type_npy": ints([0] * 13, (13,))}
        for model, said, given in (("gcn", "the weights of equal edges add up", {}), ("gat", "equal edges count once", {}),
                                   ("rgat", "equal edges of one type count once", types), ("gine", "equal edges are one, whose vector is the sum", vectors)):
            self.assertIn(said, train("--data", self.ring([(0, 1)], **given), "--model", model, "--epochs", "1").stderr)

    def test_notes_on_what_models_do_not_use(self):
        with open(os.path.join(os.path.dirname(__file__), "../../docs/models.md")) as f:
            table = f.read().split("## What edges mean")[1].split("## ")[0]
        ring = {"edge_type_npy": ints([0, 1, 2] * 4, (12,)), "edge_features_npy": floats([0.5] * 24, (12, 2))}
        for line in [line for line in table.splitlines() if line.startswith("| `")][1:]:
            names, weights, vectors, types = [cell.strip() for cell in line.split("|")[1:5]]
            said = [f"{what} of edges" for what, is_used in (("weights", weights), ("2 features", vectors), ("3 types", types)) if not is_used.startswith("used")]
            for name in names.strip("`").split("`, `"):
                with self.subTest(name):
                    notes = self.train("--model", *name.split(), data=self.ring(weights=[2] * 12, **ring))["notes"]
                    title = name.replace("--aggregation max", "with max aggregation")
                    self.assertEqual([note.split(";")[0].split(":")[0] for note in notes], [f"{title} does not use the {what}" for what in said])
        decoupled = self.train("--model", "gat", "--coupling", "decoupled", data=self.folder)["notes"]
        self.assertEqual(decoupled, ["gat in its decoupled form does not use the weights of edges: each counts once",
                                     "gat in its decoupled form does not use the 2 features of edges; gine, gatv2, transformer and meshgraphnet do",
                                     "gat in its decoupled form does not use the 3 types of edges; rgcn and rgat do"])

    def test_features_are_divided_unless_one_is_negative(self):
        signed = floats([1, -0.999999, 5, -5, 3, 3, 2, 7, 4, 1, 1, 6], (6, 2))
        for way in ([], ["--model", "sage", "--batch", "2"], ["--ranks", "2", "--stages", "2", "--chunks", "2"], ["--ranks", "3"]):
            result = self.train(*way, data=self.ring(features_npy=signed))
            self.assertEqual(result["loss"], self.train(*way, "--raw-features", data=self.folder)["loss"])
            self.assertEqual(result["notes"], ["some features are negative, so features are not divided by their row sums"])
            self.assertLess(max(result["loss"]), 100)
        self.assertNotEqual(self.train(data=self.ring())["loss"], self.train("--raw-features", data=self.folder)["loss"])

    def test_labels_in_a_column(self):
        vector = self.train(data=self.ring())
        for labels in (ints([0, 1, 0, 1, 0, 1], (6, 1)), npy("|u1", (6, 1), bytes([0, 1] * 3)), floats([0, 1] * 3, (6, 1))):
            result = self.train("--task", "classes", data=self.ring(labels_npy=labels))
            self.assertEqual((result["loss"], result["score"]), (vector["loss"], "accuracy"))
            self.assertEqual(result["notes"][-1], "labels.npy is a column: each number in it is the class of a vertex")
        result = self.train(data=self.ring(labels_npy=ints([0, 5, 0, 5, 0, 5], (6,))))
        self.assertEqual(result["notes"], ["labels go up to 5, so there are 6 classes, 4 of which no vertex has"])
        several = self.ring(labels_npy=ints([0, 1, 1, 0] * 3, (6, 2)))
        self.assertEqual(self.train(data=several)["score"], "micro_f1")
        shown = train("--data", several, "--model", "gcn", "--epochs", "2").stdout
        self.assertRegex(shown, "micro-F1: train .*\n(?s:.*)test micro-F1 ")
        self.assertNotIn("accuracy", shown)

    def test_links_and_negatives_of_the_data(self):
        split = {"links_train_npy": ints([0, 1, 1, 2, 2, 3, 3, 4, 4, 5], (5, 2)), "links_valid_npy": ints([5, 0], (1, 2)), "links_test_npy": ints([0, 2, 3, 1], (2, 2))}
        links = ["--task", "links"]
        given = self.train(*links, data=self.ring(**split))
        self.assertEqual(given["notes"], ["7 of 12 edges are left out: their pairs are held out, or in no file of links"])
        self.assertEqual(given["run"]["options"]["held-out"], "0,0")
        self.assertEqual(self.train(*links, "--held-out", "0,0", data=self.folder)["loss"], given["loss"])
        self.refused(2, "--held-out is for data without links_valid.npy", "--data", self.folder, "--model", "gcn", *links, "--held-out", "0.1,0.1")
        by_own = self.train(*links, data=self.ring(**split, links_test_negatives_npy=ints([4, 5, 1, 0, 5, 4], (2, 3))))
        self.assertEqual(by_own["loss"], given["loss"])
        self.assertLessEqual(1 / 4, by_own["scores"]["test"]["mrr"])
        self.assertAlmostEqual(self.train(*links, "--ranks", "3", data=self.folder)["scores"]["test"]["mrr"], by_own["scores"]["test"]["mrr"], delta=1e-12)
        for more in (["--ranks", "3", "--partition", "random"], ["--ranking-negatives", "2"]):
            self.assertLessEqual(1 / 4, self.train(*links, *more, data=self.folder)["scores"]["test"]["mrr"])
        self.assertRegex(train("--data", self.folder, "--model", "gcn", "--epochs", "1", *links, "--hits", "1").stdout, r"\ntest: Hits@1 .*, area under the ROC curve [01]\.[0-9]{4}\n")
        shared = self.train(*links, "--hits", "1", data=self.ring(**split, links_test_negatives_npy=ints([4, 1, 5, 2], (2, 2))))
        self.assertIn(shared["scores"]["test"]["hits"], (0, 0.5, 1))
        self.assertIn(8 * shared["scores"]["test"]["roc_auc"], range(9))  # two links, two negatives
        self.assertEqual((by_own["scores"]["train"]["roc_auc"], by_own["scores"]["test"]["roc_auc"] in (0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1)), (None, True))
        self.refused(1, "links_test_negatives.npy: row 1 has vertex 6, which is not one of 6", "--data", self.ring(**split, links_test_negatives_npy=ints([4, 1, 5, 6], (2, 2))), "--model", "gcn", *links)

    def test_tasks(self):
        classes = self.train(data=self.ring())
        self.assertEqual(len(classes["scores"]["test"]["confusion"]), 2)
        self.assertEqual(classes["scores"]["test"]["accuracy"], classes["test_accuracy"])
        values = self.ring(labels_npy=floats([0.5, -1, 2, float("nan"), 1, 3], (6,)))
        for more in ([], ["--batch", "2"], ["--batch", "2", "--scores", "sampled"], ["--ranks", "2", "--stages", "2", "--chunks", "2"]):
            result = self.train(*more, data=values)
            self.assertEqual(result["score"], "r_squared")
            self.assertEqual(set(result["scores"]["val"]), {"rmse", "mae", "r_squared"})
            self.assertEqual(result["scores"]["train"]["r_squared"], result["train_accuracy"])
        huber = self.train("--value-loss", "huber", "--huber-delta", "0.5", data=values)
        self.assertEqual(huber["run"]["options"]["huber-delta"], 0.5)
        self.assertNotEqual(huber["loss"], self.train(data=values)["loss"])
        shown = train("--data", values, "--model", "gcn", "--epochs", "2").stdout
        self.assertRegex(shown, "R\\^2: train .*\n(?s:.*)test R\\^2 (?s:.*)test: RMSE .* MAE ")
        labels = self.train(data=self.ring(labels_npy=ints([0, 1, 1, 0] * 3, (6, 2))))
        self.assertEqual(set(labels["scores"]["train"]), {"micro_f1", "roc_auc"})

    def test_class_weights_and_smoothing(self):
        plain, smooth = self.train(data=self.ring()), self.train("--label-smoothing", "0.2", data=self.ring())
        self.assertNotEqual(plain["loss"], smooth["loss"])
        balanced = self.train("--class-weights", "balanced", data=self.ring())
        given = self.train("--class-weights", balanced["run"]["options"]["class-weights"], data=self.ring())
        self.assertEqual(given["loss"], balanced["loss"])
        ring, weights = self.ring(), os.path.join(self.folder, "weights.npy")
        for numbers, ends in (([1.0, 2.0], None), ([1.0], "1 class weights were given for 2 classes"),
                              ([1.0, -2.0], "a class weight is -2.000000, not a finite number of 0 or more")):
            with open(weights, "wb") as f:
                f.write(npy("<f8", (len(numbers),), struct.pack(f"<{len(numbers)}d", *numbers)))
            run = train("--data", ring, "--model", "gcn", "--epochs", "2", "--class-weights", weights)
            self.assertEqual(run.returncode, 0 if ends is None else 2, run.stderr)
            if ends:
                self.assertIn(ends, run.stderr)
        values = self.ring(labels_npy=floats([0.5, -1, 2, 0, 1, 3], (6,)))
        for option in (["--class-weights", "1,2"], ["--label-smoothing", "0.1"], ["--task", "classes"]):
            self.assertIn(train("--data", values, "--model", "gcn", *option).returncode, (1, 2))
        self.assertEqual(train("--data", values, "--model", "gcn", "--huber-delta", "2").returncode, 2)

    def test_parts_of_the_split_without_vertices(self):
        nobody = {"validation": [1, 1, 1, 3, 3, 3], "test": [1, 1, 1, 2, 2, 2], "both": [1, 1, 1, 0, 0, 0]}
        for way in ([], ["--batch", "2"], ["--batch", "2", "--scores", "sampled"], ["--ranks", "2", "--stages", "2", "--chunks", "2"]):
            for missing, split in nobody.items():
                for labels in ({}, {"labels_npy": ints([0, 1, 1, 0] * 3, (6, 2))}):
                    data = self.ring(split_npy=npy("|u1", (6,), bytes(split)), **labels)
                    result = self.train(*way, data=data)
                    for part, prefix in (("validation", "val"), ("test", "test")):
                        empty = missing in (part, "both")
                        self.assertEqual(result[prefix + "_accuracy"] is None, empty, (way, missing))
                        self.assertEqual(result[prefix + "_accuracies"], [None] * 12 if empty else result[prefix + "_accuracies"])
                    self.assertIsNotNone(result["train_accuracy"])
                    self.assertEqual(result["best_val_epoch"] is None, missing != "test")
                    self.assertIsNone(result["test_accuracy_at_best_val"])
        shown = train("--data", data, "--model", "gcn", "--epochs", "2").stdout
        self.assertRegex(shown, "validation +n/a  test +n/a")
        self.assertNotIn("best", shown)
        for way in ([], ["--ranks", "2"], ["--model", "sage", "--batch", "2"]):
            result = self.train(*way, data=self.ring(edges_npy=ints([], (0, 2))))
            self.assertEqual((result["run"]["data"]["edges"], result["duplicate_edges"]), (0, 0))

    def test_progress_and_summary(self):
        done = train("--data", "karate", "--model", "gcn", "--epochs", "5", "--ranks", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("epoch    5/5", done.stdout)
        self.assertIn("words received by the busiest rank", done.stdout)

    def test_help_lists_all_options(self):
        done = train("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--data DIR", "--coupling coupled|decoupled", "--json FILE", "--quiet", "(default coupled)", "(default 0.0005)", "Training:"):
            self.assertIn(option, done.stdout)
        self.assertLess(max(map(len, done.stdout.splitlines())), 125)
        self.assertIn("widths of the hidden layers (default 64)", train("--preset", "appnp", "--help").stdout)
        self.assertRegex(train("--version").stdout, r"^train \d+\.\d+\.\d+\n$")

    def test_the_json_repeats_the_run(self):
        for arguments in (["--policy", "auto", "--ranks", "6", "--seed", "7"], ["--preset", "gat", "--policy", "grid_2d", "--ranks", "4", "--mesh", "1x4x1"],
                          ["--preset", "gcnii", "--layers", "3"], ["--hidden", "5,3", "--lr", "0.0123", "--raw-features", "--dropout", "0.25"],
                          ["--model", "sage", "--aggregation", "max", "--weight-decay", "1e-7"], ["--model", "gin", "--epsilon", "0.3"],
                          ["--coupling", "decoupled", "--model", "gat", "--heads", "2"], ["--partition", "random", "--ranks", "3", "--seed", "5"]):
            for data in ("karate", self.data()):
                first = self.train(*arguments, data=data)
                record = first["run"]
                self.assertEqual(record["auto"], "auto" in arguments or "--policy" not in arguments)
                self.assertEqual(record["command"][-len(arguments):], arguments)
                options = [f"--{name}={json.dumps(value) if not isinstance(value, str) else value}" for name, value in record["options"].items()]
                out = os.path.join(self.folder, "again.json")
                done = train(*options, "--quiet", "--json", out)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(out) as f:
                    again = json.load(f)
                for same in ("model", "policy", "mesh", "loss", "test_accuracy", "words_received", "threads"):
                    self.assertEqual(again[same], first[same], (arguments, same))
                for same in ("options", "data", "version", "compiler", "flags", "host"):
                    self.assertEqual(again["run"][same], record[same], (arguments, same))

    def test_a_trace_and_a_page_of_a_run(self):
        trace, page, out = (os.path.join(self.folder, name) for name in ("trace.json", "page.html", "run.json"))
        done = train("--data", "karate", "--model", "gcn", "--ranks", "3", "--policy", "row_1d", "--epochs", "1", "--quiet", "--json", out, "--trace", trace, "--report", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out) as f:
            run = json.load(f)
        with open(trace) as f:
            events = json.load(f)["traceEvents"]
        self.assertEqual({e["pid"] for e in events}, {0, 1, 2})
        received = {}
        for e in events:
            if e["ph"] == "X" and e.get("args", {}).get("phase") in ("forward", "backward"):
                key = e["args"]["phase"], e["name"]
                received[key] = received.get(key, 0) + e["args"]["bytes received"]
        entries = [e for e in run["ledger"] if e["phase"] in ("forward", "backward")]
        self.assertEqual(received, {(e["phase"], f"{e['operation']} along {e['axis']}"): e["bytes"] for e in entries})
        slices = [e for e in events if e["ph"] == "X" and e["pid"] == 1]
        forward = next(e for e in slices if e["name"] == "forward")
        inside = [e for e in slices if e["name"].startswith("layer") and forward["ts"] <= e["ts"] and e["ts"] + e["dur"] <= forward["ts"] + forward["dur"]]
        self.assertEqual(sorted(e["name"] for e in inside), ["layer 1", "layer 2"])
        with open(page) as f:
            text = f.read()
        xml.etree.ElementTree.fromstring(text.replace("<!doctype html>", "").replace("<meta charset='utf-8'>", "").replace("&nbsp;", ""))
        for part in (f"{run['words_received']['total']} words", f"epochs of {1e3 * run['seconds_per_epoch']:.4g} ms", "gcn on karate", "rank 2", " of the time"):
            self.assertIn(part, text)

    def test_a_machine_is_emulated(self):
        def run(*more):
            out = os.path.join(self.folder, "run.json")
            done = train("--data", "karate", "--model", "gcn", "--ranks", "5", "--policy", "row_1d", "--epochs", "2", "--quiet", "--json", out, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(out) as f:
                return json.load(f)
        file = os.path.join(self.folder, "machine.json")
        with open(file, "w") as f:
            json.dump({"ranks_of_node": 2, "between": {"latency": 100, "bandwidth": 10}}, f)
        plain, emulated = run(), run("--machine", file)
        for key in ("loss", "words_received", "messages", "test_accuracy"):
            self.assertEqual(plain[key], emulated[key])
        self.assertGreater(emulated["seconds_per_epoch"], 300 + 4 * emulated["words_received"]["max_rank"] / 10)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "report")
        table = subprocess.run([sys.executable, script, "karate", "--train", TRAIN, "--machine", file, "--ranks", "1,2", "--hidden", "4", "--policies", "row_1d,feature_column", "--epochs", "1",
                                "--svg", os.path.join(self.folder, "plot.svg")], capture_output=True, text=True)
        self.assertIn("| ranks | row_1d | feature_column |", table.stdout, table.stderr)
        self.assertIn("hidden 4; fastest: ", table.stdout)
        xml.etree.ElementTree.parse(os.path.join(self.folder, "plot.svg"))
        with open(file, "w") as f:
            json.dump({"between": {"delay": 1}}, f)
        self.refused(2, f"--machine {file}: unknown key between.delay", "--data", "karate", "--model", "gcn", "--machine", file)

    def test_the_json_knows_its_data(self):
        def fnv1a(content):
            value = 0xcbf29ce484222325
            for byte in content:
                value = (value ^ byte) * 0x100000001b3 % 2**64
            return f"{value:016x}"

        self.assertEqual(fnv1a(b"foobar"), "85944171f73967e8")
        record = self.train(data=self.data())["run"]["data"]
        self.assertEqual(record["fnv1a_64"], {name: fnv1a(good_data()[name]) for name in ("edges.npy", "features.npy", "labels.npy", "split.npy")})
        self.assertEqual([record[key] for key in ("vertices", "edges", "features", "classes")], [6, 6, 2, 2])

    def test_a_data_directory_trains(self):
        self.train(data=self.data())
        self.train("--hidden", "5,3", "--raw-features", "--dropout", "0", data=self.data())

    def test_wrong_command_lines(self):
        karate = ["--data", "karate", "--model", "gcn"]
        self.refused(2, "--data is required", "--model", "gcn")
        self.refused(2, "--policy: ring is not one of row_1d, replicated_1_5d, grid_2d, split_3d, feature_column, feature_row, auto; ", *karate, "--policy", "ring")
        self.refused(2, "mesh 3x2x1 has 6 places for 4 ranks", *karate, "--policy", "grid_2d", "--ranks", "4", "--mesh", "3x2x1")
        self.refused(2, "does not use the col axis", *karate, "--policy", "row_1d", "--ranks", "4", "--mesh", "2x2x1")
        self.refused(2, "ROWxCOLxDEPTH", *karate, "--policy", "grid_2d", "--ranks", "4", "--mesh", "2by2")
        self.refused(2, "replication 3 does not divide 4 ranks", *karate, "--policy", "replicated_1_5d", "--ranks", "4", "--replication", "3")
        self.refused(2, "--ranks: 0 is not a positive whole number", *karate, "--ranks", "0")
        self.refused(2, "--model: perceptron is not one of gcn, sage", "--data", "karate", "--model", "perceptron")
        self.refused(2, "--relation-blocks 3 do not divide --hidden 16", "--data", "karate", "--model", "rgcn", "--relation-blocks", "3")
        self.refused(2, "--coupling: loose is not one of coupled, decoupled", *karate, "--coupling", "loose")
        self.refused(2, "there is no option --nonsense", *karate, "--nonsense", "3")
        self.refused(2, "--lr needs a value", *karate, command=["sh", "-c", '"$@" --lr', "sh"])
        self.refused(2, "--epochs is given more than once", *karate, "--epochs", "2", "--epochs", "3")
        self.refused(2, "--seed: -1 is not zero or a positive whole number", *karate, "--seed", "-1")
        self.refused(2, "--lr: -1 is not a positive number", *karate, "--lr", "-1")
        self.refused(2, "--timeout: 0 is not a time from 0.001 to 1000000 s", *karate, "--timeout", "0")

    def test_absurd_numbers_are_refused_before_anything_is_taken(self):
        karate, big = ["--data", "karate", "--model", "gcn", "--epochs", "1"], "999999999"
        for code, part, *arguments in (
                (1, "GB of memory", "--hidden", big), (1, "GB of memory", "--embedding", big), (1, "GB of memory", "--model", "gat", "--heads", big),
                (2, "--layers: 999999999 is not a whole number from 1 to 10000", "--layers", big), (2, "--hops", "--model", "sgc", "--hops", big),
                (2, "more parts than a batch", "--batch", "5", "--micro-batches", big), (2, "more than the 156 edges", "--batch", "5", "--fanout", big, "--replace"),
                (2, "cannot be cut into 999999999 stages", "--stages", big), (2, "ranks are more than the", "--ranks", "100000"), (1, "600 ranks need at least 7.8 GB of memory", "--ranks", "600"), (2, "more than the 34 vertices", "--stages", "2", "--chunks", big),
                (2, "more than the 34 vertices", "--exchange-pieces", big), (2, "more than the 34 vertices", "--model", "appnp", "--split-pieces", big),
                (2, "has 4294967297 places for 1 ranks", "--policy", "grid_2d", "--mesh", "641x6700417x1"),
                *((2, "a mesh is written as", "--policy", "grid_2d", "--mesh", m) for m in ("4294967297x1x1", "0x1x1", "1x1", "1x1x1x", "1x1x", " 1x1x1", "1x-1x1")),
                (2, "--hidden: a number is missing in '4,,5'", "--hidden", "4,,5"), (2, "--stage-layers", "--stages", "2", "--stage-layers", "1e1,1"),
                (2, "--epochs: 1e1 is not a positive whole number", "--epochs", "1e1"),
                *((2, f"{option}: inf is not", option, "inf") for option in ("--lr", "--weight-decay", "--convolution-decay", "--lambda"))):
            with self.subTest(arguments=arguments):
                words = karate[:4] if "--epochs" in arguments else karate
                words = words[:2] + words[4:] if "--model" in arguments else words
                done = train(*words, *arguments, "--quiet", command=["sh", "-c", 'ulimit -v 6000000; exec "$@"', "sh"])
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (code, 1), done.stderr)
                self.assertIn(part, done.stderr)

        relations = self.ring(edge_type_npy=ints([0, 1, 2] * 4, (12,)))
        self.refused(2, "--fanout of layer 2: 2 numbers for 3 relations", "--data", relations, "--model", "rgcn", "--batch", "2", "--fanout", "1/2/0,1/2")

    def test_outputs_are_written_whole_or_refused(self):
        karate = ["--data", "karate", "--model", "gcn", "--epochs", "1000", "--quiet"]
        path = os.path.join(self.folder, "out")
        self.refused(2, "--json and --save name the same file", *karate, "--json", path, "--save", self.folder + "/./out")
        os.mkfifo(path)
        for option in ("--json", "--save", "--save-logits"):
            self.refused(1, "out: is not a regular file", *karate, option, path)
        os.remove(path)
        with open(path, "w") as f:
            f.write("old")
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        done = subprocess.run([TRAIN, *karate, "--json", path], capture_output=True, text=True, timeout=60, preexec_fn=limit)
        self.assertEqual((done.returncode, done.stderr), (1, f"train: {path}: cannot be written (File too large)\n"))
        with open(path) as f:
            self.assertEqual((f.read(), os.listdir(self.folder)), ("old", ["out"]))
        os.remove(path)
        os.symlink("behind", path)
        self.assertEqual(train(*karate, "--json", path).returncode, 0)
        self.assertTrue(os.path.islink(path) and os.path.getsize(os.path.join(self.folder, "behind")) > 0)
        with open("/dev/full", "w") as full:
            for words in (karate[:-1], ["--help"]):
                done = subprocess.run([TRAIN, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (1, "train: cannot write to standard output (No space left on device)\n"))

    def test_names_that_are_not_utf_8(self):
        folder = os.fsencode(self.data()) + b"/graphe_\xe9"
        os.mkdir(folder)
        for name in good_data():
            os.rename(os.path.join(os.fsencode(self.folder), name.encode()), os.path.join(folder, name.encode()))
        out, model = os.path.join(self.folder, "r.json"), os.path.join(self.folder, "m.safetensors")
        done = subprocess.run([TRAIN, "--data", folder, "--model", "gcn", "--epochs", "2", "--quiet", "--json", out, "--save", model], capture_output=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        with open(out) as f:
            self.assertEqual(json.load(f)["run"]["data"]["name"], "graphe_\ufffd")

    def test_bad_input(self):
        def bad(part, **changed):
            self.refused(1, part, "--data", self.data(**changed), "--model", "gcn")
            for name in os.listdir(self.folder):
                os.remove(os.path.join(self.folder, name))

        self.refused(1, "nowhere", "--data", "nowhere", "--model", "gcn")
        bad("edges.npy", edges_npy=None)
        bad("labels.npy: no such file; --task links needs none", labels_npy=None)
        bad("has neither features_csr.npz nor features.npy; --embedding N learns N numbers of each vertex in their place", features_npy=None)
        bad("edges.npy", edges_npy=good_data()["edges.npy"][:-9])
        bad("edges.npy", edges_npy=b"not an array")
        bad("edges.npy: expected int64", edges_npy=floats([0.0] * 12, (6, 2)))
        bad("edges.npy", edges_npy=ints([0, 6], (1, 2)))
        bad("edges.npy", edges_npy=ints([-1, 0], (1, 2)))
        bad("labels.npy", labels_npy=ints([0, 1, -2, 0, 1, 0], (6,)))
        bad("labels.npy", labels_npy=ints([0, 1, 99, 0, 1, 0], (6,)))
        bad("features.npy", features_npy=floats([0.5] * 11 + [float("nan")], (6, 2)))
        bad("training set", split_npy=npy("|u1", (6,), bytes([2, 2, 2, 2, 3, 3])))
        bad("features", features_npy=None)

    def test_work_that_cannot_be_done(self):
        karate = ["--data", "karate", "--model", "gcn"]
        if train(*karate, "--device", "cuda", "--quiet", "--epochs", "1").returncode != 0:
            self.refused(1, "CUDA", *karate, "--device", "cuda")  # not built for it, or no card here
        self.refused(1, "x.json: cannot be written (No such file or directory)", *karate, "--json", "/no/such/folder/x.json")
        self.refused(1, "the loss is not finite", *karate, "--lr", "1e30")

    def test_processes_of_a_job_are_no_separate_runs(self):
        karate = ["--data", "karate", "--model", "gcn", "--epochs", "1"]
        for job in ("OMPI_COMM_WORLD", "PMI", "MV2_COMM_WORLD"):
            self.refused(2, "the 2 processes of this job would each run alone; --comm mpi", *karate, command=["env", f"{job}_SIZE=2", f"{job}_RANK=0"])
            self.assertEqual(train(*karate, command=["env", f"{job}_SIZE=2", f"{job}_RANK=1"]).stdout, "")
            self.assertIn("epoch", train(*karate, command=["env", f"{job}_SIZE=1", f"{job}_RANK=0"]).stdout)
        self.refused(2, "the 3 processes of this job", *karate, command=["env", "SLURM_STEP_NUM_TASKS=3", "SLURM_PROCID=0"])
        self.train(command=["env", "SLURM_NTASKS=3", "SLURM_PROCID=0"])  # a batch script, not srun
        if LAUNCH:
            self.refused(2, "the 2 processes of this job", *karate, command=[*LAUNCH, "2"])

    @unittest.skipIf(not LAUNCH, "this build has no MPI; the configure step says so")
    def test_over_mpi(self):
        expected = self.train("--policy", "row_1d")
        four = [*LAUNCH, "4"]
        for ranks, *options in (("1", "row_1d"), ("2", "feature_column"), *(("4", policy) for policy in POLICIES), ("4", "grid_2d", "--mpi-collectives", "native")):
            result = self.train("--comm", "mpi", "--policy", *options, command=[*LAUNCH, ranks])
            self.assertEqual(result["words_received"], result["predicted_words_received"])
            self.same_losses(result, expected, options, 1e-9)
        self.refused(2, "--mpi-collectives native needs --comm mpi", "--data", "karate", "--model", "gcn", "--mpi-collectives", "native")
        for words in (("random",), ("metis",)):
            partition = self.with_partition(*words)
            if partition:
                by_threads = self.train("--policy", "grid_2d", "--ranks", "4", *partition)
                by_processes = self.train("--policy", "grid_2d", "--comm", "mpi", *partition, command=four)
                for same in ("loss", "words_received", "partition"):
                    self.assertEqual(by_processes[same], by_threads[same], (words, same))
        self.refused(1, "nowhere: no such file", "--model", "gcn", "--comm", "mpi", "--data", "karate", "--partition", "given", "nowhere", command=four)
        mpi = ["--model", "gcn", "--comm", "mpi"]
        self.refused(1, "edges.npy", *mpi, "--data", self.data(edges_npy=ints([0, 6], (1, 2))), command=four)
        self.refused(1, "nowhere", *mpi, "--data", "nowhere", command=four)
        self.refused(2, "mesh 3x1x1 has 3 places for 4 ranks", *mpi, "--data", "karate", "--policy", "row_1d", "--mesh", "3x1x1", command=four)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
