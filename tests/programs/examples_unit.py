# SPDX-License-Identifier: Apache-2.0
"""Prints one program out of many: examples_unit.py FILE.cpp...

Each file is in a namespace of its own; together they compile in a third of the time. The program NAME FILE's stem and further
arguments runs the main of that file."""
import pathlib
import re
import sys

MAIN = """int main(int argc, char** argv) {{
  const std::string_view name = argc > 1 ? argv[1] : "";
  argv[1] = argv[0];
{calls}  std::fprintf(stderr, "%s: there is no example of this name\\n", name.data());
  return 2;
}}
"""


def unit_of(files):
    includes, bodies, calls = ["#include <cstdio>", "#include <string_view>"], [], []
    for file in files:
        text = file.read_text()
        includes += re.findall(r"^#include .*$", text, re.M)
        takes = "argc - 1, argv + 1" if "int main(int argc" in text else ""
        body = re.sub(r"^#include .*$", "", text, flags=re.M)
        body = re.sub(r"^(int main\(.*?\) (?:try )?{.*?)^}", r"\1return 0; }", body, flags=re.S | re.M)  # as main does by itself
        bodies.append(f'namespace example_{file.stem} {{\n#line 1 "{file}"\n{body}}}\n')
        calls.append(f'  if (name == "{file.stem}") return example_{file.stem}::main({takes});\n')
    return "\n".join([*dict.fromkeys(includes), *bodies, MAIN.format(calls="".join(calls))])


print(unit_of([pathlib.Path(name) for name in sys.argv[1:]]))
