#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No kernel spills registers or keeps variables in local memory, on cards of two generations; and those that take most of a step have
no more registers, and no more machine instructions for an entry of a matrix, than they are meant to have.

usage: spills.py [--figures] NVCC SOURCE [FLAG...]        SOURCE: a .cu file, or PTX for the older ones; --figures: it has those kernels
"""
import pathlib
import re
import subprocess
import sys
import tempfile

import sass

ARCHITECTURES = ["80", "90"]
# Kernels that save registers around the slow path of a function of the compiler's, a logarithm, a division or an exponential, and those
# that inline a function of messages, which need one register to four more than a block of threads leaves them.
ALLOWED = {"row_losses<double>": 32, "gradient_before_dropout<": 32, "exponential_of_difference": 24, "message_detail::": 16}

FUNCTION = re.compile(r"Compiling entry function '(.*)' for 'sm_(\d+)'")
USE = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")


def of_one_head(code):
    columns, weights, *_ = sass.nested(code, 16)  # the loop over columns takes 8 entries, that around it 32
    return columns / 8 + (weights - columns) / 32


def of_row_product(packs):
    """Four entries, whose columns, values and rows of x are loaded, in so many packs of 128 columns of a warp."""
    return lambda code: sass.shortest_pass(code, 15 * packs, 6) / 4 / packs


# Of kernels on sm_90: what, the name, how the machine instructions of a warp for an entry are counted, the most of these and of registers.
# With up to 64 registers 32 of a multiprocessor's 64 warps are resident, in blocks of 8, with up to 80 24.
FIGURES = [
    ("SpMM, 128 columns", "fold_shares<row_product<float, 4, stored_values<float>, false, float>", of_row_product(1), 12, 64),
    ("SpMM, 128 columns of bf16", "fold_shares<row_product<float, 8, stored_values<float>, false, partita::base::bfloat16>", of_row_product(2), 12, 80),
    ("attention with dropout, 8 heads of 8 columns", "warp_product<4, 3, 4, score_weights<float, true>", lambda code: sass.nested(code, 16)[0] / 8, 20, 64),
    ("attention with dropout, a head of 48 columns", "warp_product<4, 0, -1, score_weights<float, true>", of_one_head, 12, 64),
    ("gradients of attention's sources, 8 heads of 8 columns", "warp_product<4, 3, 4, bent_weights<float, true>", lambda code: sass.nested(code, 16)[0] / 4, 22, 72),
    ("gradients of attention's sources, a head of 48 columns", "warp_product<4, 0, -1, bent_weights<float, true>", of_one_head, 13, 80),
]


def without_names(text):
    return text.replace("partita::on_cuda::", "")


def demangled(text):
    return without_names(subprocess.run(["c++filt"], input=text, capture_output=True, text=True, check=True).stdout)


def kernels(text):
    """What ptxas says of each kernel: its name, the architecture, bytes of its stack and of its spills, its registers."""
    kernel = ()
    for line in text.splitlines():
        if found := FUNCTION.search(line):
            kernel = found.groups()
        elif found := USE.search(line):
            kernel += tuple(map(int, found.groups()))
        elif found := REGISTERS.search(line):
            yield *kernel, int(found.group(1))


def allowed(name, stack):
    return any(part in name and stack <= most for part, most in ALLOWED.items())


def only(named, part):
    found = [value for name, value in named.items() if name.startswith(("void run_threads<" + part, "void run_warps<" + part))]
    if len(found) != 1:
        sys.exit(f"{len(found)} kernels are {part}")
    return found[0]


def too_much(cubin, registers):
    """Of the figures above, those that are exceeded."""
    code = {without_names(name): words for name, words in sass.kernels(cubin).items()}
    for what, part, count, most, most_registers in FIGURES:
        here, used = count(only(code, part)), only(registers, part)
        print(f"{what}: {here:.2f} machine instructions for an entry (at most {most}), {used} registers (at most {most_registers})")
        if here > most or used > most_registers:
            yield what


def main():
    asked = sys.argv[1:]
    has_figures = asked[0] == "--figures"
    nvcc, source, *flags = asked[has_figures:]
    # From the same PTX, which takes longest to make.
    targets = [f"-gencode=arch=compute_{ARCHITECTURES[0]},code=sm_{a}" for a in ARCHITECTURES]
    with tempfile.TemporaryDirectory() as kept:
        command = [nvcc, "-fatbin", *targets, "-Xptxas=-v", "-keep", f"-keep-dir={kept}", *flags, source, "-o", f"{kept}/out.fatbin"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            sys.exit(result.stderr)
        found = list(kernels(demangled(result.stderr)))
        wrong = [k for k in found if (k[2] or k[3] or k[4]) and not allowed(k[0], k[2])]
        for name, architecture, stack, stores, loads, _ in wrong:
            print(f"sm_{architecture}: {stack} bytes of stack, {stores} bytes of spill stores, {loads} of loads: {name}")
        by_architecture = {a: sum(k[1] == a for k in found) for a in ARCHITECTURES}
        print(f"kernels looked at, by compute capability: {by_architecture}; {len(wrong)} of them use local memory")
        newest = ARCHITECTURES[-1]
        cubin = pathlib.Path(kept) / f"{pathlib.Path(source).stem}.sm_{newest}.cubin"
        if has_figures:
            wrong += too_much(cubin, {k[0]: k[5] for k in found if k[1] == newest})
    return 1 if wrong or not all(by_architecture.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
