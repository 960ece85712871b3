#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header, source, script and CMake file begins with its licence: licence_lines.py PROJECT

A script's first line may say what runs it."""
import pathlib
import sys

COMMENTS = {".hpp": "//", ".cpp": "//", ".cu": "//", ".py": "#", ".sh": "#", ".cmake": "#", "CMakeLists.txt": "#"}
LINE = "SPDX-License-Identifier: Apache-2.0"
# What is built or fetched, and what belongs to git.
SKIPPED = {"build", "data", ".git"}


def files(root):
    for path in sorted(root.iterdir()):
        if path.name not in SKIPPED:
            yield from [path] if path.is_file() else [p for p in sorted(path.rglob("*")) if p.is_file() and "__pycache__" not in p.parts]


def judge(root):
    """Of every file that must have the line: its path, and whether it has."""
    for path in files(root):
        comment = COMMENTS.get(path.suffix) or COMMENTS.get(path.name)
        with open(path, errors="replace") as file:
            line = file.readline()
            if line.startswith("#!"):
                comment, line = "#", file.readline()
        if comment:
            yield path.relative_to(root), line == f"{comment} {LINE}\n"


def main(root):
    judged = list(judge(root))
    missing = [path for path, good in judged if not good]
    print("\n".join([f"{path}: the first line must be its {LINE}" for path in missing] + [f"{len(judged)} files, {len(missing)} without"]))
    return 1 if missing or not judged else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
