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
MODEL = ("model hidden coupling aggregation heads hops split-chunks recompute alpha lambda epsilon self-loops epochs lr weight-decay convolution-decay dropout "
         "seed precision raw-features").split()
BATCH = "batch sampler fanout placement micro-batches replace graph scores".split()
STAGES = "stages chunks chunk-cut stage-layers history window no-shuffle no-correction exact-epochs".split()
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
        return self.result_of(run(TRAIN, "--data", "karate", *model, "--epochs", "2", "--quiet", "--json", self.out, *arguments))

    def test_keys_of_the_json(self):
        after = lambda name, more, names: names[:names.index(name) + 1] + more + names[names.index(name) + 1:]
        stages = [*after("window", [], STAGES[:-1]), "guard", "tolerance", "least-cosine", "on-divergence", "exact-epochs"]
        for arguments, expected in (([], ["data", *MODEL, *RANKS]), (["--layers", "2", "--embedding", "3"], ["data", *after("hidden", ["layers"], MODEL), "embedding", *RANKS]),
                                    (["--batch", "8"], ["data", *MODEL, *BATCH, *RANKS]), (["--stages", "2"], ["data", *MODEL, *STAGES, *RANKS]),
                                    (["--stages", "2", "--guard", "1"], ["data", *MODEL, *stages, *RANKS]),
                                    (["--stages", "2", "--history", "zero"], ["data", *MODEL, *[name for name in STAGES if name != "window"], *RANKS]),
                                    (["--products", "bf16", "--exchange-chunks", "2", "--memory", "1G"],
                                     ["data", *MODEL, *after("mesh", ["products", "exchange-chunks"], RANKS), "memory"]),
                                    (["--reproducible"], ["data", *MODEL, *RANKS, "reproducible"])):
            self.assertEqual(list(self.train(*arguments)["run"]["options"]), expected, arguments)

    def test_types_and_values_of_the_json(self):
        written = self.train("--hidden", "5,3", "--batch", "8", "--lr", "0.25", "--replace", "--graph", "cut")["run"]["options"]
        self.assertEqual([written[name] for name in ("hidden", "coupling", "recompute", "self-loops", "lr", "raw-features", "seed", "replace", "graph", "scores", "fanout")],
                         ["5,3", "coupled", "auto", "sum", 0.25, False, 0, True, "cut", "exact", "10,10,10"])
        written = self.train("--stages", "2", "--no-shuffle", "--chunk-cut", "nonzeros", "--policy", "row_1d")["run"]["options"]
        self.assertEqual([written[name] for name in ("chunks", "chunk-cut", "stage-layers", "history", "no-shuffle", "no-correction", "policy")],
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
                                               (["--products", "bf16"], {"products": "bf16"}))):
            folder = os.path.join(self.folder, f"kept{n}")
            self.train(*arguments, "--checkpoint", folder)
            written = metadata(glob.glob(folder + "/*.safetensors")[0])
            options = {name.removeprefix("option."): value for name, value in written.items() if name.startswith("option.")}
            self.assertEqual(sorted(options), sorted([*KEPT, *more]))
            self.assertEqual({name: options[name] for name in ("raw-features", "lr", "weight-decay", "last-heads", "self-loops", *more)},
                             {"raw-features": "no", "lr": "0.01", "weight-decay": "5e-04", "last-heads": "1", "self-loops": "sum", **more})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
