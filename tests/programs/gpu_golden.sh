#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Golden cases on a CUDA device under one policy, on 1 to 9 ranks that share the card.
# usage: gpu_golden.sh GOLDEN CASES POLICY PRECISION [RANKS...]
set -euo pipefail

golden=$1 cases=$2 policy=$3 precision=$4
shift 4
if (($# == 0)); then
  set -- 1 2 3 4 5 6 7 8 9
fi

failed=0
for ranks in "$@"; do
  echo "== $policy, $precision, $ranks ranks"
  "$golden" "$cases" --device cuda --policy "$policy" --precision "$precision" --ranks "$ranks" || failed=1
done
exit "$failed"
