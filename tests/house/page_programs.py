# SPDX-License-Identifier: Apache-2.0
"""The C++ programs of a page compile without a warning and run: page_programs.py PAGE COMPILER [FLAG...]

They are compiled as one unit, each in a namespace of its own, since together takes a third of the time. A program is a
block of C++ that ends with its main, which takes no argument."""
import pathlib
import re
import subprocess
import sys
import tempfile


def unit_of(page):
    """One program that runs those of the page, and how many they are."""
    includes, bodies = [], []
    for block in re.finditer(r"^```cpp\n(.*?)^```", page, re.S | re.M):
        line = page[: block.start()].count("\n") + 2
        includes += re.findall(r"^#include .*\n", block[1], re.M)
        body = re.sub(r"^#include .*$", "", block[1], flags=re.M).rstrip().removesuffix("}")
        bodies.append(f"namespace program_{len(bodies)} {{\n#line {line}\n{body}return 0;\n}}\n}}\n")
    calls = "".join(f"if (program_{i}::main() != 0) return 1;\n" for i in range(len(bodies)))
    return "".join(dict.fromkeys(includes)) + "".join(bodies) + f"int main() {{\n{calls}}}\n", len(bodies)


def complaints(page, compiler):
    unit, count = unit_of(page)
    if count == 0:
        return ["the page has no program"]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "page.cpp")
        source.write_text(unit)
        built = subprocess.run([*compiler, source, "-o", source.with_suffix("")], capture_output=True, text=True)
        if built.returncode:
            return [built.stderr]
        ran = subprocess.run([source.with_suffix("")], capture_output=True, text=True)
    print(ran.stdout + f"{count} programs")
    return [f"the programs returned {ran.returncode}: {ran.stderr}"] if ran.returncode else []


def main():
    found = complaints(pathlib.Path(sys.argv[1]).read_text(), sys.argv[2:])
    print("\n".join(found))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
