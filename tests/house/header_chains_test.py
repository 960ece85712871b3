#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every header is in one chain of header_chains.py, after such headers alone as it includes."""
import sys

from header_chains import chains, reach


def of(*names):
    return "".join(f'#include "{n}"\n' for n in names)


CASES = [
    {"a": "", "b": of("a"), "c": of("b")},
    {"a": "", "b": "", "c": of("a", "b")},
    {"a": "", "b": of("a"), "c": of("a"), "d": of("b", "c"), "e": of("d"), "f": of("c")},
    {"a": of("<vector>")},
    {},
]

failures = 0
for texts in CASES:
    lines = list(chains(texts, list(texts)))
    reached = {}
    sound = all(set(line[:i]) <= reach(header, texts, reached) for line in lines for i, header in enumerate(line))
    if sorted(sum(lines, [])) != sorted(texts) or not sound:
        failures += 1
        print(f"{texts} gives {lines}")
if len(list(chains(CASES[0], list(CASES[0])))) != 1:
    failures += 1
    print("a chain is not found")
print(f"{len(CASES)} cases, {failures} failed")
sys.exit(1 if failures else 0)
