#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants headers in the wrong file set and checks what header_sets.py says of them."""
import sys

from header_sets import violations

TEXTS = {"a": "#include <vector>\n", "b": '#include <mpi.h>\n#include "a"\n', "c": '#include "b"\n', "local/cuda/d": "",
         "e": "#if __has_include(<sys/mman.h>)\n#include <sys/mman.h>\n#endif\n"}
CASES = [
    ({"a", "e"}, []),
    ({"e"}, ["a needs no backend and is not in the file set HEADERS"]),
    ({"a", "b", "e"}, ["b needs a backend and is in the file set HEADERS"]),
    ({"a", "e", "local/cuda/d"}, ["local/cuda/d needs a backend and is in the file set HEADERS"]),
    ({"a", "c", "e"}, ["c needs a backend and is in the file set HEADERS"]),
]

failures = 0
for core, expected in CASES:
    found = list(violations(TEXTS, core))
    if found != expected:
        failures += 1
        print(f"{core} gives {found}")
print(f"{len(CASES)} cases, {failures} failed")
sys.exit(1 if failures else 0)
