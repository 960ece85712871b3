#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the wheel of the Python module around the compiled library that is there, installs it into a folder, and runs its tests:
# python_module.sh PYTHON PROJECT COMPILED FOLDER CXX [OPTION=VALUE ...]
set -euo pipefail
python=$1 project=$2 compiled=$3 folder=$4 cxx=$5
options=()
for option in "${@:6}"; do options+=("-Ccmake.define.$option"); done

mkdir -p "$folder"
rm -rf "$folder/wheel" "$folder/site"
export PARTITA_BLAS=AUTO CXX=$cxx CMAKE_BUILD_PARALLEL_LEVEL=2
pip=("$python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" wheel "$project" --no-build-isolation --no-deps --no-index --wheel-dir "$folder/wheel" "-Cbuild-dir=$folder/build" \
  "-Ccmake.define.PARTITA_PYTHON_COMPILED=$compiled" -Ccmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON "${options[@]}"
"${pip[@]}" install --no-deps --no-index --target "$folder/site" "$folder"/wheel/partita-*.whl

cd "$folder"
PYTHONPATH=$folder/site "$python" -B -m unittest discover --verbose --start-directory "$project/python/tests"
