# SPDX-License-Identifier: Apache-2.0
"""Shows that page_programs.py can fail: programs that do not compile, that warn, that fail, and none at all."""
import sys

from page_programs import complaints

GOOD = "#include <cstdio>\nint value() { return 1; }\nint main() {\n  std::printf(\"%d\\n\", value());\n}\n"
# The programs of a page, and what must be said of them.
CASES = [
    ([GOOD, GOOD], None),
    ([GOOD, "int main() {\n  undeclared();\n}\n"], "undeclared"),
    ([GOOD, "int main() {\n  int unused;\n}\n"], "unused"),
    ([GOOD, "int main() {\n  if (true) return 2;\n}\n"], "returned 1"),
    ([], "no program"),
]


def main():
    failures = []
    for programs, expected in CASES:
        page = "# Page\n" + "".join(f"```cpp\n{text}```\n```python\nno()\n```\n" for text in programs)
        said = complaints(page, sys.argv[1:])
        if bool(said) != bool(expected) or (expected and expected not in said[0]):
            failures.append(f"{programs} gave {said}")
    print("\n".join(failures) or f"{len(CASES)} pages were judged rightly")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
