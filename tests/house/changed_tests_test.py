# SPDX-License-Identifier: Apache-2.0
"""scripts/changed_tests.py finds what a change can have broken, and no more: changed_tests_test.py COMPILER"""
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "changed_tests.py"
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(some LANGUAGES CXX)
enable_testing()
add_subdirectory(programs)
"""
PROGRAMS = """add_library(base STATIC base.cpp)
foreach(name one two)
  add_executable(${name} ${name}.cpp)
  add_test(NAME ${name} COMMAND ${name})
endforeach()
target_link_libraries(two PRIVATE base)
add_test(NAME script COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/script.sh)
"""
FILES = {"CMakeLists.txt": PROJECT, "programs/CMakeLists.txt": PROGRAMS, "programs/shared.hpp": "int shared();\n",
         "programs/base.cpp": '#include "shared.hpp"\nint shared() { return 0; }\n', "programs/one.cpp": "int main() {}\n",
         "programs/two.cpp": '#include "shared.hpp"\nint main() { return shared(); }\n', "programs/script.sh": "exit 0\n"}
EXPECTED = {"programs/shared.hpp": ("programs/two", "^(two)$"), "programs/base.cpp": ("programs/two", "^(two)$"),
            "programs/one.cpp": ("programs/one", "^(one)$"), "programs/script.sh": ("", "^(script)$"), "README.md": ("", "")}

with tempfile.TemporaryDirectory() as folder:
    source = pathlib.Path(folder).resolve()
    (source / "programs").mkdir()
    for name, text in FILES.items():
        (source / name).write_text(text)
    build = source / "build"
    subprocess.run(["cmake", "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_CXX_COMPILER={sys.argv[1]}"], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    for changed, expected in EXPECTED.items():
        said = subprocess.run([sys.executable, SCRIPT, build, source / changed], check=True, capture_output=True, text=True).stdout.split("\n")[:2]
        if tuple(said) != expected:
            sys.exit(f"{changed} has changed: {said} instead of {expected}")
