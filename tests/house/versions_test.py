#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants another version, and what cannot be read, in each file that versions.py reads: versions_test.py PROJECT"""
import pathlib
import re
import shutil
import sys
import tempfile

from versions import PLACES, violations

project = pathlib.Path(sys.argv[1])
BROKEN = {"packaging/spack/package.py": "class :\n"}
try:
    import yaml  # noqa: F401
    BROKEN |= {"packaging/conda/meta.yaml": "a: [\n", "CITATION.cff": "a: [\n"}
except ImportError:
    pass

failures = 0
with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    for name in ["CMakeLists.txt", *PLACES]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / name, root / name)

    def judge(name, text, expected):
        global failures
        (root / name).write_text(text)
        found = list(violations(root))
        if [line.startswith(name) for line in found] != expected:
            failures += 1
            print(f"{name} planted, said: {found}")
        shutil.copy(project / name, root / name)

    for name, place in PLACES.items():
        text = (project / name).read_text()
        at = re.search(place, text, re.S).start(1)
        judge(name, text, [])
        judge(name, text[:at] + "7" + text[at + 1 :], [True])
        judge(name, "", [True])
    for name, text in BROKEN.items():
        judge(name, (project / name).read_text() + text, [True])
print(f"{3 * len(PLACES) + len(BROKEN)} cases, {failures} failed")
sys.exit(1 if failures else 0)
