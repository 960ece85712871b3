#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program of the README compiles without a warning and runs: readme_program.py README COMPILER [FLAG...]"""
import pathlib
import re
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    program = pathlib.Path(folder, "program.cpp")
    program.write_text(re.search(r"```cpp\n(.*?)```", pathlib.Path(sys.argv[1]).read_text(), re.S)[1])
    subprocess.run([*sys.argv[2:], program, "-o", program.with_suffix("")], check=True)
    said = subprocess.run([program.with_suffix("")], check=True, capture_output=True, text=True).stdout
    print(said, end="")
    sys.exit(not re.fullmatch(r"[1-9]\d* words received\n", said))
