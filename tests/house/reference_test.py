# SPDX-License-Identifier: Apache-2.0
"""Shows that reference.py can fail: reference_test.py DOXYGEN DOXYFILE PROJECT"""
import pathlib
import sys
import tempfile

from reference import complaints

# A header, a page, and what must be said of them.
CASES = [
    ("/// Twice x.\nint twice(int x);\n", "# Page\n", None),
    ("/// Twice x.\n/// @param y twice this\nint twice(int x);\n", "# Page\n", "argument 'y'"),
    ("/// Twice x.\nint twice(int x);\n", "# Page\n[other](other.md)\n", "other.md"),
    ("/// Twice x.\nint twice(int x);\n", "# Page\n[other](other.txt)\n", "other.txt, which is not there"),
]


def main():
    config = pathlib.Path(sys.argv[2]).read_text()
    failures = []
    for header, page, expected in CASES:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "a.hpp").write_text("#pragma once\n/// A file.\n\n" + header)
            pathlib.Path(folder, "page.md").write_text(page)
            said = complaints(sys.argv[1], config + f"\nINPUT = {folder}\nUSE_MDFILE_AS_MAINPAGE =\n", sys.argv[3])
        if bool(said) != bool(expected) or (expected and not any(expected in line for line in said)):
            failures.append(f"{header}{page} gave {said}")
    print("\n".join(failures) or f"{len(CASES)} cases were judged rightly")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
