#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No kernel spills registers or keeps variables in local memory, on cards of two generations.

usage: spills.py NVCC SOURCE [FLAG...]        SOURCE: a .cu file, or PTX for the older ones
"""
import re
import subprocess
import sys
import tempfile

ARCHITECTURES = ["80", "90"]
# Kernels that save registers around the slow path of a function of the compiler's, a logarithm, a division or an exponential, and those
# that inline a function of messages, which need one register to four more than a block of threads leaves them.
ALLOWED = {"row_losses<double>": 32, "gradient_before_dropout<": 32, "exponential_of_difference": 24, "message_detail::": 16}

FUNCTION = re.compile(r"Compiling entry function '(.*)' for 'sm_(\d+)'")
USE = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def kernels(text):
    """What ptxas says of each kernel: its name, the architecture, bytes of its stack and of its spills."""
    kernel = None
    for line in text.splitlines():
        if found := FUNCTION.search(line):
            kernel = found.groups()
        elif (found := USE.search(line)) and kernel:
            yield *kernel, *(int(n) for n in found.groups())
            kernel = None


def allowed(name, stack):
    return any(part in name and stack <= most for part, most in ALLOWED.items())


def main():
    nvcc, source, *flags = sys.argv[1:]
    # From the same PTX, which takes longest to make.
    targets = [f"-gencode=arch=compute_{ARCHITECTURES[0]},code=sm_{a}" for a in ARCHITECTURES]
    with tempfile.NamedTemporaryFile(suffix=".fatbin") as out:
        command = [nvcc, "-fatbin", *targets, "-Xptxas=-v", *flags, source, "-o", out.name]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(result.stderr)
    text = subprocess.run(["c++filt"], input=result.stderr, capture_output=True, text=True, check=True).stdout
    found = list(kernels(text))
    wrong = [k for k in found if (k[2] or k[3] or k[4]) and not allowed(k[0], k[2])]
    for name, architecture, stack, stores, loads in wrong:
        print(f"sm_{architecture}: {stack} bytes of stack, {stores} bytes of spill stores, {loads} of loads: {name}")
    by_architecture = {a: sum(k[1] == a for k in found) for a in ARCHITECTURES}
    print(f"kernels looked at, by compute capability: {by_architecture}; {len(wrong)} of them use local memory")
    return 1 if wrong or not all(by_architecture.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
