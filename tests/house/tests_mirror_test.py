#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants headers and tests and checks what tests_mirror.py says of them."""
import pathlib
import sys
import tempfile

from tests_mirror import violations

HEADER = {"include/partita/base/index.hpp": "#pragma once\n"}
TEST = {"tests/base/index.cpp": '#include "partita/base/index.hpp"\n', "tests/CMakeLists.txt": "base/index\n"}
DETAIL = {"include/partita/base/detail.hpp": "#pragma once\n"}
LISTED = {"base/index.cpp": "base/detail"}

# Files, the table of what is tested together, and what must be said.
CASES = [
    ({**HEADER, **TEST}, {}, []),
    ({**HEADER, "include/partita/partita.hpp": "", **TEST}, {}, []),
    ({**HEADER, "tests/CMakeLists.txt": ""}, {}, ["partita/base/index.hpp has no test"]),
    ({**HEADER, **TEST, "tests/base/index.cpp": ""}, {}, ["partita/base/index.hpp is not included by base/index.cpp"]),
    ({**HEADER, **TEST, "tests/base/index.cpp": '#include "support/all.hpp"\n', "tests/support/all.hpp": '#include "partita/base/index.hpp"\n'}, {}, []),
    ({**HEADER, **TEST, "tests/CMakeLists.txt": "base/index_of\n"}, {}, ["base/index.cpp is not run"]),
    ({**HEADER, **DETAIL, **TEST}, {}, ["partita/base/detail.hpp has no test"]),
    ({**HEADER, **DETAIL, **TEST}, LISTED, ["partita/base/detail.hpp is not included by base/index.cpp"]),
    ({**HEADER, **DETAIL, **TEST, "include/partita/base/index.hpp": '#include "partita/base/detail.hpp"\n'}, LISTED, []),
    ({**HEADER, **DETAIL, **TEST, "include/partita/base/index.hpp": '#include "partita/base/detail.hpp"\n'}, {"base/gone.cpp": "base/detail"},
     ["TOGETHER has base/gone.cpp, which there is not", "partita/base/detail.hpp has no test"]),
    ({**HEADER, **TEST}, LISTED, ["TOGETHER has partita/base/detail.hpp, which there is not"]),
    ({**HEADER, **TEST}, {"base/index.cpp": "base/index"}, ["TOGETHER has partita/base/index.hpp, which has a test of its name"]),
    ({"include/partita/local/host/spmm.hpp": "", "tests/local/host.cpp": '#include "partita/local/host/spmm.hpp"\n', "tests/CMakeLists.txt": "local/host\n"}, {}, []),
    ({"include/partita/local/host/spmm.hpp": "", "tests/local/host.cpp": "", "tests/CMakeLists.txt": "local/host\n"}, {},
     ["partita/local/host/spmm.hpp is not included by local/host.cpp"]),
]

failures = 0
for files, together, expected in CASES:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        found = list(violations(root / "include", root / "tests", together))
    if found != expected:
        failures += 1
        print(f"expected {expected}, found {found}")
print(f"{len(CASES)} cases, {failures} failed")
sys.exit(1 if failures else 0)
