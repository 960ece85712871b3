#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a user's program costs to compile: processor seconds and peak memory of each compiler that is here.

usage: compile_cost.py [SOURCE...] [--flags "-O2 ..."] [--repeat N] [--goal SECONDS MEGABYTES]

Without a source: examples/05_gcn.cpp, a network in the words of the library. The least of N runs counts. With a goal, it ends
with 1 where a compiler needs more."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cost(command, errors):
    """Processor seconds, and the megabytes of its largest process; None where it fails, its words in the file `errors`."""
    with open(errors, "w") as said:
        process = subprocess.Popen(command, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)  # a compiler's driver waits for its children, whom this counts
    return None if status != 0 else (usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=pathlib.Path, default=[ROOT / "examples/05_gcn.cpp"])
    parser.add_argument("--flags", default="-O2")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--goal", nargs=2, type=float, metavar=("SECONDS", "MEGABYTES"))
    asked = parser.parse_args()
    too_much = False
    print(f"{'compiler':10} {'program':24} {'seconds':>8} {'MB':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for compiler in filter(shutil.which, ("g++", "clang++")):
            for source in asked.sources:
                command = [compiler, "-std=c++20", *asked.flags.split(), f"-I{ROOT / 'include'}", "-c", str(source), "-o", f"{folder}/program.o"]
                runs = [cost(command, f"{folder}/errors") for _ in range(asked.repeat)]
                if None in runs:
                    said = pathlib.Path(folder, "errors").read_text().splitlines()
                    print(f"{compiler:10} {source.name:24} does not compile: {next((l for l in said if 'error:' in l), '')}")
                    continue
                seconds, megabytes = min(r[0] for r in runs), max(r[1] for r in runs)
                print(f"{compiler:10} {source.name:24} {seconds:8.1f} {megabytes:6.0f}")
                too_much = too_much or (asked.goal is not None and (seconds > asked.goal[0] or megabytes > asked.goal[1]))
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
