#!/usr/bin/env bash
# scripts/ptx-run runs programs, passes on how they end, and says what is wrong with a command line.
# usage: ptx_run.sh SOURCES
set -euo pipefail
run=$1/scripts/ptx-run

# expect CODE WORDS COMMAND...: COMMAND exits with CODE and prints WORDS.
expect() {
  local code=0 text
  text=$("${@:3}" 2>&1) || code=$?
  if [[ $code != "$1" || $text != *"$2"* ]]; then
    printf 'ptx_run: %s\nexited with %s instead of %s, or without "%s":\n%s\n' "${*:3}" "$code" "$1" "$2" "$text" >&2
    exit 1
  fi
}

expect 0 "accuracy" "$run" train --data karate --model gcn --device cuda --ranks 4 --policy grid_2d --epochs 3
expect 0 "accuracy" "$run" --devices 4 train --data karate --model sage --comm nccl --ranks 4 --epochs 3
expect 0 "fold_chunks" "$run" --costs train --data karate --model gat --epochs 1
expect 2 "train: " "$run" train --data karate --model gnc
expect 1 "train: " "$run" train --data /nowhere --model gcn
expect 2 "unknown option --race" "$run" --race golden
expect 2 "--devices needs a number" "$run" --devices train
expect 2 "no program is named" "$run" --races
expect 2 "there is no target grolden" "$run" grolden
expect 2 "./grolden is no program" "$run" ./grolden
