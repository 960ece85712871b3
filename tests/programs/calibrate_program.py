#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""calibrate measures this machine, and train and plan read what it wrote: calibrate_program.py CALIBRATE TRAIN PLAN"""
import json
import os
import re
import shlex
import sys
import unittest

sys.dont_write_bytecode = True
from program_case import ProgramCase, run

CALIBRATE, TRAIN, PLAN = sys.argv[1:4]


def train(*arguments, model="gcn"):
    return run(TRAIN, "--data", "karate", "--model", model, "--epochs", "3", "--quiet", *arguments)


class CalibrateProgram(ProgramCase):
    def write(self, name, machine):
        file = os.path.join(self.folder, name)
        with open(file, "w") as f:
            json.dump(machine, f)
        return file

    def seconds(self, machine, model="gcn", policy="row_1d"):
        return self.result_of(train("--json", self.out, "--machine", machine, "--ranks", "4", "--policy", policy, model=model))["seconds_per_epoch"]

    def refused(self, machine, why):
        done = train("--machine", machine)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(why, done.stderr)

    def test_training_takes_what_was_measured(self):
        file = os.path.join(self.folder, "here.json")
        done = run(CALIBRATE, file, "--seconds", "1", timeout=500)
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("measurements", "GFLOP/s", "product", "gemm", "inside nodes: latency "):
            self.assertIn(part, done.stdout)
        with open(file) as f:
            here = json.load(f)
        self.assertEqual(list(here), ["ranks_of_node", "inside", "slower", "precision", "kernels"])
        self.assertGreater(here["inside"]["latency"], 0)
        self.assertGreater(here["inside"]["bandwidth"], 0)
        kernels = {k["kernel"] for k in here["kernels"]}
        for name in ("gemm", "product", "list", "rows: update", "edge log sum", "maximum", "message sums", "transposed product"):
            self.assertIn(name, kernels)
        for model, policy in (("gcn", "grid_2d"), ("gat", "row_1d")):
            self.assertEqual(self.seconds(file, model, policy), self.seconds(file, model, policy))
        network = {"inside": here["inside"], "between": {"latency": 0, "bandwidth": 1e30}, "ranks_of_node": 1}
        same = self.write("same.json", network | {"kernels": "here.json"})
        slower = self.write("slower.json", network | {"kernels": "here.json", "slower": 2})
        # But for what messages of bytes / 1e30 take and the order of sums.
        self.assertAlmostEqual(self.seconds(slower) / self.seconds(same), 2, delta=1e-6)
        for model in ("gcn", "gat"):
            self.plan(same, model)
        done = train("--machine", same, "--precision", "f64")
        self.check_refused(done, 2, f"--machine {same} has kernels that were measured in f32, and --precision is f64: ")
        self.links(same)

    def links(self, machine):
        """Steps on links, with drawn pairs, take what is planned."""
        given = ["--data", "karate", "--model", "gcn", "--task", "links", "--epochs", "2", "--ranks", "4", "--quiet", "--json", self.out, "--machine", machine]
        done = run(PLAN, *given)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.out) as f:
            plan = json.load(f)
        first = plan["candidates"][0]
        run_of = self.result_of(run(TRAIN, *given, "--policy", "auto", "--mesh", "auto"))
        self.assertEqual((run_of["policy"], run_of["mesh"], run_of["words_received"]), (first["policy"], first["mesh"], first["predicted_words_received"]))

    def plan(self, machine, model):
        """What is planned is what training takes there, to rounding."""
        saved = os.path.join(self.folder, "a model's.safetensors")
        given = ["--hidden", "5,3", "--raw-features"]
        arguments = ["--machine", machine, "--partitions", "none,random", "--model", model, "--data", "karate", "--epochs", "3", *given, "--ranks", "4"]
        shown = run(PLAN, *arguments, "--rows", "3", "--json", self.out, "--save", saved)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("chosen: ", shown.stdout)
        with open(self.out) as f:
            plan = json.load(f)
        candidates = plan["candidates"]
        seconds = [c["predicted_seconds"] for c in candidates]
        for one, next in zip(candidates, candidates[1:]):
            cost = lambda c: (c["predicted_buffer_bytes"]["max_rank"], c["predicted_words_received"]["max_rank"])
            a, b = one["predicted_seconds"], next["predicted_seconds"]
            self.assertTrue(a < b or abs(a - b) <= 1e-9 * a and cost(one) <= cost(next), (one, next))
        self.assertEqual({c["partition"] for c in candidates}, {"none", "random"})
        costs = [(*map(str, map(c.get, ("partition", "policy", "mesh", "exchange", "stationary", "predicted_words_received", "predicted_buffer_bytes"))), f"{c['predicted_seconds']:.6e}") for c in candidates]
        self.assertEqual(len(set(costs)), len(costs), "candidates that differ in nothing but chunks")
        command = shlex.split(shown.stdout.splitlines()[-1])
        self.assertEqual(command, ["train", "--data", "karate", "--save", saved, "--model", model, "--hidden", "5,3", "--epochs", "3", "--raw-features", *plan["options"].split()])
        run_of = self.result_of(run(TRAIN, *command[1:], "--quiet", "--json", self.out, "--machine", machine))
        self.assertTrue(os.path.exists(saved))
        self.assertAlmostEqual(run_of["seconds_per_epoch"] / seconds[0], 1, delta=1e-9)
        self.assertEqual(run_of["words_received"]["max_rank"], candidates[0]["predicted_words_received"]["max_rank"])
        asked = self.result_of(train("--json", self.out, "--calibration", machine, "--mesh", "auto", "--ranks", "4", *given, model=model))
        chosen = [c for c in asked["candidates"] if c["chosen"]]
        self.assertEqual([c["why"] for c in chosen], ["the fewest seconds"])
        tried = [c for c in asked["candidates"] if "same_as" not in c]
        here = [c for c in candidates if c["partition"] == "none"]
        key = lambda c: tuple(c.get(name) or 0 for name in ("policy", "mesh", "exchange", "stationary", "exchange_pieces", "predicted_words_received", "predicted_bytes", "predicted_buffer_bytes"))
        self.assertEqual(key(chosen[0]), key(here[0]))
        self.assertEqual(sorted(map(repr, map(key, tried))), sorted(map(repr, map(key, here))))
        self.assertAlmostEqual(chosen[0]["predicted_seconds"] / min(c["predicted_seconds"] for c in candidates if c["partition"] == "none"), 1, delta=1e-9)
        small = run(PLAN, *arguments, "--memory", "1K")
        least = min(candidates, key=lambda c: c["predicted_buffer_bytes"]["max_rank"])
        self.assertEqual(small.returncode, 1)
        self.assertRegex(small.stderr, f"no candidate fits into --memory, 1024 bytes of a rank: --ranks 4 --policy {least['policy']} .* needs least, {least['predicted_buffer_bytes']['max_rank']} bytes")
        self.assertNotIn("plan: 0 candidates", small.stderr)
        for more, why in ((["--far", "here", "--memory", "1M"], "do not go together"), (["--partitions", "best"], "best")):
            done = run(PLAN, *arguments, *more)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)
        return arguments, candidates

    def check_fewest_words(self, arguments, candidates):
        """What `why` says has the fewest words fits into --memory, where the fewest of all do not."""
        bytes_of = lambda c: c["predicted_buffer_bytes"]["max_rank"]
        fewest = min(candidates, key=lambda c: (c["predicted_words_received"]["max_rank"], -bytes_of(c)))
        most = max(bytes_of(c) for c in candidates if bytes_of(c) < bytes_of(fewest))
        shown = run(PLAN, *arguments, "--quiet", "--memory", str(most), "--json", self.out)
        self.assertEqual((shown.returncode, shown.stdout), (0, ""), shown.stderr)
        with open(self.out) as f:
            plan = json.load(f)
        found = re.search("the fewest words are ([0-9]+) of (.*), and it takes", plan["why"])
        options = shlex.split(found.group(2))
        of = dict(zip(options[::2], options[1::2]))
        said = [c for c in plan["candidates"] if (c["policy"], "x".join(map(str, c["mesh"])), c["exchange"], c["stationary"], c["partition"]) ==
                (of["--policy"], of["--mesh"], of.get("--exchange", ""), of.get("--stationary", ""), of.get("--partition", "none"))]
        self.assertEqual([(c["fits"], str(c["predicted_words_received"]["max_rank"])) for c in said], [(True, found.group(1))])
        shown = run(PLAN, *arguments, "--memory", str(most), "--rows", "1")
        table = shown.stdout.splitlines()[1:-2]
        self.assertEqual((len(table), f" {found.group(1)} " in table[-1], of["--mesh"] in table[-1]), (2, True, True), shown.stdout)

    def test_what_a_machine_may_say(self):
        kernel = {"kernel": "gemm", "rows": 4, "bytes": 8, "seconds": 1e-6}
        for kernels, why in (([], "kernels is not a list of measurements"),
                             ([kernel | {"size": 1}], "unknown key kernels[0].size"),
                             ([kernel, kernel | {"rows": -1}], "kernels[1].rows is not a number of 0 or more"),
                             ([kernel | {"kernel": 3}], "kernels[0].kernel is not a name"),
                             ([kernel | {"times": 0.5}], "kernels[0].times is not a positive whole number below a billion"),
                             ([kernel | {"seconds": 0}], "kernels[0] needs a kernel, and bytes and seconds that are positive"),
                             ([3], "kernels[0] is not an object"), ("none.json", "none.json: cannot be read"),
                             ({"speed": 1}, "unknown key kernels.speed"), ({"latency": -1}, "kernels.latency is not a number of 0 or more"),
                             ({"bandwidth": 0}, "kernels: bandwidth and multiplications must be positive")):
            self.refused(self.write("machine.json", {"kernels": kernels}), why)
        self.write("network.json", {"ranks_of_node": 2})
        self.refused(self.write("machine.json", {"kernels": "network.json"}), "network.json: has no kernels")
        self.refused(self.write("machine.json", {"ranks_of_node": 2.5}), "ranks_of_node is not a positive whole number")
        self.refused(self.write("machine.json", {"kernels": [kernel], "in_real_time": True}), "kernels are for virtual time")
        done = train("--machine", self.write("machine.json", {"kernels": [kernel]}))
        self.assertEqual(done.returncode, 1)
        self.assertIn("there is no measurement of the kernel \"", done.stderr)

    def test_a_machine_that_is_assumed(self):
        inside = {"inside": {"latency": 1e-5, "bandwidth": 1e9}, "kernels": {"latency": 1e-6}}
        self.assertEqual(self.seconds(self.write("one.json", inside)), self.seconds(self.write("two.json", inside | {"between": inside["inside"]})))
        seconds = [self.seconds(self.write("machine.json", {"kernels": {"latency": l, "bandwidth": 1e9 / l}})) for l in (1e-6, 2e-6)]
        self.assertAlmostEqual(seconds[1] / seconds[0], 2, delta=1e-6)
        machine = self.write("machine.json", {"between": {"latency": 1e-5}, "kernels": {"latency": 5e-6, "multiplications": 1e12}})
        self.check_fewest_words(*self.plan(machine, "gcn"))
        asked = self.result_of(train("--json", self.out, "--calibration", machine, "--policy", "grid_2d", "--mesh", "auto", "--ranks", "4"))
        shares = [note for note in asked["notes"] if note == f'4 ranks share cores, and --calibration takes each to have one; "slower" in {machine} can say otherwise']
        self.assertEqual(len(shares), len(os.sched_getaffinity(0)) < 4)
        chosen, = (c for c in asked["candidates"] if c["chosen"])
        names = "exchange", "stationary", "exchange-pieces"
        self.assertEqual([asked["run"]["options"].get(name) for name in names], [chosen.get(name.replace("-", "_")) for name in names])
        self.again(TRAIN, asked, "loss", "mesh", "words_received")

    def test_without_a_machine_words_and_bytes_are_compared(self):
        """Seconds are not known, and the command that is printed receives the words that were said."""
        for given in (["--model", "gcn", "--hidden", "5,3"], ["--model", "gat"], ["--model", "gcnii", "--layers", "3", "--stages", "2"]):
            given = ["--data", "karate", *given, "--epochs", "2"]
            shown = run(PLAN, *given, "--ranks", "4", "--json", self.out)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            with open(self.out) as f:
                plan = json.load(f)
            key = lambda c: (c["policy"], *c["mesh"], c["predicted_words_received"]["max_rank"], c["predicted_bytes"]["max_rank"])
            costs = [(words + 1) * bytes for *_, words, bytes in map(key, plan["candidates"])]
            self.assertEqual(costs, sorted(costs))
            self.assertFalse([name for name in (*plan, *plan["candidates"][0]) if name in ("machine", "predicted_seconds", "predicted_waiting")])
            *_, words, bytes = key(plan["candidates"][0])
            why = f"of the busiest rank, {words} and {bytes}; without --machine seconds are unknown"
            lines = shown.stdout.splitlines()
            self.assertTrue(why in plan["why"] and why in lines[-2] and re.search(f" - +- +{words} ", lines[1]), shown.stdout)
            trained = self.result_of(run(TRAIN, *shlex.split(lines[-1])[1:], "--quiet", "--json", self.out))
            self.assertEqual(trained["words_received"], plan["candidates"][0]["predicted_words_received"])
            if "--hidden" not in given:  # with no exchanges to compare they are those of auto
                asked = self.result_of(run(TRAIN, *given, "--ranks", "4", "--policy", "auto", "--mesh", "auto", "--quiet", "--json", self.out))
                self.assertCountEqual(map(key, plan["candidates"]), [key(c) for c in asked["candidates"] if "same_as" not in c])
        network = self.write("network.json", {"ranks_of_node": 2})
        self.check_refused(run(PLAN, "--data", "karate", "--model", "gcn", "--machine", network), 2, f"--machine {network} has no kernels")
        self.check_refused(run(PLAN, "--data", "karate", "--batch", "8", "--model", "sage"), 2, "placements of --batch by seconds, which need --machine")

    def test_stages_and_placements_are_compared(self):
        """The command that is printed trains what was said."""
        machine = self.write("machine.json", {"ranks_of_node": 2, "between": {"latency": 1e-5, "bandwidth": 1e9}, "kernels": {"latency": 5e-6, "multiplications": 1e12}})
        stages = ["--model", "gcnii", "--layers", "3", "--hidden", "6", "--epochs", "2"]
        batches = ["--model", "sage", "--batch", "8", "--fanout", "3,2", "--epochs", "2"]
        for given, more, kept in ((stages, ["--stage-counts", "auto", "--stage-chunks", "3,5"], ["stages", "chunks"]),
                                  ([*stages, "--history", "halo"], ["--stages", "2", "--policy", "row_1d"], ["stages", "chunks"]),
                                  (batches, ["--partitions", "none,random"], ["placement"])):
            shown = run(PLAN, "--data", "karate", "--ranks", "4", "--machine", machine, *given, *more, "--json", self.out)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            with open(self.out) as f:
                plan = json.load(f)
            first, lines = plan["candidates"][0], shown.stdout.splitlines()
            command = shlex.split(lines[-1])
            self.assertCountEqual(command, ["train", "--data", "karate", *given, *plan["options"].split()])
            trained = self.result_of(run(TRAIN, *command[1:], "--quiet", "--json", self.out, "--machine", machine))
            self.assertEqual(trained["words_received"], first["predicted_words_received"])
            self.assertEqual({trained.get(key) for key in kept}, {first.get(key) for key in kept})
            ways = {(c.get("stages"), c.get("chunks"), c.get("placement")) for c in plan["candidates"]}
            if given is stages:
                self.assertEqual(ways, {(None,) * 3, *((s, k, None) for s in (2, 4) for k in (3, 5))})
            elif given is batches:
                self.assertEqual(ways, {(None, None, p) for p in ("even", "owner", "column", "column_gather")})
                self.assertIn("ms an epoch", lines[0])
            else:
                self.assertEqual(ways, {(2, 8, None)})
                self.assertIn(" 2 stages, 8 chunks ", lines[1])
        for why, *more in (("4 ranks are not 3 stages", *stages, "--stage-counts", "0,3"), ("cannot be cut into 4 stages", "--model", "gcn", "--stage-counts", "4"),
                           ("--stage-counts is for --model gcn", "--model", "gat", "--stage-counts", "2"), ("half is not auto or a number", *stages, "--stage-counts", "half"),
                           ("--stage-counts and --batch do not go", *batches, "--stage-counts", "2"), ("--stage-chunks is for stages", *stages, "--stage-chunks", "2"),
                           ("--stage-counts 0 is the whole graph", *stages, "--stages", "2", "--stage-counts", "0"),
                           ("without --stage-layers measured", *stages, "--stages", "2", "--stage-layers", "measured")):
            self.check_refused(run(PLAN, "--data", "karate", "--ranks", "4", "--machine", machine, *more), 2, why)

    def test_what_plan_cannot_compare(self):
        machine = self.write("machine.json", {"kernels": {"latency": 1e-6}})
        for why, *more in (("--row-encoding needs a --policy that cuts rows", "--model", "gcn", "--row-encoding", "int8"),
                           ("mesh 3x1x1 has 3 places for 4 ranks", "--model", "gcn", "--policy", "row_1d", "--mesh", "3x1x1"),
                           ("policy row_1d does not use the col axis of mesh 2x2x1", "--model", "gcn", "--policy", "row_1d", "--mesh", "2x2x1")):
            done = run(PLAN, "--data", "karate", "--ranks", "4", "--machine", machine, *more)
            self.assertIn(done.returncode, (1, 2), done.stderr)
            self.assertIn(why, done.stderr)
        for more in (["--ranks-of-node", "2"], ["--row-encoding", "int8", "--policy", "row_1d"], ["--exchanges", "cover,needed"], ["--policy", "grid_2d", "--mesh", "2x2x1"]):
            done = run(PLAN, "--data", "karate", "--model", "gcn", "--ranks", "4", "--machine", machine, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f'{machine}: there is no "between", and 4 ranks are on nodes of 1: messages between nodes are taken to cost what they do inside, which is nothing', done.stderr)
        karate = ["--data", "karate", "--model", "gcn", "--ranks", "2", "--machine", machine, "--quiet", "--json", self.out]
        self.check_refused(run(PLAN, *karate, "--policy", "ring"), 2, "--policy: ring is not one of row_1d, replicated_1_5d, grid_2d, split_3d, feature_column, feature_row, auto; ")
        for rank in "10":
            self.assertFalse(os.path.exists(self.out))  # no other process plans than the first of a job
            done = run(PLAN, *karate, command=["env", "OMPI_COMM_WORLD_SIZE=2", f"OMPI_COMM_WORLD_RANK={rank}"])
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(os.path.exists(self.out))
        done = run(PLAN, "--data", "karate", "--model", "gcn", "--machine", machine, "--json", self.out, command=["env", "OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_RANK=0"])
        self.assertIn("plan: for 3 ranks, those of this job", done.stderr)
        with open(self.out) as f:
            self.assertEqual(json.load(f)["ranks"], 3)
        done = train("--machine", machine, "--calibration", machine)
        self.assertIn("--calibration and --machine do not go together", done.stderr)
        self.check_refused(train("--calibration", machine, "--batch", "8"), 2, "--batch and --calibration do not go together: it compares steps on the whole graph at once")
        self.refused(self.write("machine.json", {"kernels": {}}), "kernels needs a latency, a bandwidth or multiplications")

    def test_what_calibrate_refuses(self):
        for arguments, code in ((["--seconds", "0"], 2), (["--threads", "0"], 2), ([], 1)):
            done = run(CALIBRATE, os.path.join(self.folder, "no", "file.json"), *arguments)
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(run(CALIBRATE).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
