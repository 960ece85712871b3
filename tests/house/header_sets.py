#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The file set HEADERS is of those headers that need nothing but the standard library: header_sets.py INCLUDE HEADER...

What stands in a folder cuda is for nvcc, whatever it includes. So CMAKE_VERIFY_INTERFACE_HEADER_SETS serves a project that adds
partita, whatever backends its machine has."""
import pathlib
import re
import sys

from header_chains import reach

OF_A_BACKEND = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<[^>\n]*\.", re.MULTILINE)


# What is included only where it is found is not needed.
OPTIONAL = re.compile(r"^#if __has_include\((<[^>\n]*>)\)\n#include \1\n#endif$", re.MULTILINE)


def violations(texts, core):
    texts = {name: OPTIONAL.sub("", text) for name, text in texts.items()}
    reached = {}
    for header in sorted(texts):
        needs = "/cuda/" in header or any(OF_A_BACKEND.search(texts[name]) for name in reach(header, texts, reached))
        if needs == (header in core):
            yield f"{header} {'needs a backend and is in' if needs else 'needs no backend and is not in'} the file set HEADERS"


def main(include, core):
    root = pathlib.Path(include).resolve()
    texts = {p.relative_to(root).as_posix(): p.read_text() for p in root.rglob("*.hpp")}
    found = list(violations(texts, {pathlib.Path(h).resolve().relative_to(root).as_posix() for h in core}))
    print("\n".join(found + [f"{len(texts)} headers, {len(core)} without backends, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
