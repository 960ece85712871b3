#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants headers and checks what standard_headers.py says of them."""
import pathlib
import sys
import tempfile

from standard_headers import check

INNER = ("partita/inner.hpp", "#include <vector>\ninline std::vector<int> v;\n")
CASES = [
    ([INNER], []),
    ([INNER, ("partita/outer.hpp", '#include "partita/inner.hpp"\ninline std::vector<std::size_t> w;  // std::map\n')], []),
    ([INNER, ("partita/outer.hpp", '#include "partita/inner.hpp"\ninline std::map<int, int> m;\n')], ["partita/outer.hpp: std::map without <map>"]),
    ([("partita/alone.hpp", "inline std::size_t n;\n")], ["partita/alone.hpp: std::size_t without <cstddef>"]),
    ([("partita/strange.hpp", "#include <vector>\ninline std::strange x;\n")], ["partita/strange.hpp: no line of standard_headers.py says where std::strange is from"]),
]

failures = 0
for files, expected in CASES:
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files:
            path = pathlib.Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        found = check(pathlib.Path(folder))
    if found != expected:
        failures += 1
        print(f"expected {expected}, found {found}")
print(f"{len(CASES)} cases, {failures} failed")
sys.exit(1 if failures else 0)
