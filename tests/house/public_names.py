# SPDX-License-Identifier: Apache-2.0
"""Checks the names that the library puts into namespace partita: how many there are, and that none of them is ambiguous
beside the standard library's.

usage: public_names.py INCLUDE_DIR CXX [--list]

A name counts if a header declares it directly in `namespace partita`. Two functions of one name overload, anything else
of one name in two namespaces that a program opens is an error in that program; so a name that std has too must be a
function here and there.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

from floors import blank, TOKEN, INCLUDE

MOST = 110
# Functions of std, whose overloads live beside ours.
FUNCTIONS_OF_STD = {"copy", "fill", "generate", "norm", "transform", "to_string", "operator"}

DECLARATION = re.compile(
    r"^(?:template\s*<.*?>\s*)?(?:requires\b[^{;]*?\)\s*)?"
    r"(?:(?:extern|inline|constexpr|consteval|static|friend|\[\[\w+\]\])\s+)*"
    r"(?:(?P<type>(?:enum\s+(?:class\s+)?|class\s+|struct\s+|concept\s+|using\s+))(?P<name>\w+)"
    r"|(?P<other>[^={(\[;]*?[\s&*>])(?P<function>\w+)\s*[({=;\[])",
    re.DOTALL,
)


def statements(text):
    """The declarations directly in namespace partita, each up to its first brace or semicolon."""
    code = TOKEN.sub(lambda m: blank(m[0]), INCLUDE.sub(lambda m: blank(m[0]), text))
    code = re.sub(r"^[ \t]*#[^\n]*", "", code, flags=re.MULTILINE)
    stack, begin, i = [], 0, 0
    while i < len(code):
        c = code[i]
        if c == "{" and code[begin:i].rstrip().endswith(("=", "(", ",")):  # a value, not a body
            depth = 1
            while depth:
                i += 1
                depth += (code[i] == "{") - (code[i] == "}")
        elif c == "{":
            head = code[begin:i].strip()
            opened = re.match(r"(?:inline\s+)?namespace\s*([\w:]*)$", head)
            if not opened and stack == ["partita"]:
                yield head + " {"
            stack.append(opened[1] if opened else "{")
            begin = i + 1
        elif c == "}":
            stack.pop()
            if stack == ["partita"] or not stack:
                begin = i + 1
        elif c == ";":
            if stack == ["partita"]:
                yield code[begin:i].strip() + ";"
            if "{" not in stack:
                begin = i + 1
        i += 1


def without_template(statement):
    """A statement without its template parameter lists, whose brackets nest."""
    while statement.startswith("template"):
        depth = 0
        for i, c in enumerate(statement):
            depth += (c == "<") - (c == ">" and statement[i - 1] != "-")
            if c == ">" and depth == 0:
                statement = statement[i + 1 :].strip()
                break
        else:
            return ""
    return re.sub(r"^requires\s*\([^{;]*?\)\s*(?=\w)|^requires\s+[^({;]*?<[^{;]*?>\s*(?=\w)", "", statement)


def names_in(text):
    for statement in statements(text):
        found = DECLARATION.match(without_template(statement))
        if not found:
            continue
        name = found["name"] or found["function"]
        if name and name not in ("operator", "namespace", "detail", "template", "return"):
            yield name


def public_names(include):
    names = {}
    for header in sorted((include / "partita").rglob("*.hpp")):
        for name in names_in(header.read_text()):
            names.setdefault(name, header.relative_to(include).as_posix())
    return names


def in_std(names, compiler):
    """Those of the names that std has too."""
    lines = ["#include <bits/stdc++.h>"] + [f"using std::{n};" for n in names]
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        answer = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", file.name], capture_output=True, text=True)
    missing = {int(line) for line in re.findall(r"\.cpp:(\d+):\d+: error", answer.stderr)}
    return {n for i, n in enumerate(names) if i + 2 not in missing}


def complaints(include, compiler, most=MOST):
    names = public_names(include)
    found = [
        f"{names[name]}: {name} is ambiguous where a program opens std and partita"
        for name in sorted(in_std(sorted(names), compiler) - FUNCTIONS_OF_STD)
    ]
    if len(names) > most:
        found.append(f"{len(names)} names in namespace partita, which should have no more than {most}")
    return found


def main():
    include = pathlib.Path(sys.argv[1])
    names = public_names(include)
    if "--list" in sys.argv:
        for name in sorted(names):
            print(f"{name:32} {names[name]}")
    found = complaints(include, sys.argv[2])
    print("\n".join(found + [f"{len(names)} names in namespace partita"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
