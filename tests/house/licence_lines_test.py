#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants files and checks what licence_lines.py says of them."""
import pathlib
import sys
import tempfile

from licence_lines import LINE, judge

# A file, its text, and the judgement; None where there is none.
CASES = [
    ("include/a.hpp", f"// {LINE}\n#pragma once\n", True),
    ("include/a.hpp", "#pragma once\n", False),
    ("include/a.hpp", f"#pragma once\n// {LINE}\n", False),
    ("include/a.hpp", f"// {LINE} OR MIT\n", False),
    ("tests/a/b.cpp", f"# {LINE}\n", False),
    ("tests/a/b.cu", "", False),
    ("cmake/a.cmake", f"# {LINE}\n", True),
    ("tests/CMakeLists.txt", "project(a)\n", False),
    ("tests/leaks.txt", "leak\n", None),
    ("check", f"#!/usr/bin/env bash\n# {LINE}\n", True),
    ("check", f"# {LINE}\n#!/usr/bin/env bash\n", None),
    (".ci/run", "#!/usr/bin/env bash\n# Runs.\n", False),
    ("scripts/a.py", f"#!/usr/bin/env python3\n# {LINE}\n", True),
    ("build/a.cpp", "", None),
    ("README.md", "# partita\n", None),
]

failures = 0
for name, text, expected in CASES:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        found = [good for _, good in judge(pathlib.Path(folder))]
        if found != ([] if expected is None else [expected]):
            failures += 1
            print(f"{name} of {text!r} is judged {found}")
print(f"{len(CASES)} cases, {failures} failed")
sys.exit(1 if failures else 0)
