#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the package of Conan's recipe and builds and runs the program beside it: conan.sh CONAN RECIPE FOLDER
set -euo pipefail
export CONAN_HOME=$3/home
rm -rf "$3"
"$1" profile detect
"$1" create "$2" --settings compiler.cppstd=20 --conf "tools.cmake.cmake_layout:test_folder=$3/test" --core-conf core.net.http:max_retries=0
