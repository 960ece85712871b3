#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpi_failures.sh CHECKED RELEASE: every failure of mpi_failure_program, built without and with NDEBUG, must end a job of
# 4 ranks with an exit code other than 0 and with the reason on stderr: one line a rank, and nothing of MPI's.
set -u
declare -A programs=([checked]=$1 [release]=$2)
limit=60 # seconds after which a job hangs
failures=0
launch=(mpirun --oversubscribe --allow-run-as-root)
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then launch+=(--quiet); fi # without what mpirun itself explains
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0 # the address sanitizer's own report has no rank

# What goes wrong in a scenario, or nothing.
problem_of() { # problem_of BUILD MESSAGE SCENARIO...
  local errors status message=$2 program=${programs[$1]}
  shift 2
  errors=$(timeout --kill-after=2 "$limit" "${launch[@]}" -n 4 "$program" "$@" 2>&1 >/dev/null)
  status=$?
  errors=$(grep -vE 'ORTE_ERROR_LOG|^\[warn\] Epoll |^$' <<<"$errors") # mpirun, where it ends before it has read its own messages
  local problem=
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then
    problem="no end within $limit s"
  elif [ "$status" -eq 0 ]; then
    problem="exit 0"
  elif ! grep -qE "^partita: rank [0-3]: $message\$" <<<"$errors"; then
    problem="stderr lacks '$message'"
  elif grep -qvE '^partita: rank [0-3]: ' <<<"$errors"; then
    problem="stderr has more than the ranks' lines"
  elif [ -n "$(cut -d: -f2 <<<"$errors" | sort | uniq -d)" ]; then
    problem="a rank says more than one line"
  fi
  if [ -n "$problem" ]; then printf '%s\n%s\n' "$problem" "$errors"; fi
}

expect_in() { # expect_in BUILD MESSAGE SCENARIO...
  local problem
  problem=$(problem_of "$@")
  if [ -z "$problem" ]; then return 0; fi
  printf 'FAILED %s (%s): %s\n' "$3" "$1" "$problem"
  return 1
}
expect() { # expect MESSAGE SCENARIO...: in both builds
  expect_in checked "$@" &
  expect_in release "$@" || failures=$((failures + 1))
  wait $! || failures=$((failures + 1))
}
differ() { # differ CHECKED_MESSAGE RELEASE_MESSAGE SCENARIO
  expect_in checked "$1" "$3" || failures=$((failures + 1))
  expect_in release "$2" "$3" || failures=$((failures + 1))
}

here='\(mpi_failure_program\.cpp:[0-9]+\)'
ended='ended without taking part in'

for scenario in throw-all_reduce throw-in-flight throw-split; do expect 'the lamp fell' "$scenario"; done
for operation in broadcast all_gather reduce_scatter all_to_all receive; do expect 'the lamp fell' "throw-$operation"; done

expect "rank 2 $ended all_reduce of f64 $here" early-end
expect "rank [013] $ended all_reduce of f64 $here" late-end
for axes in row col row-col; do expect "rank 2 $ended all_reduce of f64 $here" "leave-$axes"; done
expect "rank 2 $ended receive of f64 $here" leave-receive
expect "rank 2 $ended send of f64 $here" leave-send
expect "rank 2 $ended reduce_scatter of f64 $here" leave-steps
expect "rank 2 $ended all_reduce of f64 $here" leave-caught
expect "rank 2 $ended all_reduce of f64 $here" leave-caught own
expect "rank 2 $ended all_reduce of f64 $here" early-end native
expect "rank 1 $ended all_reduce of f64 $here" alone-all_reduce
expect "rank 3 $ended all_gather of f64 $here" alone-all_gather
expect "rank 1 $ended split $here" alone-split
expect 'the program called exit instead of returning, before its first operation' exit
expect "the program called exit instead of returning, after all_reduce $here" exit-later
expect "the program called exit instead of returning, after all_reduce $here" exit-later own
expect 'ended by signal 11 before its first operation' crash
expect "ended by signal 11 after all_reduce $here" crash-later
expect 'ended by signal 6 before its first operation' abort

late='has waited for more than 2 s for'
for scenario in compute stopped; do expect "rank [013] $late rank 2 in all_reduce of f64 $here of group world" "$scenario"; done
expect "rank [013] $late rank 2 in all_reduce of f64 $here of group world" stopped native
expect "rank [013] $late rank 2 in receive of f64 $here of group world" stopped-receive
expect "rank (3 $late rank 2 in all_reduce of f64 $here of group pair|[01] $late ranks 2, 3 in all_reduce of f64 $here of group world; rank 3 waits in all_reduce of f64 $here)" stopped-in-pair

disagree="ranks disagree: rank [0-3] calls"
expect "$disagree all_(gather|reduce) of f64 $here with [14] elements, rank [0-3] calls all_(reduce|gather) of f64 $here with [14] elements" kind
expect_in checked "$disagree all_(gather|reduce) of f64 $here with [14] elements, rank [0-3] calls all_(reduce|gather) of f64 $here with [14] elements" kind native || failures=$((failures + 1))
expect "$disagree all_reduce of f(32|64) $here with 4 elements, rank [0-3] calls all_reduce of f(64|32) $here with 4 elements" type
expect "$disagree all_reduce of f64 $here with [34] elements, rank [0-3] calls .*" count
expect "$disagree all_reduce of f64 .*" reduction
expect "$disagree broadcast of f64 .*" root
expect "$disagree (split $here|all_reduce of f64 $here with 4 elements), rank [0-3] calls .*" split
expect "$disagree all_(gather|reduce) of f64 $here with [13] elements, rank [1-3] calls .*" group
expect "ranks wait for each other: rank [0-3] in all_(gather|reduce) of f64 $here, rank [0-3] in all_(gather|reduce) of f64 $here" different-groups
differ "ranks disagree: rank 1 expects 1 elements in all_to_all of f64 $here, rank 2 sends 2" \
  "ranks disagree: rank 1 expects 1 elements in all_to_all of f64 $here, rank 2 sends more" all_to_all-counts
differ "ranks disagree: rank 1 calls receive of f64 $here for 1 elements, rank 0 calls send of f64 $here with 4" \
  "ranks disagree: rank 1 expects 1 elements in receive of f64 $here, rank 0 sends more" message

expect "a rank gave up its all_reduce of f64 $here before it was complete" request
expect "a rank gave up its all_reduce of f64 $here before it was complete" request-goes-on
expect "send of f64 $here: rank 4 is out of range for a group of 4" no-rank
expect "broadcast of f64 $here: MPI counts no more than 2147483647 elements, not 2147483648" too-many

if [ "$failures" -gt 0 ]; then exit 1; fi
echo "every failure ended its job"
