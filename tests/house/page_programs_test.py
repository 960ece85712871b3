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
    (GOOD + program('std::printf("2\\n");'), "page:14: the program prints\n2\ninstead of\n1"),
    (GOOD + "```cpp\nint main() {\n}\n```\n", "page:14: no block says"),
    (GOOD + "```cpp\nconst mesh<host> m(world, {1, 1, world.size()});\n```\n", None),
    (GOOD + "```cpp\nconst mesh<host> m(worlds, {1, 1, world.size()});\n```\n", "worlds"),
    ("no program", "page has no block"),
]


def main():
    failures = []
    for blocks, expected in CASES:
        said = complaints([("page", "# Page\n" + blocks)], sys.argv[1:])
        if bool(said) != bool(expected) or (expected and expected not in said[0]):
            failures.append(f"{blocks} gave {said}")
    print("\n".join(failures) or f"{len(CASES)} pages were judged rightly")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
