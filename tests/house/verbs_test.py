# SPDX-License-Identifier: Apache-2.0
"""Shows that verbs.py can fail: names that the page does not have, or not as code, and headers that are not there."""
import pathlib
import sys
import tempfile

from verbs import complaints

# A page about a header with `spmm` and `norm`, and what must be said of it.
CASES = [
    ("| `spmm(a, x)`, `norm` | `algebra/one.hpp` |", []),
    ("| `spmm(a, x)` | `algebra/one.hpp` |", ["norm is on no page"]),
    ("`spmm`, and the norm", ["norm is on no page"]),
    ("`spmm_plan`, `norm`", ["spmm is on no page"]),
    ("`spmm`, `norm`, `algebra/two.hpp`", ["algebra/two.hpp, which is not there"]),
]


def main():
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        (include / "partita/algebra").mkdir(parents=True)
        (include / "partita/algebra/one.hpp").write_text("namespace partita { inline void spmm() {} inline void norm() {} }\n")
        for page, expected in CASES:
            said = complaints(include, page)
            if len(said) != len(expected) or not all(e in s for e, s in zip(expected, said)):
                failures.append(f"{page} gave {said}")
    print("\n".join(failures) or f"{len(CASES)} pages were judged rightly")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
