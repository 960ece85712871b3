#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Golden cases over NCCL, on as many ranks as there are cards: as threads, and under mpirun where there is one.
# usage: gpu_golden_nccl.sh GOLDEN CASES PRECISION
set -euo pipefail

golden=$1 cases=$2 precision=$3
cards=$(nvidia-smi --list-gpus | wc -l)
"$golden" "$cases" --device cuda --comm nccl --policy grid_2d --precision "$precision" --ranks "$cards"
if command -v mpirun >/dev/null; then
  "$(dirname "$0")/mpi_launch.sh" mpirun "$cards" "$golden" "$cases" --device cuda --comm nccl --policy row_1d --precision "$precision"
fi
