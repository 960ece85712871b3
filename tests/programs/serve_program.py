#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libpartita_serve from C: every model that train saves answers with the bits of predict, its symbols are those of its
header, and the example prints rows and times.

usage: serve_program.py TRAIN PREDICT CLIENT EXAMPLE LIBRARY HEADER CMAKE BUILD_FOLDER"""
import array
import os
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
from predict_data import data, npy, read_npy
from program_case import ProgramCase, run

TRAIN, PREDICT, CLIENT, EXAMPLE, LIBRARY, HEADER, CMAKE, BUILD = sys.argv[1:]
COMPUTED = [["gcn"], ["gcn", "--layers", "3"], ["gcn", "--self-loops", "once"], ["gcn", "--raw-features"], ["gcn", "--embedding", "3"],
            ["sage"], ["sage", "--layers", "3"], ["gin", "--epsilon", "0.25"]]
KEPT = [["gcn", "--layers", "4"], ["sage", "--aggregation", "max"], ["gat", "--heads", "2"], ["gine"], ["gatv2"], ["transformer"],
        ["sgc", "--hops", "3"], ["appnp", "--alpha", "0.3"], ["gcnii", "--layers", "3"], ["resgcn", "--layers", "2"],
        ["gcn", "--coupling", "decoupled"], ["gat", "--coupling", "decoupled"]]


class Serve(ProgramCase):
    def setUp(self):
        super().setUp()
        files = data()
        self.weighted = self.data_folder("weighted", files)
        self.plain = self.data_folder("plain", {name: content for name, content in files.items() if name != "edge_weight.npy"})
        self.model, self.out, self.rows = (os.path.join(self.folder, f) for f in ("m.safetensors", "p.npy", "rows"))

    def data_folder(self, name, files):
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        for file, content in files.items():
            with open(os.path.join(path, file), "wb") as f:
                f.write(content)
        return path

    def done(self, *command):
        done = run(*command)
        self.assertEqual(done.returncode, 0, (command, done.stderr))
        return done.stdout

    def saved(self, folder, model, precision):
        hidden = [] if "sgc" in model else ["--hidden", "4"]
        self.done(TRAIN, "--data", folder, "--epochs", "3", "--quiet", *hidden, "--precision", precision, "--save", self.model, "--model", *model)

    def predicted(self, folder, to, *more):
        self.done(PREDICT, "--model", self.model, "--data", folder, "--out", self.out, "--ranks", "1", "--quiet", *more)
        values = read_npy(self.out)[1]
        with open(to, "wb") as f:
            f.write(array.array("d", values).tobytes())
        return values

    def test_every_model_has_the_bits_of_predict(self):
        for how, models in (("computed", COMPUTED), ("kept", KEPT)):
            for model in models:
                for folder in (self.plain, self.weighted):
                    for precision in ("f32", "f64"):
                        with self.subTest(model=model, folder=os.path.basename(folder), precision=precision):
                            self.saved(folder, model, precision)
                            values = self.predicted(folder, self.rows)
                            self.assertGreater(max(values) - min(values), 1e-3)
                            self.done(CLIENT, self.model, folder, how, self.rows)

    def test_links_have_the_scores_of_predict(self):
        pairs = [end for k in range(40) for end in (k * 7 % 23, k * k % 23)]
        pair_file, raw, scores = (os.path.join(self.folder, f) for f in ("pairs.npy", "pairs", "scores"))
        with open(pair_file, "wb") as f:
            f.write(npy("q", (40, 2), pairs))
        with open(raw, "wb") as f:
            f.write(array.array("q", pairs).tobytes())
        for decoder in ("dot", "distmult", "mlp"):
            for how, model in (("computed", "sage"), ("kept", "gat")):
                self.saved(self.plain, [model, "--task", "links", "--decoder", decoder, "--link-width", "6"], "f32")
                self.predicted(self.plain, self.rows)
                self.predicted(self.plain, scores, "--links", pair_file)
                self.done(CLIENT, self.model, self.plain, how, self.rows, raw, scores)

    def test_the_example_prints_rows_and_times(self):
        self.saved(self.plain, ["gcn"], "f32")
        values = self.predicted(self.plain, self.rows)
        printed = self.done(EXAMPLE, self.model, self.plain, "5", "0", "5").splitlines()
        self.assertEqual([[float(x) for x in line.split(":")[1].split()] for line in printed], [values[15:18], values[0:3], values[15:18]])
        times = self.done(EXAMPLE, self.model, self.plain, "--measure", "50").splitlines()
        self.assertRegex(times[0], r"^23 vertices, rows computed, opened in [0-9.]+ s$")
        for line, name in zip(times[1:], ("first", "again"), strict=True):
            self.assertRegex(line, "^" + name + r": median [0-9.]+ ms, mean [0-9.]+ ms, 99 % within [0-9.]+ ms, all within [0-9.]+ ms$")
        for arguments, code, said in ((["23"], 1, "23"), (["x"], 1, "whole number"), (["--measure", "0"], 1, "--measure"), ([], 2, "usage")):
            done = run(EXAMPLE, self.model, self.plain, *arguments)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1))
            self.assertIn(said, done.stderr)

    def test_its_symbols_are_those_of_the_header(self):
        with open(HEADER, encoding="utf-8") as f:
            declared = set(re.findall(r"\b(partita_serve_\w+)\(", f.read().split("extern \"C\"")[1]))
        self.assertLessEqual(len(declared), 12)
        listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
        self.assertEqual({line.split()[-1] for line in listed.splitlines()}, declared)

    def test_it_is_installed_with_a_package(self):
        prefix, project, build = (os.path.join(self.folder, f) for f in ("prefix", "project", "build"))
        self.done(CMAKE, "--install", BUILD, "--component", "serve", "--prefix", prefix)
        os.mkdir(project)
        with open(os.path.join(project, "CMakeLists.txt"), "w", encoding="utf-8") as f:
            f.write("cmake_minimum_required(VERSION 3.25)\nproject(asks C)\nfind_package(partita_serve REQUIRED)\nadd_executable(asks main.c)\n"
                    "target_link_libraries(asks PRIVATE partita::serve)\n")
        with open(os.path.join(project, "main.c"), "w", encoding="utf-8") as f:
            f.write("#include <partita_serve.h>\n#include <stdio.h>\nint main(void) { return puts(partita_serve_version()) < 0; }\n")
        self.done(CMAKE, "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}")
        self.done(CMAKE, "--build", build)
        self.assertRegex(self.done(os.path.join(build, "asks")), r"^\d+\.\d+\.\d+\n$")
        package = next(os.path.join(at, "partita_serve.pc") for at, _, files in os.walk(prefix) if "partita_serve.pc" in files)
        with open(package, encoding="utf-8") as f:
            paths = dict(re.findall(r"^(\w+)=(.*)$", f.read().replace("${pcfiledir}", os.path.dirname(package)), re.MULTILINE))
        self.assertTrue(os.path.exists(os.path.join(paths["includedir"], "partita_serve.h")))
        self.assertTrue(os.path.exists(os.path.join(paths["libdir"], "libpartita_serve.so")))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
