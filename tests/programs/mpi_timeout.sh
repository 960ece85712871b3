#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpi_timeout.sh TRAIN LAUNCHER...: where one rank of `train --timeout` is stopped, the job must end with an exit code other
# than 0 and a sentence that names it. LAUNCHER takes the number of ranks and the program.
set -u
train=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  printf 'FAILED: %s\n' "$1"
  cat "$folder/out" "$folder/err"
  exit 1
}

# Every rank writes its process id, and then is the program.
timeout --kill-after=2 120 "$@" 3 sh -c '
  folder=$1
  shift
  echo $$ >"$folder/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
  exec "$@"' sh "$folder" "$train" --data karate --model gcn --epochs 1000000 --dropout 0 --policy row_1d --threads 1 \
  --comm mpi --timeout 1 >"$folder/out" 2>"$folder/err" &
job=$!
for ((tries = 0; tries < 300; ++tries)); do # until it trains
  if grep -q '^ *epoch' "$folder/out" || ! kill -0 "$job" 2>/dev/null; then break; fi
  sleep 0.1
done
kill -STOP "$(cat "$folder/2")" || fail 'rank 2 does not run'
wait "$job"
status=$?
kill -KILL "$(cat "$folder/2")" 2>/dev/null # should mpirun have left it behind

if [ "$status" -eq 124 ] || [ "$status" -eq 137 ]; then fail 'no end'; fi
if [ "$status" -eq 0 ]; then fail 'exit 0'; fi
sentences=$(grep '^partita: ' "$folder/err" | grep -v '^partita: rank 2: ') # mpirun may let it go on before it ends the job
# A rank that waits for rank 2 in an earlier operation is late as well; one that waits for a late rank may see it end.
ended='rank [01] has died; this one was in [a-z_]+ of [a-z0-9]+ \([a-z_]+\.[a-z]+:[0-9]+\)'
late='rank [01] has waited for more than 1 s for rank(s [01],)? 2 in [a-z_]+ of [a-z0-9]+ \([a-z_]+\.[a-z]+:[0-9]+\) of group [a-z+]+(; rank [01] waits in .*)?'
if [ -z "$sentences" ]; then fail 'no sentence'; fi
if grep -qvE "^partita: rank [01]: ([^ ]+: )?($late|$ended)\$" <<<"$sentences"; then fail 'another sentence'; fi
named=$(grep -E "$late\$" <<<"$sentences")
if [ -z "$named" ]; then fail 'rank 2 is not named'; fi
if [ "$(wc -l <<<"$sentences")" -gt 2 ]; then fail 'more than a sentence of each rank'; fi
echo "the stopped rank was named: $(head -1 <<<"$named")"
