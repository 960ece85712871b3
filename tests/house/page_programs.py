# SPDX-License-Identifier: Apache-2.0
"""Every C++ program of a page compiles without a warning, runs, and prints what the block behind it says:
page_programs.py PAGE COMPILER [FLAG...]

The programs are compiled as one unit, each in a namespace of its own, since together takes a third of the time. The main
of a program takes no argument."""
import pathlib
import re
import subprocess
import sys
import tempfile

END = "end of a program\n"


def programs_of(page):
    """Of each program: its line, its text and what it prints."""
    found = re.finditer(r"^```cpp\n(.*?)^```\n\n```text\n(.*?)^```", page, re.S | re.M)
    return [(page[: p.start()].count("\n") + 2, p[1], p[2]) for p in found]


def unit_of(programs):
    """One program that runs all of them."""
    includes, bodies, calls = ["#include <cstdio>\n"], [], []
    for number, (line, text, _) in enumerate(programs):
        includes += re.findall(r"^#include .*\n", text, re.M)
        body = re.sub(r"^#include .*$", "", text, flags=re.M)
        body = re.sub(r"^(int main\(\) {.*?)^}", r"\1return 0; }", body, flags=re.S | re.M)  # as main does by itself
        bodies.append(f"namespace program_{number} {{\n#line {line}\n{body}}}\n")
        calls.append(f'if (program_{number}::main() != 0) return 1;\nstd::fputs("{END[:-1]}\\n", stdout);\n')
    return "".join(dict.fromkeys(includes)) + "".join(bodies) + f"int main() {{\n{''.join(calls)}}}\n"


def complaints(page, compiler):
    programs = programs_of(page)
    if not programs or len(programs) != page.count("```cpp"):
        return [f"{page.count('```cpp')} programs, of which {len(programs)} are followed by what they print"]
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "page.cpp")
        source.write_text(unit_of(programs))
        built = subprocess.run([*compiler, source, "-o", source.with_suffix("")], capture_output=True, text=True)
        if built.returncode:
            return [built.stderr]
        ran = subprocess.run([source.with_suffix("")], capture_output=True, text=True)
    if ran.returncode:
        return [f"the programs returned {ran.returncode}: {ran.stdout}{ran.stderr}"]
    return [f"the program in line {line} prints\n{said}instead of\n{expected}"
            for (line, _, expected), said in zip(programs, ran.stdout.split(END)) if said != expected]


def main():
    page = pathlib.Path(sys.argv[1]).read_text()
    found = complaints(page, sys.argv[2:])
    print("\n".join(found) or f"{len(programs_of(page))} programs")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
