#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compile cost of user programs: CPU seconds and peak memory, for each available compiler.

usage: compile_cost.py [SOURCE...] [--flags "-O2 ..."] [--compilers NAME...] [--repeat N] [--goal SECONDS MEGABYTES]
       compile_cost.py --lines

By default, programs of examples/ and examples/downstream/. A program that uses partita::compiled is also compiled without its
header, so that everything is instantiated in the program. Reports the minimum of N runs. With a goal, the exit code is 1 if a
compiler exceeds it.

--lines: the lines of this library that each header of docs/verbs*.md includes, its own among them; compiles nothing."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = ["examples/05_gcn.cpp", "examples/07_your_own_layer.cpp", "examples/10_trainer.cpp", *(f"examples/downstream/{name}.cpp" for name in (
    "pagerank", "conjugate_gradient", "label_propagation", "save_and_predict"))]
INCLUDED = re.compile(r'^#include "(partita/[^"]+)"', re.MULTILINE)
OF_COMPILED = re.compile(r"^#include [<\"]partita/compiled/.*\n", re.MULTILINE)


def cost(command, errors):
    """CPU seconds, and the peak megabytes of the largest process; None on failure, with stderr in the file `errors`."""
    with open(errors, "w") as said:
        process = subprocess.Popen(command, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)  # includes the children of the compiler driver
    return None if status != 0 else (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def variants(source):
    """The program as is and, if it uses partita::compiled, without it, each with its name in the table."""
    text = source.read_text()
    if OF_COMPILED.search(text):
        yield "with", text
    yield "without", OF_COMPILED.sub("", text)


def included(header, found):
    """Adds the header and all that it includes of this library, with their numbers of lines, to `found`."""
    text = (ROOT / "include" / header).read_text()
    found[header] = text.count("\n")
    for other in INCLUDED.findall(text):
        if other not in found:
            included(other, found)
    return found


def print_lines():
    """A table with a row for each folder: its headers by what they include, the largest first."""
    named = set(re.findall(r"\b(?:partita/)?(\w+/\w+(?:/\w+)?\.hpp)", "".join(page.read_text() for page in (ROOT / "docs").glob("verbs*.md"))))
    headers = ["partita.hpp", *(name for name in named if (ROOT / "include/partita" / name).exists())]
    rows = {}
    for header in headers:
        folder, _, name = header.rpartition("/") if header.count("/") < 2 else header.partition("/")
        rows.setdefault(folder, []).append((sum(included(f"partita/{header}", {}).values()), name.removesuffix(".hpp")))
    print("| folder | lines |\n|---|---|")
    for folder in sorted(rows):
        print(f"| {folder} | {', '.join(f'{name} {lines:,}' for lines, name in sorted(rows[folder], reverse=True))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=pathlib.Path, default=[ROOT / source for source in SOURCES])
    parser.add_argument("--flags", default="-O2")
    parser.add_argument("--compilers", nargs="+", default=["g++", "clang++-16"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--goal", nargs=2, type=float, metavar=("SECONDS", "MEGABYTES"))
    parser.add_argument("--lines", action="store_true")
    asked = parser.parse_args()
    if asked.lines:
        return print_lines()
    too_much = False
    print("| compiler | program | partita::compiled | CPU seconds | MB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder, "program.cpp")
        for compiler in filter(shutil.which, asked.compilers):
            for source in asked.sources:
                for compiled, text in variants(source):
                    program.write_text(text)
                    command = [compiler, "-std=c++20", *asked.flags.split(), f"-I{ROOT / 'include'}", "-c", str(program), "-o", f"{folder}/program.o"]
                    runs = [cost(command, f"{folder}/errors") for _ in range(asked.repeat)]
                    if None in runs:
                        said = pathlib.Path(folder, "errors").read_text().splitlines()
                        print(f"{source.name} does not compile: {next((l for l in said if 'error:' in l), '')}", file=sys.stderr)
                        return 1
                    seconds, megabytes = min(r[0] for r in runs), max(r[1] for r in runs)
                    print(f"| {compiler} | {source.name} | {compiled} | {seconds:.1f} | {megabytes:.0f} |", flush=True)
                    too_much = too_much or (asked.goal is not None and (seconds > asked.goal[0] or megabytes > asked.goal[1]))
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
