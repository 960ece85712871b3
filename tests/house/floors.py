"""Checks the floors of the house: who may include whom, and what may not occur where.

usage: floors.py INCLUDE_DIR

A header includes its own folder and strictly lower floors. Prints every violation as FILE:LINE: SENTENCE and ends
with 1 if there is one.
"""

import pathlib
import re
import sys

FLOORS = {
    "base": 0,
    "partition": 1,
    "memory": 1,
    "comm": 2,
    "local": 2,
    "matrix": 3,
    "io": 3,
    "transfer": 4,
    "algebra": 5,
    "nn": 6,
    "train": 7,
}
ROOF = "partita.hpp"
HIGHEST_VENDOR_FLOOR = 2
LONG, TOO_LONG = 250, 400

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
VENDOR = re.compile(r"^(mpi\.h|nccl|cuda|cublas|cusparse|cub/|thrust/)")
PLACE = re.compile(r"\b(host|cuda_device)\b")
PLACE_HEADER = re.compile(r"^partita/memory/(?!place\.hpp$)")
FORBIDDEN = [
    (re.compile(r"\bstd\s*::\s*(cout|cerr|clog)\b"), "the library prints nothing"),
    (re.compile(r"\bv?f?printf\s*\("), "the library prints nothing"),
    (re.compile(r"\b(f?puts|f?putc|putchar|perror)\s*\("), "the library prints nothing"),
    (re.compile(r"\b(exit|_Exit|quick_exit|abort)\s*\("), "the library ends no program, it throws"),
    (re.compile(r"\bassert\s*\("), "the library throws instead of asserting"),
    (re.compile(r"\busing\s+namespace\b"), "a header opens no namespace for its users"),
]
# What ends an MPI job says why and takes the other ranks along.
MAY_PRINT = re.compile(r"^comm/mpi\w*\.hpp$")

TOKEN = re.compile(
    r"""(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])+')""",
    re.VERBOSE | re.DOTALL,
)


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    return TOKEN.sub(lambda m: blank(m[0]) if m["comment"] else m[0], text)


def without_strings(code):
    """Code without comments, includes, and the contents of strings."""
    code = INCLUDE.sub(lambda m: blank(m[0]), code)
    return TOKEN.sub(lambda m: blank(m[0]), code)


def check_include(folder, quote, name):
    """Why `folder` must not include `name`, or None."""
    floor = FLOORS[folder]
    if not name.startswith("partita/"):
        if quote == '"':
            return f'"{name}" must be spelled from partita/ on'
        if floor == 0 and "." in name:
            return f"base includes only the standard library, not <{name}>"
        if floor > HIGHEST_VENDOR_FLOOR and VENDOR.match(name):
            return f"<{name}> is a vendor's header, and {folder} is above floor {HIGHEST_VENDOR_FLOOR}"
        return None
    if quote == "<":
        return f"<{name}> must be written in quotes"
    other = name.split("/")[1]
    if other == ROOF:
        return f"{folder} (floor {floor}) includes the roof"
    if other not in FLOORS:
        return f"{name} is on no floor"
    if other != folder and FLOORS[other] >= floor:
        return f"{folder} (floor {floor}) includes {other} (floor {FLOORS[other]})"
    if floor > HIGHEST_VENDOR_FLOOR and PLACE_HEADER.match(name):
        return f"{name} is of one place, and {folder} is above floor {HIGHEST_VENDOR_FLOOR}"
    return None


def check_roof(text):
    for number, line in enumerate(without_comments(text).splitlines(), 1):
        if line.strip() and line.strip() != "#pragma once" and not INCLUDE.match(line):
            yield number, "the roof holds nothing but includes"


def check_header(path, text):
    """Violations of one header, `path` relative to partita/, as (line, sentence)."""
    code = without_comments(text)
    if not re.search(r"^#pragma once$", code, re.MULTILINE):
        yield 1, "there is no #pragma once"
    lines = text.count("\n")
    if lines > TOO_LONG:
        yield lines, f"{lines} lines are too many, at most {TOO_LONG}"
    if str(path) == ROOF:
        yield from check_roof(text)
        return
    folder = path.parts[0]
    if len(path.parts) < 2 or folder not in FLOORS:
        yield 1, "the header is on no floor"
        return

    def line_of(position):
        return code.count("\n", 0, position) + 1

    for include in INCLUDE.finditer(code):
        sentence = check_include(folder, include[1], include[2])
        if sentence:
            yield line_of(include.start(2)), sentence
    code = without_strings(code)
    if FLOORS[folder] > HIGHEST_VENDOR_FLOOR:
        for place in PLACE.finditer(code):
            yield line_of(place.start()), f"{folder} is above floor {HIGHEST_VENDOR_FLOOR} and names the place {place[0]}"
    for word, sentence in FORBIDDEN:
        if "prints" in sentence and MAY_PRINT.match(path.as_posix()):
            continue
        for found in word.finditer(code):
            yield line_of(found.start()), f"{sentence}: {found[0].rstrip(' (')}"


def violations(include_dir):
    root = pathlib.Path(include_dir) / "partita"
    for file in sorted(root.rglob("*")):
        if file.is_dir():
            continue
        path = file.relative_to(root)
        if file.suffix not in (".hpp", ".cuh"):
            yield f"partita/{path.as_posix()}:1: only headers belong here"
            continue
        for line, sentence in check_header(path, file.read_text()):
            yield f"partita/{path.as_posix()}:{line}: {sentence}"


def main(include_dir):
    root = pathlib.Path(include_dir) / "partita"
    headers = sorted(root.rglob("*.hpp"))
    if not headers:
        sys.exit(f"{root}: there are no headers")
    for file in headers:
        lines = file.read_text().count("\n")
        if lines > LONG:
            print(f"partita/{file.relative_to(root).as_posix()}: {lines} lines, should be under about {LONG}")
    found = list(violations(include_dir))
    print("\n".join(found + [f"{len(headers)} headers, {len(found)} violations"]))
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
