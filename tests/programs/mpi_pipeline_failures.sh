#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpi_pipeline_failures.sh PROGRAM: a rank that fails or is killed in the middle of training over two stages, of two
# ranks each, ends the job, and survivors say at which stage and chunk they were. Prints how long that took.
set -u
program=$1
limit=60 # seconds after which a job hangs
failures=0
launch=(mpirun --oversubscribe --allow-run-as-root)
if mpirun --version 2>/dev/null | grep -q 'Open MPI'; then launch+=(--quiet); fi # without what mpirun itself explains
place='stage [01], (chunk [0-7], (forward|backward)|all chunks, forward|end of (forward|backward)|sum of gradients|loss|scores|epoch [0-9]+)'

# A rank, whose lines on stderr get a file of their own: mpirun may lose them.
one_rank() { exec "$@" 2>"$(mktemp -p "$lines")"; }
export -f one_rank
lines=$(mktemp -d)
export lines
trap 'rm -rf "$lines"' EXIT

# The lines of the ranks; in ms the time of the kill, if there is one, of their last words, and of the end.
run() { # run WHAT RANK N
  rm -f "$lines"/*
  timeout --kill-after=2 "$limit" "${launch[@]}" -n 4 bash -c 'one_rank "$@"' rank "$program" "$@" 2>/dev/null |
    sed 's/$/ killed/'
  printf '%s ended %s\n' "$(date +%s%3N)" "${PIPESTATUS[0]}"
  find "$lines" -type f -size +0 -printf '%T@\n' | sed -E 's/^([0-9]+)\.([0-9]{3}).*/\1\2 last/' | sort | tail -n 1
  cat "$lines"/*
}

expect() { # expect SURVIVORS MESSAGE WHAT RANK N: so many lines at least with a place, and one of the rank or a survivor
  local lines_of_run said status problem='' survivors=$1 message=$2
  shift 2
  lines_of_run=$(run "$@")
  said=$(grep -E '^partita: rank [0-3]: ' <<<"$lines_of_run")
  status=$(awk '$2 == "ended" { print $3 }' <<<"$lines_of_run")
  if [ "$status" -eq 124 ] || [ "$status" -eq 137 ] && ! grep -q killed <<<"$lines_of_run"; then
    problem="no end within $limit s"
  elif [ "$status" -eq 0 ] || [ "$status" -eq 124 ]; then
    problem="exit $status"
  elif ! grep -qE "^partita: rank [0-3]: $message\$" <<<"$said"; then
    problem="no line '$message'"
  elif [ "$(grep -cE "$place" <<<"$said")" -lt "$survivors" ]; then
    problem="fewer than $survivors lines that say where the rank was"
  elif grep -qE '^partita: rank ([01]: .*stage 1|[23]: .*stage 0)' <<<"$said"; then
    problem="a rank in another stage than its own"
  fi
  if [ -n "$problem" ]; then
    printf 'FAILED %s: %s\n%s\n' "$*" "$problem" "$lines_of_run"
    failures=$((failures + 1))
    return
  fi
  awk -v what="$*" '$2 == "killed" { from = $1 } $2 == "ended" { end = $1 } $2 == "last" { last = $1 }
    END { if (from) printf "%s: last words after %d ms, mpirun back after %d ms\n", what, last - from, end - from }' <<<"$lines_of_run"
}

chunk='chunk [0-7], (forward|backward)'
for rank in 0 1 2 3; do
  stage=$((rank / 2))
  expect 1 "stage $stage, $chunk: the cable broke" throw "$rank" $((2 * rank + 1))
  expect 1 "stage $stage, $chunk: ranks disagree: .*" shorten "$rank" $((2 * rank))
  expect 1 "stage [01], ($chunk|end of (forward|backward)): rank $rank has died; this one was in .*" kill "$rank" $((5 * rank))
  expect 1 "$place: rank $rank has died; this one was in .*" kill-later "$rank" $((500 + 9000 * rank))
done

if [ "$failures" -gt 0 ]; then exit 1; fi
echo "every failure ended its job"
