#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The options of the program: train_options.py TRAIN

Their names in what it writes (the JSON, a saved model, a checkpoint), which others read; what is refused because the model or
the mode does not use it; and the tables of the docs, which say what --help says."""
import glob
import json
import os
import re
import struct
import sys
import unittest

sys.dont_write_bytecode = True
from program_case import ProgramCase, run

TRAIN, *_ = sys.argv[1:]
DOCS = os.path.join(os.path.dirname(__file__), "../../docs")
MODEL = ("model hidden coupling aggregation heads hops split-pieces recompute alpha lambda epsilon self-loops epochs lr optimizer schedule evaluate-every weight-decay convolution-decay dropout "
         "seed precision raw-features").split()
BATCH = "batch sampler fanout placement micro-batches replace graph scores".split()
STAGES = "stages chunks chunk-cut stage-layers history window no-shuffle no-compensation exact-epochs".split()
RANKS = "policy ranks mesh partition comm device threads".split()
SAVED = ("aggregation alpha classes coupling data embedding epsilon features heads hidden hops lambda last_heads layers model partita precision raw_features seed "
         "self_loops").split()
KEPT = ("aggregation alpha batch classes convolution-decay coupling dropout embedding epsilon features heads hidden hops lambda last-heads layers lr model precision "
        "raw-features seed self-loops vertices weight-decay").split()


def metadata(path):
    with open(path, "rb") as f:
        return json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))["__metadata__"]


class Options(ProgramCase):
    def train(self, *arguments):
        model = [] if "--model" in arguments or "--preset" in arguments else ["--model", "gcn"]
        epochs = [] if "--epochs" in arguments else ["--epochs", "2"]
        return self.result_of(run(TRAIN, "--data", "karate", *model, *epochs, "--quiet", "--json", self.out, *arguments))

    def test_covers_train_alike_and_move_less(self):
        ranks = "--ranks", "4", "--policy", "row_1d", "--precision", "f64"
        needed, cover = (self.train(*ranks, "--exchange", rows) for rows in ("needed", "cover"))
        self.assertEqual(cover["run"]["options"]["exchange"], "cover")
        self.assertEqual(cover["words_received"], cover["predicted_words_received"])
        self.assertLess(cover["words_received"]["total"], needed["words_received"]["total"])
        self.assertAlmostEqual(cover["loss"][-1], needed["loss"][-1], 10)

    def test_rows_cross_between_nodes_once(self):
        along = lambda result, axis: sum(e["elements"] for e in result["ledger"] if e["phase"] in ("forward", "backward") and e["axis"] == axis)
        for model in ("gcn", "sage", "gin", "appnp", "gcnii", "resgcn"):
            given = "--model", model, "--ranks", "6", "--policy", "row_1d", "--precision", "f64", "--exchange", "needed"
            at_once, by_node = self.train(*given), self.train(*given, "--ranks-of-node", "3")
            self.assertNotIn("ranks-of-node", at_once["run"]["options"])
            self.assertEqual(by_node["run"]["options"]["ranks-of-node"], 3)
            self.assertEqual(by_node["words_received"], by_node["predicted_words_received"])
            self.assertLess(0, along(by_node, "row between nodes"))
            self.assertLess(along(by_node, "row between nodes"), along(at_once, "row"))
            self.assertLess(0, along(by_node, "row inside nodes"))
            self.assertEqual(by_node["loss"], at_once["loss"])  # rows come in both directions, and no sums go
        chosen = self.train("--ranks", "6", "--ranks-of-node", "4")
        self.assertEqual(chosen["words_received"], chosen["predicted_words_received"])

    def test_keys_of_the_json(self):
        after = lambda name, more, names: names[:names.index(name) + 1] + more + names[names.index(name) + 1:]
        stages = [*after("window", [], STAGES[:-1]), "guard", "tolerance", "least-cosine", "on-divergence", "exact-epochs"]
        for arguments, expected in (([], ["data", *MODEL, *RANKS]), (["--layers", "2", "--embedding", "3"], ["data", *after("hidden", ["layers"], MODEL), "embedding", *RANKS]),
                                    (["--batch", "8"], ["data", *MODEL, *BATCH, *RANKS]), (["--stages", "2"], ["data", *MODEL, *STAGES, *RANKS]),
                                    (["--stages", "2", "--guard", "1"], ["data", *MODEL, *stages, *RANKS]),
                                    (["--stages", "2", "--history", "zero"], ["data", *MODEL, *[name for name in STAGES if name != "window"], *RANKS]),
                                    (["--operands", "bf16", "--exchange-pieces", "2", "--memory", "1G"],
                                     ["data", *MODEL, *after("mesh", ["operands", "exchange-pieces"], RANKS), "memory"]),
                                    (["--reproducible"], ["data", *MODEL, *RANKS, "reproducible"])):
            self.assertEqual(list(self.train(*arguments)["run"]["options"]), expected, arguments)

    def test_types_and_values_of_the_json(self):
        written = self.train("--hidden", "5,3", "--batch", "8", "--lr", "0.25", "--replace", "--graph", "cut")["run"]["options"]
        self.assertEqual([written[name] for name in ("hidden", "coupling", "recompute", "self-loops", "lr", "raw-features", "seed", "replace", "graph", "scores", "fanout")],
                         ["5,3", "coupled", "never", "sum", 0.25, False, 0, True, "cut", "exact", "10,10,10"])
        written = self.train("--stages", "2", "--no-shuffle", "--chunk-cut", "nonzeros", "--policy", "row_1d")["run"]["options"]
        self.assertEqual([written[name] for name in ("chunks", "chunk-cut", "stage-layers", "history", "no-shuffle", "no-compensation", "policy")],
                         [8, "nonzeros", "1,1", "window", True, False, "row_1d"])

    def test_keys_of_saved_models(self):
        model = os.path.join(self.folder, "m.safetensors")
        self.train("--model", "gat", "--hidden", "4", "--raw-features", "--save", model)
        written = metadata(model)
        self.assertEqual(sorted(written), SAVED)
        self.assertEqual({name: written[name] for name in ("model", "hidden", "heads", "last_heads", "alpha", "self_loops", "coupling", "raw_features", "embedding", "seed")},
                         {"model": "gat", "hidden": "4", "heads": "8", "last_heads": "1", "alpha": "0.1", "self_loops": "sum", "coupling": "coupled", "raw_features": "true",
                          "embedding": "0", "seed": "0"})

    def test_keys_of_checkpoints(self):
        for n, (arguments, more) in enumerate((([], {}), (["--batch", "8", "--replace"], {"sampler": "neighbours", "fanout": "10,10", "replace": "yes"}),
                                               (["--storage", "bf16"], {"storage": "bf16"}))):
            folder = os.path.join(self.folder, f"kept{n}")
            self.train(*arguments, "--checkpoint", folder)
            written = metadata(glob.glob(folder + "/*.safetensors")[0])
            options = {name.removeprefix("option."): value for name, value in written.items() if name.startswith("option.")}
            self.assertEqual(sorted(options), sorted([*KEPT, *more]))
            self.assertEqual({name: options[name] for name in ("raw-features", "lr", "weight-decay", "last-heads", "self-loops", *more)},
                             {"raw-features": "no", "lr": "0.01", "weight-decay": "5e-04", "last-heads": "1", "self-loops": "sum", **more})

    def test_what_people_train_with(self):
        model, again = (os.path.join(self.folder, name) for name in ("m.safetensors", "n.safetensors"))
        ways = ["--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.3", "--schedule", "cosine", "--warmup", "3", "--clip", "1", "--precision", "f64"]
        for mode in (["--ranks", "4"], ["--model", "sage", "--batch", "8", "--ranks", "2"], ["--model", "gcnii", "--layers", "4", "--stages", "2", "--history", "exact"]):
            found = self.train(*mode, *ways, "--epochs", "60", "--patience", "5", "--save", model)
            self.assertEqual(found["kept_epoch"], found["best_val_epoch"])
            self.assertEqual(found["val_accuracy"], max(found["val_accuracies"]))
            self.assertEqual(found["test_accuracy"], found["test_accuracy_at_best_val"])
            self.assertEqual(found["out_of_patience"], found["epochs"] < 60)
            self.assertLess(min(found["loss"]), found["loss"][0])
            written = found["run"]["options"]
            self.assertEqual([written[name] for name in ("optimizer", "momentum", "schedule", "schedule-factor", "warmup", "clip", "patience", "evaluate-every") if name in written],
                             ["sgd", 0.9, "cosine", 3, 1, 5, 1])
            # Begun with the kept weights, which a step of no length leaves as they are.
            begun = self.train(*mode, "--precision", "f64", "--lr", "1e-300", "--epochs", "1", "--init", model, "--save", again)
            self.assertEqual([begun[name] for name in ("val_accuracy", "test_accuracy")], [found[name] for name in ("val_accuracy", "test_accuracy")])
            with open(model, "rb") as f, open(again, "rb") as g:
                self.assertEqual(f.read()[-100:], g.read()[-100:])
        self.assertEqual([score is None for score in self.train("--epochs", "7", "--evaluate-every", "3")["val_accuracies"]], [True, True, False, True, True, False, False])
        for mode in (["gcnii"], ["resgcn"], ["sage", "--batch", "8"], ["gin", "--batch", "8", "--placement", "column"], ["gcnii", "--stages", "2"], ["gcn", "--stages", "1", "--history", "halo"]):
            own, *rounded = (self.train("--model", *mode, "--layers", "2", "--epochs", "3", "--ranks", "2", *more)["loss"] for more in ([], ["--operands", "bf16"], ["--storage", "bf16"]))
            for loss in rounded:
                self.assertTrue(own != loss and all(abs(a - b) < 0.01 * a for a, b in zip(own, loss)), (mode, own, loss))
        self.train("--model", "gcn", "--save", model)
        self.check_refused(run(TRAIN, "--data", "karate", "--model", "gcn", "--hidden", "9", "--init", model, "--quiet"), 1, "the model has a parameter W0 (34 x 9) where " + model)
        self.check_refused(run(TRAIN, "--data", "karate", "--model", "gcn", "--schedule", "cosine", "--schedule-least", "1", "--quiet"), 2, "--schedule-least 1 is more than --lr 0.01")
        self.check_refused(run(TRAIN, "--data", "karate", "--model", "sgc", "--init", model, "--quiet"), 1, "the model has a parameter")

    def test_presets_have_no_option_that_their_model_does_not_read(self):
        names = re.search(r"--preset (\S+)", run(TRAIN, "--help").stdout).group(1).split("|")
        self.assertIn("sgc", names)
        for name in names:
            self.train("--preset", name)

    def test_links_are_the_same_on_any_ranks(self):
        for more in (["--decoder", "dot"], ["--decoder", "mlp", "--link-loss", "margin", "--negatives", "3"]):
            expected = None
            for ranks in (["--ranks", "1"], ["--ranks", "6", "--policy", "grid_2d"], ["--ranks", "3", "--policy", "auto"]):
                found = self.train("--task", "links", "--held-out", "0.1,0.2", "--epochs", "5", "--precision", "f64", *more, *ranks)
                self.assertEqual(found["words_received"], found["predicted_words_received"])
                self.assertEqual((found["score"], list(found["scores"]["test"]), found["train_accuracies"]), ("mrr", ["mrr", "hits", "roc_auc"], [None] * 5))
                expected = expected or found
                for name in ("loss", "val_accuracies", "test_accuracies"):
                    for a, b in zip(found[name], expected[name], strict=True):
                        self.assertAlmostEqual(a, b, delta=1e-12)
                self.assertEqual(found["scores"]["test"], expected["scores"]["test"])

    def test_what_the_model_or_the_mode_does_not_use_is_refused_by_name(self):
        for part, *arguments in (("--heads is for --model gat, gatv2, transformer and rgat, not gcn", "--heads", "4"), ("--hidden is for --model gcn, sage, gin, gat, gine, gatv2, transformer, meshgraphnet, appnp, gcnii, resgcn, rgcn and rgat, not sgc", "--model", "sgc", "--hidden", "8"),
                                 ("--hops is for --model sgc and appnp, not gcn", "--hops", "3"), ("--lambda is for --model gcnii, not appnp", "--model", "appnp", "--lambda", "0.7"),
                                 ("--alpha is for --model appnp and gcnii, not gat", "--model", "gat", "--alpha", "0.3"), ("--epsilon is for --model gin and gine, not sage", "--model", "sage", "--epsilon", "1"),
                                 ("--self-loops is for --model gcn, sgc, appnp and gcnii, not gin", "--model", "gin", "--self-loops", "once"),
                                 ("--convolution-decay is for --model gcnii, not resgcn", "--model", "resgcn", "--convolution-decay", "0"),
                                 ("--dropout is for --model gcn, sage, gin, gat, gine, gatv2, transformer, ", "--model", "sgc", "--dropout", "0"),
                                 ("--aggregation is for --model sage, not gcn", "--aggregation", "max"), ("--coupling is for --model gcn, sage and gat, not appnp", "--model", "appnp", "--coupling", "decoupled"),
                                 ("--split-pieces is for --model sgc, appnp, gcn in its decoupled form and sage in its decoupled form, not gcn", "--split-pieces", "2"),
                                 ("--exchange-pieces is for --model", "--model", "gat", "--exchange-pieces", "2"), ("--exchange is for --model", "--model", "gat", "--exchange", "cover"),
                                 ("--ranks-of-node is for --model", "--model", "gat", "--ranks-of-node", "2"),
                                 ("--ranks-of-node 2 is for needed rows: not with --exchange full", "--ranks-of-node", "2", "--exchange", "full"),
                                 ("--ranks-of-node 2 and --exchange-pieces 3 do not go together", "--ranks-of-node", "2", "--exchange-pieces", "3"),
                                 ("--ranks-of-node: 0 is not a positive whole number", "--ranks-of-node", "0"),
                                 ("--exchange cover and --reproducible do not go together", "--exchange", "cover", "--reproducible"), ("--hops is for", "--preset", "sgc", "--model", "gcn"),
                                 ("--precision f64 and --storage bf16 do not go together", "--storage", "bf16", "--precision", "f64"),
                                 ("--operands f32 and --storage bf16 do not go together", "--storage", "bf16", "--operands", "f32"),
                                 ("--stages and --row-encoding do not go together", "--row-encoding", "int8", "--policy", "row_1d", "--stages", "2"),
                                 ("--batch and --row-encoding do not go together", "--row-encoding", "int8", "--policy", "row_1d", "--batch", "8"),
                                 ("--storage bf16 is for --model gcn, sage, gin, gcnii and resgcn, coupled", "--model", "gat", "--storage", "bf16"),
                                 ("--precision tf32 needs --device cuda", "--precision", "tf32"), ("--no-graphs needs --device cuda", "--no-graphs"), ("--decoder needs --task links", "--decoder", "mlp"), ("--link-width needs --task links", "--link-width", "4"),
                                 ("--margin needs --link-loss margin", "--task", "links", "--margin", "2"), ("below 1 together", "--task", "links", "--held-out", "0.5,0.6"),
                                 *((f"{name} and --task links do not go together", "--task", "links", name, *more) for name, *more in
                                   (("--batch", "8"), ("--stages", "2"), ("--reproducible",))),
                                 ("--window needs --stages", "--window", "3"), ("--tolerance needs --stages", "--tolerance", "1"), ("--graph needs --batch", "--graph", "cut"),
                                 ("--raw-features and --embedding do not go together", "--embedding", "4", "--raw-features"),
                                 ("--momentum needs --optimizer sgd", "--momentum", "0.5"), ("--schedule-period needs --schedule step, cosine or plateau", "--schedule-period", "5"),
                                 ("--schedule-factor needs --schedule step or plateau", "--schedule", "cosine", "--schedule-factor", "0.5"),
                                 ("--clip and --embedding do not go together", "--clip", "1", "--embedding", "4"),
                                 ("--optimizer sgd is not for --embedding", "--optimizer", "sgd", "--embedding", "4"),
                                 ("--patience is less than --evaluate-every", "--patience", "2", "--evaluate-every", "3"),
                                 ("--policy auto and --batch do not go together", "--batch", "8", "--policy", "auto")):
            model = [] if "--model" in arguments else ["--model", "gcn"]
            done = run(TRAIN, "--data", "karate", *model, *arguments, "--quiet")
            self.check_refused(done, 2, part)
            self.assertEqual(done.stderr.count("do not go together"), done.stderr.count("do not go together: "), "without a reason")
        for arguments in (["--heads", "8"], ["--model", "sgc", "--hidden", "16"], ["--model", "gat", "--heads", "4", "--coupling", "decoupled"]):
            self.train(*arguments)  # the default is what every record has

    def test_tables_of_the_docs_are_those_of_the_help(self):
        said = re.sub(r"\n {20,}", " ", run(TRAIN, "--help").stdout)
        helped = {}
        for line in said.splitlines():
            if names := re.match(r"^  (?:-h,)?(--[a-z-]+)", line):
                default = re.search(r"\(default ([^ )]+)\)$", line)
                helped[names.group(1)] = default and default.group(1)
        self.assertGreater(len(helped), 60)
        with open(os.path.join(DOCS, "train.md")) as f:
            page = f.read()
        documented = {}
        for line in page.split("\n## ")[0].splitlines():
            if not re.match(r"^\| `--", line):
                continue
            names, defaults = [cell.strip() for cell in line.split("|")[1:3]]
            names = re.findall(r"--[a-z-]+", names)
            values = [value.strip(" `") for value in defaults.split(",")]
            for name, value in zip(names, values if len(values) == len(names) else [defaults.strip("`")] * len(names)):
                self.assertNotIn(name, documented)
                documented[name] = value
            if len(names) == 1:  # options that need this one stand there, too
                for name in re.findall(r"`(--[a-z-]+)`", line.split("|", 3)[3]) if names[0] in ("--batch", "--stages") else []:
                    documented[name] = None
        self.assertEqual(sorted(documented), sorted(helped))
        for name, default in helped.items():
            if default is not None and documented[name] is not None and not re.search("[;,]", documented[name]):
                number = lambda text: float(text) if re.match(r"^[0-9.e-]+$", text) else text
                self.assertEqual(number(documented[name].split()[0] if documented[name] else ""), number(default), name)

    def test_lists_of_the_docs_are_those_of_the_files(self):
        with open(os.path.join(DOCS, "saving.md")) as f:
            listed = re.search(r"The metadata are texts: (.*?)Numbers are", f.read(), re.S).group(1)
        self.assertEqual(sorted(set(re.findall(r"`([a-z_]+)`", listed)) - {"sum", "once", "true"}), SAVED)
        with open(os.path.join(DOCS, "checkpoints.md")) as f:
            page = f.read()
        table = dict(re.findall(r"^\| `(--[a-z]+)[^|]*\| ([^|]*)\|", page, re.M))
        self.assertEqual({name: value.strip() for name, value in table.items()}, {"--checkpoint": "", "--every": "10", "--keep": "2", "--resume": ""})
        options = re.search(r"must be as it was: (.*?)\.", page, re.S).group(1)
        self.assertEqual(re.findall(r"`--([a-z-]+)`", options), ["batch", "sampler", "fanout", "replace", "operands", "row-encoding", "storage"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
