#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Converts the public files in DATA/planetoid_raw anew and compares the result with the folders in DATA.
set -euo pipefail

data=$1
made=$2
here=$(cd "$(dirname "$0")" && pwd)

for python in "${PYTHON:-python3}" /usr/bin/python3; do
  if "$python" -c 'import numpy' 2>/dev/null; then
    rm -rf "$made"
    PYTHON=$python "$here/../../scripts/get-data" --from "$data/planetoid_raw" --to "$made"
    exec "$python" "$here/get_data_test.py" "$made" "$data"
  fi
done
echo "get_data: python3 with numpy is needed; on Debian or Ubuntu: apt install python3-numpy" >&2
exit 1
