# SPDX-License-Identifier: Apache-2.0
"""What a change can have broken in a build folder: changed_tests.py BUILD FILE...

Prints the programs that are made of these files, directly or through what they include, on one line, and a regular expression
of the tests that run one of them, or name one of the files, on the next. An object that was never compiled may include any header."""
import collections
import json
import pathlib
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def words(text):
    return [w.replace("$ ", " ").replace("$:", ":") for w in re.split(r"(?<!\$) +", text.strip()) if w]


def inputs_of(build):
    """Of each output of build.ninja, by which rule and of what it is made; order-only inputs are left out."""
    text = (build / "build.ninja").read_text().replace("$\n", " ")
    found = {}
    for outputs, inputs in re.findall(r"^build (.*?(?<!\$)): (.*)$", text, re.M):
        rule, *made_of = words(inputs.split(" || ")[0].replace(" | ", " "))
        for output in words(outputs.replace(" | ", " ")):
            found[output] = rule, made_of
    return found


def headers_of(build):
    """Of each object, what it included when it was last compiled."""
    found, current = {}, None
    for line in run("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line.startswith("    "):
            found[current].append(line.strip())
        elif ": #deps" in line:
            current = line.split(": #deps")[0]
            found[current] = []
    return found


def reached(build, files):
    """The programs and libraries that depend on the files, which are absolute paths."""
    inputs, headers = inputs_of(build), headers_of(build)
    users = collections.defaultdict(set)
    absolute = lambda name: str((build / name).resolve())
    for output, (_, made_of) in inputs.items():
        for name in [*made_of, *headers.get(output, [])]:
            users[absolute(name)].add(output)
    seen = set()
    todo = [user for file in files for user in users[str(file)]]
    if any(file.suffix in (".hpp", ".cuh") for file in files):
        todo += [output for output in inputs if output.endswith(".o") and output not in headers]
    while todo:
        output = todo.pop()
        if output not in seen:
            seen.add(output)
            todo += users[absolute(output)]
    return {str((build / output).resolve()): output for output in seen if "_LINKER" in inputs[output][0] and "STATIC" not in inputs[output][0]}


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    files = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
    programs = reached(build, files)
    tests = []
    for test in json.loads(run("ctest", "--test-dir", str(build), "--show-only=json-v1"))["tests"]:
        named = {str(pathlib.Path(word).resolve()) for word in test.get("command", []) if "/" in word}
        source = [w.split("*/", 1)[1] for w in test.get("command", []) if w.startswith("--source-file=*/")]
        of_library = any("/include/" in str(f) or "/tests/support/" in str(f) or "/tests/laws/" in str(f) for f in files)
        if named & set(map(str, files)) or (named & set(programs) and (
                not source or of_library or any(str(f).endswith(source[0]) for f in files))):
            tests.append(test["name"])
    print(" ".join(sorted(programs.values())))
    print("^(" + "|".join(map(re.escape, tests)) + ")$" if tests else "")


main()
