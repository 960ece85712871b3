#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The functions between main and the loss of a first epoch, on the way of a feature matrix: of the program train, compiled
by clang with -finstrument-functions-after-inlining and linked with call_trace.cpp. They are at most MOST, and those that
docs/design.md names, in this order. Counted are the functions on the stacks of the first calls of ENDS, each once; lambdas, the standard library
and function_reference only pass on.

usage: training_walk.py TRAIN docs/design.md"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from program_case import good_data

MOST = 43
TITLE = "From the file of a feature matrix to the loss"
# Where the matrix is mapped and checked, where it becomes a rank's rows, and what the first step does with it.
ENDS = ["io::detail::mapped_file", "io::detail::dataset_reader::check_rows", "io::feature_table::fill_row", "spmm_plan::()", "on_host::gemm_bias_relu",
        "on_host::cross_entropy"]


def plain(name):
    """Without arguments, those of templates and of functions, and without what is returned; () for operator()."""
    name = name.replace("operator()", "\0").replace("(anonymous namespace)::", "")
    kept, depth = "", 0
    for c in name:
        depth -= c in ">)}"
        if depth == 0 and c not in "<(>)}{":
            kept += c
        depth += c in "<({"
    return re.sub(r" const$", "", kept.strip()).split(" ")[-1].replace("\0", "()").removeprefix("partita::")


def stacks_of(train, folder):
    """The stack at the first call of each function: names, from the outermost on."""
    for name, content in good_data().items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content)
    trace = os.path.join(folder, "trace")
    subprocess.run([train, "--data", folder, "--model", "gcn", "--epochs", "1", "--ranks", "1", "--threads", "1", "--quiet"], check=True,
                   env=os.environ | {"PARTITA_CALL_TRACE": trace})
    words = (line.split() for line in subprocess.run(["nm", train], check=True, text=True, capture_output=True).stdout.splitlines())
    symbols = {int(w[0], 16): w[2] for w in words if len(w) == 3}
    plain_text = subprocess.run(["c++filt"], input="\n".join(symbols.values()), check=True, text=True, capture_output=True).stdout
    names = dict(zip(symbols, plain_text.splitlines()))
    here = next(at for at, name in names.items() if name == "__cyg_profile_func_enter")
    with open(trace) as lines:
        return [[names[here + int(w)] for w in line.split()] for line in lines]


def short(name):
    """The function's own name, of an operator() that of its class; none for what only passes on, as lambdas ($_0) do."""
    parts = plain(name).split("::")
    if "" in parts or any(part.startswith("$_") for part in parts) or name.startswith("_Z") or parts[0] in ("std", "fmt", "CLI") or "function_reference" in parts:
        return None
    return parts[-2] if parts[-1] == "()" else parts[-1]


def walk_of(stacks):
    """The functions, in the order in which they are first called."""
    walk = []
    for end in ENDS:
        stack = next(s for s in stacks if plain(s[-1]) == end)
        walk += [function for function in stack if function not in walk]
    return [name for name in map(short, walk) if name]


def main(train, page):
    with tempfile.TemporaryDirectory() as folder:
        walk = walk_of(stacks_of(train, folder))
    with open(page) as file:
        text = file.read()
    at = text.find(TITLE)
    end = text.find("\n\n", at)
    documented = at >= 0
    for number, name in enumerate(walk, 1):
        print(number, name)
        at = text.find(f"`{name}`", at, end) if documented else at
        documented = documented and at >= 0
    if not documented:
        print("docs/design.md does not name these functions in this order")
    if len(walk) > MOST:
        print(f"these are more than {MOST}")
    return 0 if documented and len(walk) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
