#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpi_failures.sh PROGRAM: every failure of mpi_failure_program must end a job of 4 ranks with an exit code other than
# 0 and with the reason on stderr.
set -u
program=$1
limit=60 # seconds after which a job hangs
failures=0

# What goes wrong in a scenario, or nothing.
problem_of() { # problem_of SCENARIO MODE MESSAGE
  local errors status
  errors=$(timeout --kill-after=2 "$limit" \
    mpirun --oversubscribe --allow-run-as-root -n 4 "$program" "$1" "$2" 2>&1 >/dev/null)
  status=$?
  local problem=
  if [ "$status" -eq 0 ]; then problem="exit 0"; fi
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then problem="no end within $limit s"; fi
  if ! grep -qE "^partita: rank [0-3]: .*$3" <<<"$errors"; then problem="stderr lacks '$3'"; fi
  if [ -n "$problem" ]; then printf '%s\n%s\n' "$problem" "$errors"; fi
}

expect() { # expect SCENARIO MODE MESSAGE
  local problem
  problem=$(problem_of "$@")
  if [ -z "$problem" ]; then return; fi
  failures=$((failures + 1))
  printf 'FAILED %s (%s): %s\n' "$1" "$2" "$problem"
}

here='\(mpi_failure_program\.cpp:[0-9]+\)'
for operation in all_reduce broadcast all_gather reduce_scatter all_to_all receive split; do
  expect "throw-$operation" checked 'the lamp fell$'
done
expect throw-all_reduce unchecked 'the lamp fell$'
expect throw-in-flight checked 'the lamp fell$'
expect throw-in-flight unchecked 'the lamp fell$'

expect kind checked "ranks disagree: rank 2 calls all_gather of f64 $here with 1 elements, rank 0 calls all_reduce of f64 $here with 4 elements$"
expect type checked "ranks disagree: rank 2 calls all_reduce of f32 $here with 4 elements, rank 0 calls"
expect count checked "ranks disagree: rank 2 calls all_reduce of f64 $here with 3 elements, rank 0 calls"
expect reduction checked "ranks disagree: rank 2 calls all_reduce of f64"
expect root checked "ranks disagree: rank 2 calls broadcast of f64"
expect split checked "ranks disagree: rank 2 calls split $here, rank 0 calls all_reduce of f64"
expect group checked "ranks disagree: rank 2 calls all_gather of f64 $here with 1 elements, rank 3 calls"
expect all_to_all-counts checked "ranks disagree: rank 1 expects 1 elements in all_to_all of f64 $here, rank 2 sends 2$"
expect message checked "ranks disagree: rank 1 calls receive of f64 $here for 1 elements, rank 0 calls send of f64 $here with 4$"
expect message unchecked "receive of f64 $here failed: MPI_ERR_TRUNCATE"

expect early-end checked "rank 2 ended without taking part in all_reduce of f64 $here$"
expect late-end checked "rank 0 ended without taking part in all_reduce of f64 $here$"
for mode in checked unchecked; do
  expect request $mode "a rank gave up its all_reduce of f64 $here before it was complete$"
  expect request-goes-on $mode "a rank gave up its all_reduce of f64 $here before it was complete$"
  expect no-rank $mode 'rank 4 is out of range for a group of 4$'
  expect too-many $mode "broadcast of f64 $here: MPI counts no more than 2147483647 elements, not 2147483648$"
done

if [ "$failures" -gt 0 ]; then exit 1; fi
echo "every failure ended its job"
