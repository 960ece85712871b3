# SPDX-License-Identifier: Apache-2.0
"""The C++ blocks of pages compile without a warning; those with a main run, and print what the block behind them says:
page_programs.py PAGE... -- COMPILER [FLAG...]
page_programs.py --unit PAGE...    prints what is compiled

Archives among the flags are linked behind the unit. All are compiled as one unit, each in a namespace of its own, since together takes a third of the time. The main of a program
takes no argument. A block without a main is the body of a function that has a communicator `world`, a size `n`, a list of
`entries` and a number of a `device`."""
import pathlib
import re
import subprocess
import sys
import tempfile

END = "end of a program\n"
SNIPPET = """[[maybe_unused]] static void snippet([[maybe_unused]] const partita::communicator& world, [[maybe_unused]] partita::global_index n,
    [[maybe_unused]] const std::vector<partita::triplet<double>>& entries, [[maybe_unused]] int device) {{
using namespace partita;
#line {line} "{page}"
{body}}}
"""


class block:
    """A block of C++: where it is, its text, and what it prints; None where no block of text follows."""

    def __init__(self, page, text, match):
        self.page, self.line = page, text[: match.start()].count("\n") + 2
        self.text, self.prints = match[1], match[2]
        self.is_program = re.search(r"^int main\(\) {", self.text, re.M) is not None

    def body(self):
        body = re.sub(r"^#include .*$", "", self.text, flags=re.M)
        if not self.is_program:
            return SNIPPET.format(line=self.line, page=self.page, body=body)
        body = re.sub(r"^(int main\(\) {.*?)^}", r"\1return 0; }", body, flags=re.S | re.M)  # as main does by itself
        return f'#line {self.line} "{self.page}"\n{body}'


def blocks_of(page, text):
    return [block(page, text, m) for m in re.finditer(r"^```cpp\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", text, re.S | re.M)]


def unit_of(blocks):
    """One program that runs all of them."""
    includes, bodies, calls = ["#include <cstdio>\n"], [], []
    if not all(b.is_program for b in blocks):
        includes += ["#include <vector>\n", "#include <partita/partita.hpp>\n"]
    for number, b in enumerate(blocks):
        includes += re.findall(r"^#include .*\n", b.text, re.M)
        bodies.append(f"namespace block_{number} {{\n{b.body()}}}\n")
        if b.is_program:
            calls.append(f'if (block_{number}::main() != 0) return 1;\nstd::fputs("{END[:-1]}\\n", stdout);\n')
    return "".join(dict.fromkeys(includes)) + "".join(bodies) + f"int main() {{\n{''.join(calls)}}}\n"


def complaints(pages, compiler):
    """What is wrong with the blocks of pages, which are pairs of a name and a text."""
    blocks = [b for page, text in pages for b in blocks_of(page, text)]
    programs = [b for b in blocks if b.is_program]
    silent = [f"{b.page}:{b.line}: no block says what this program prints" for b in programs if b.prints is None]
    silent += [f"{page} has no block of C++" for page, text in pages if not blocks_of(page, text)]
    if silent:
        return silent
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "pages.cpp")
        source.write_text(unit_of(blocks))
        archives = [flag for flag in compiler if flag.endswith(".a")]
        flags = [flag for flag in compiler if flag not in archives]
        built = subprocess.run([*flags, source, "-o", source.with_suffix(""), *archives], capture_output=True, text=True)
        if built.returncode:
            return [built.stderr]
        ran = subprocess.run([source.with_suffix("")], capture_output=True, text=True)
    if ran.returncode:
        return [f"the programs returned {ran.returncode}: {ran.stdout}{ran.stderr}"]
    return [f"{b.page}:{b.line}: the program prints\n{said}instead of\n{b.prints}"
            for b, said in zip(programs, ran.stdout.split(END)) if said != b.prints]


def main():
    if sys.argv[1] == "--unit":
        print(unit_of([b for page in sys.argv[2:] for b in blocks_of(page, pathlib.Path(page).read_text())]))
        return
    end = sys.argv.index("--")
    pages = [(page, pathlib.Path(page).read_text()) for page in sys.argv[1:end]]
    found = complaints(pages, sys.argv[end + 1 :])
    print("\n".join(found) or f"{sum(len(blocks_of(*page)) for page in pages)} blocks of {len(pages)} pages")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
