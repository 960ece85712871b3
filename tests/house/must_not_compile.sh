#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# must_not_compile.sh CASE.cpp COMPILER [FLAG...]: CASE.cpp compiles, but with -DFAILS it does not, and what the
# compiler says matches the expression in its first line after the licence, "// expect: EXPRESSION".
set -euo pipefail

source=$1
shift

expected=$(sed -n '/SPDX-License-Identifier/d; s,^// expect: ,,p; q' "$source")
if [[ -z $expected ]]; then
  echo "$source: the first line must say what to expect" >&2
  exit 1
fi

if ! output=$("$@" -fsyntax-only "$source" 2>&1); then
  echo "$output" >&2
  echo "$source: must compile without -DFAILS, and does not" >&2
  exit 1
fi

if output=$("$@" -fsyntax-only -DFAILS "$source" 2>&1); then
  echo "$source: must not compile with -DFAILS, and does" >&2
  exit 1
fi

if ! grep -qE -- "error: .*$expected" <<<"$output"; then
  echo "$output" >&2
  echo "$source: does not compile, but the message is not '$expected'" >&2
  exit 1
fi
