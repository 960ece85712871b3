#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every program of a page compiles without a warning, runs, and prints what the block behind it says:
doc_programs.py PAGE COMPILER [FLAG...]"""
import pathlib
import re
import subprocess
import sys
import tempfile

page = pathlib.Path(sys.argv[1]).read_text()
programs = re.findall(r"^```cpp\n(.*?)^```\n\n```text\n(.*?)^```", page, re.M | re.S)
if not programs or len(programs) != page.count("```cpp"):
    sys.exit(f"{page.count('```cpp')} programs, of which {len(programs)} are followed by what they print")
with tempfile.TemporaryDirectory() as folder:
    for number, (text, expected) in enumerate(programs):
        program = pathlib.Path(folder, f"program{number}.cpp")
        program.write_text(text)
        subprocess.run([*sys.argv[2:], program, "-o", program.with_suffix("")], check=True)
        said = subprocess.run([program.with_suffix("")], check=True, capture_output=True, text=True).stdout
        if said != expected:
            sys.exit(f"program {number} prints\n{said}instead of\n{expected}")
print(f"{len(programs)} programs")
