# SPDX-License-Identifier: Apache-2.0
"""Shows that page_programs.py can fail: programs that do not compile, that warn, that fail or print something else, and
none at all."""
import sys

from page_programs import complaints


def program(body, prints="1\n"):
    return f"```cpp\n#include <cstdio>\nint value() {{ return 1; }}\nint main() {{\n{body}\n}}\n```\n\n```text\n{prints}```\n"


GOOD = program('std::printf("%d\\n", value());')
# The blocks of a page, and what must be said of them.
CASES = [
    (GOOD + "```python\nno()\n```\n" + GOOD, None),
    (GOOD + program("undeclared();"), "undeclared"),
    (GOOD + program("int unused;"), "unused"),
    (GOOD + program("if (value()) return 2;"), "returned 1"),
    (GOOD + program('std::printf("2\\n");'), "in line 14 prints\n2\ninstead of\n1"),
    (GOOD + "```cpp\nint main() {\n}\n```\n", "2 programs, of which 1"),
    ("no program", "0 programs"),
]


def main():
    failures = []
    for blocks, expected in CASES:
        said = complaints("# Page\n" + blocks, sys.argv[1:])
        if bool(said) != bool(expected) or (expected and expected not in said[0]):
            failures.append(f"{blocks} gave {said}")
    print("\n".join(failures) or f"{len(CASES)} pages were judged rightly")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
