#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Few translation units that show every header to compile alone: header_chains.py INCLUDE HEADER...

Prints one unit a line, the headers that it includes in this order. Each header of a line includes, directly or not, all that
was included before it; so what it forgets is not there, as if it stood alone."""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def reach(header, texts, reached):
    """All headers that `header` includes, itself among them."""
    if header not in reached:
        reached[header] = {header}
        for name in INCLUDE.findall(texts[header]):
            if name in texts:
                reached[header] |= reach(name, texts, reached)
    return reached[header]


def chains(texts, headers):
    """Lines of headers, the longest way up first. `texts` has what may be included, too."""
    reached = {}
    for header in headers:
        reach(header, texts, reached)
    left = sorted(headers, key=lambda h: (len(reached[h]), h))
    while left:
        line = [left.pop()]
        for below in reversed(left):
            if below in reached[line[-1]]:
                line.append(below)
        left = [h for h in left if h not in line]
        yield line[::-1]


def main(include, headers):
    root = pathlib.Path(include)
    texts = {p.relative_to(root).as_posix(): p.read_text() for p in root.rglob("*.hpp")}
    print("\n".join(" ".join(line) for line in chains(texts, headers)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
