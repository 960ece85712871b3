#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a program on N ranks of one machine, on more ranks than cores if need be: mpi_launch.sh MPIRUN N PROGRAM ...
set -euo pipefail

mpirun=$1
ranks=$2
shift 2

options=()
if "$mpirun" --version 2>/dev/null | grep -qiE 'open ?mpi|openrte'; then
  options+=(--oversubscribe --bind-to none)
  if ((EUID == 0)); then options+=(--allow-run-as-root); fi
  # Ranks that share a core give it to one another; containers often forbid reading a neighbour's memory.
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
fi
exec "$mpirun" "${options[@]}" -n "$ranks" "$@"
