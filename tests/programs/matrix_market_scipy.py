#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Corner cases of Matrix Market files: what partita reads equals what scipy.io.mmread does, or is refused with file,
line and reason.

usage: matrix_market_scipy.py PROGRAM"""
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile

import numpy
import scipy.io

BANNER = "%%MatrixMarket matrix "
NUMBERS = ["1", "-2", "+3", "0.1", ".5", "4.", "-0.0", "1e3", "1E-3", "+1.5e+2", "nan", "inf", "-Infinity", "1e-400", "5e-324", "0.30000000000000004",
           "123456789012345678901234567890", "1.7976931348623157e308", "2.2250738585072011e-308", "9007199254740993", "1e22", "1e23"]
# Files that are refused, though SciPy reads some of them.
REFUSED = [
    BANNER + "coordinate real general\n1 1 1\n1 1 1e400\n", BANNER + "coordinate real general\n1 1 1\n1 1 1_0\n",
    BANNER + "coordinate real general\n1 1 1\n1 1 1 1\n", BANNER + "coordinate real general\n1 1 2\n1 1 1\n",
    BANNER + "coordinate real general\n1 1 1\n1 1 1\n1 1 1\n", BANNER + "coordinate real general\n1 1 1\n2 1 1\n",
    BANNER + "coordinate real general\n1 1 1\n0 1 1\n", BANNER + "coordinate complex general\n1 1 1\n1 1 1 0\n",
    BANNER + "coordinate real hermitian\n1 1 1\n1 1 1\n", BANNER + "coordinate real skew-symmetric\n1 1 1\n1 1 1\n",
    BANNER + "coordinate real symmetric\n1 2 1\n1 1 1\n", BANNER + "array pattern general\n1 1\n", BANNER + "array real general\n2 2\n1\n2\n3\n",
    BANNER + "coordinate integer general\n1 1 1\n1 1 1.0\n",
    BANNER + "coordinate complex hermitian\n1 1 1\n1 1 1 0\n", BANNER + "array complex general\n1 1\n1 0\n", BANNER + "array real hermitian\n1 1\n1\n",
    BANNER + "coordinate real general\n1 1 9223372036854775808\n1 1 1\n", BANNER + "coordinate real general\n-1 1 0\n", BANNER + "coordinate real general\n1 1\n",
    BANNER + "coordinate real general\n1 1 1 1\n1 1 1\n", BANNER + "coordinate real general\n1 1 4000000000000\n1 1 1\n", BANNER + "vector real general\n1 1 0\n",
    BANNER + "coordinate real general\n1 1 1\n1 9223372036854775808 1\n", BANNER + "array real general\n1 1\n1\n2\n", BANNER + "array real skew-symmetric\n2 3\n1\n",
    "MatrixMarket matrix coordinate real general\n1 1 0\n", "", "\n", BANNER, BANNER + "coordinate real general\n",
]


def accepted():
    for number in NUMBERS:
        yield BANNER + f"coordinate real general\n1 1 1\n1 1 {number}\n"
        yield BANNER + f"array real general\n1 1\n{number}\n"
    for end in ("\n", "\r\n"):
        for rows in ("0 0 0", "3 0 0", "0 4 0", "2 3 0"):
            yield end.join([BANNER + "coordinate real general", "%", "% of nothing", rows, ""])
        yield end.join([BANNER + "coordinate integer general", "%no blank", "%%two", "2 2 2", "1 1 -9223372036854775808", "2 2 9223372036854775807"])
    choose = random.Random(1)
    for field, symmetry, end in itertools.product(("real", "integer", "pattern"), ("general", "symmetric", "skew-symmetric"), ("\n", "\r\n")):
        for n, extra in ((1, 0), (4, 0), (4, 3), (30, 9)):
            m = n + extra if symmetry == "general" else n
            places = [(i, j) for i in range(n) for j in range(m) if symmetry == "general" or i > j or (i == j and symmetry == "symmetric")]
            # Reals are not given twice at one place: in which order those are added is not said.
            places = choose.sample(places, min(2 * n, len(places))) if field == "real" or not places else choose.choices(places, k=2 * n)

            def value():
                return "" if field == "pattern" else f" {choose.randrange(-99, 99)}" if field == "integer" else f" {choose.uniform(-1, 1)!r}"

            lines = [BANNER.upper().replace("%%MATRIXMARKET", "%%MatrixMarket") + f"Coordinate {field.upper()} {symmetry}", "% comment", f"{n} {m}\t{len(places)}"]
            for i, j in places:
                lines += [f"{choose.choice(['', ' '])}{i + 1}{choose.choice([' ', '  ', chr(9)])}{j + 1}{value()}{choose.choice(['', ' '])}"]
                lines += choose.choice([[], [], [""], ["% between"]])
            yield end.join(lines) + choose.choice(["", end])
            if field == "pattern" or (symmetry == "skew-symmetric" and n == 1):  # of which SciPy 1.10 reads no array
                continue
            count = {"general": n * m, "symmetric": n * (n + 1) // 2, "skew-symmetric": n * (n - 1) // 2}[symmetry]
            lines = [BANNER + f"array {field} {symmetry}", f"{n} {m}"] + [value() for _ in range(count)]
            yield end.join(lines) + end


def dense(text):
    """The matrix that the program printed."""
    lines = text.split("\n")
    matrix = numpy.zeros([int(n) for n in lines[0].split()])
    for line in lines[1:]:
        i, j, value = line.split()
        matrix[int(i), int(j)] += float.fromhex(value)
    return matrix


def run(program, folder, texts):
    """What the program says of each file, on one thread and on three."""
    paths = [os.path.join(folder, f"{k}.mtx") for k in range(len(texts))]
    for path, text in zip(paths, texts):
        with open(path, "w", newline="") as f:
            f.write(text)
    said = subprocess.run([program, *paths], capture_output=True, text=True, timeout=60, check=True).stdout
    said = [part.strip() for part in said.split("file\n")[1:]]
    assert len(said) == 2 * len(paths) and said[::2] == said[1::2]
    return list(zip(paths, said[::2]))


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        texts = list(accepted())
        for (path, said), text in zip(run(program, folder, texts), texts):
            assert not said.startswith("refused"), (said, text)
            expected = scipy.io.mmread(path)
            expected = expected if isinstance(expected, numpy.ndarray) else expected.astype(float).toarray()
            found = dense(said)
            assert numpy.array_equal(found, expected, equal_nan=True), (text, found, expected)
        for (path, said), text in zip(run(program, folder, REFUSED), REFUSED):
            assert re.fullmatch(r"refused " + re.escape(path) + r":\d+: .+", said), (said, text)
    print(f"{len(texts)} files as SciPy reads them, {len(REFUSED)} refused")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
