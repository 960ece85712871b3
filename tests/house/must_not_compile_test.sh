#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# must_not_compile.sh must refuse a case that compiles, one that fails for another reason, and one that always fails.
set -euo pipefail

script=$(dirname "$0")/must_not_compile.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# judge VERDICT TEXT COMPILER...
judge() {
  local expected=$1 said=accepted
  printf '%b' "$2" >"$folder/case.cpp"
  shift 2
  "$script" "$folder/case.cpp" "$@" 2>"$folder/said" || said=$(sed -n '$s/.*: //p' "$folder/said")
  if [[ $said != "$expected" ]]; then
    echo "expected '$expected', the verdict is '$said', for:" && cat "$folder/case.cpp" && exit 1
  fi
}

judge accepted '// expect: too small\n#ifdef FAILS\nstatic_assert(false, "too small");\n#endif\n' "$@"
judge "must not compile with -DFAILS, and does" '// expect: too small\n' "$@"
judge "does not compile, but the message is not 'too small'" \
  '// expect: too small\n#ifdef FAILS\nstatic_assert(false, "too big");\n#endif\n' "$@"
judge "must compile without -DFAILS, and does not" '// expect: too small\nstatic_assert(false, "too small");\n' "$@"
judge "the first line must say what to expect" 'int x;\n' "$@"
