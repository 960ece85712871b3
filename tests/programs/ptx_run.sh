#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/ptx-run runs programs, passes on how they end, and says what is wrong with a command line. It runs what the build has
# made, and cmake fails here: a test with a time limit must not build the library.
# usage: ptx_run.sh SOURCES NVCC [PAGE]        PAGE: the target that is the program of docs/gpu.md, if there is one
set -euo pipefail
nvcc=$2
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
run=$folder/run
printf '#!/bin/sh\nexec "%s" --no-build "$@"\n' "$1/scripts/ptx-run" >"$run"
printf '#!/bin/sh\necho "cmake $*"\nexit 1\n' >"$folder/cmake"
chmod +x "$run" "$folder/cmake"
export PATH=$folder:$PATH

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
expect 0 "fold_shares" "$run" --costs train --data karate --model gat --epochs 1
expect 2 "train: " "$run" train --data karate --model gnc
expect 1 "train: " "$run" train --data /nowhere --model gcn
expect 2 "unknown option --race" "$run" --race golden
expect 2 "--devices needs a number from 1" "$run" --devices train
expect 2 "no program is named" "$run" --races
expect 2 "there is no target grolden" "$run" grolden
expect 2 "./grolden is not a program" "$run" ./grolden
expect 2 "--devices needs a number from 1" "$run" --devices 0 train
expect 2 "EMULATOR_DEVICES is 'x', and must be a number from 1" env EMULATOR_DEVICES=x "$run" train
expect 2 "EMULATOR_DEVICES is '0', and must be a number from 1" env EMULATOR_DEVICES=0 "$run" train
mkdir -p "$folder/bare/scripts"
cp "$1/scripts/ptx-run" "$folder/bare/scripts"
expect 3 "nothing is built under $folder/bare/build/release: leave out --no-build" "$folder/bare/scripts/ptx-run" --no-build train
expect 3 "--target emulator train" "$1/scripts/ptx-run" train
expect 2 "is not a program" "$run" "$folder"
expect 1 "without a card scripts/ptx-run, of the sources, runs this program on an emulator" \
  env EMULATOR_DEVICES=0 LD_LIBRARY_PATH="$1/build/release/tests/emulator/lib" "$1/build/release/examples/train" --data karate --model gcn --device cuda
# The workspace of cuBLAS is there before the window, and stays near: the least --memory that is named suffices.
offloaded=("$run" train --data karate --model gcn --epochs 1 --far pinned --memory)
expect 1 "that stay near: --memory needs at least " "${offloaded[@]}" 1M
least=$("${offloaded[@]}" 1M 2>&1 | sed -n 's/.*needs at least //p') || true
expect 0 "accuracy" "${offloaded[@]}" "$least"
expect 1 "4 ranks need 4 devices, and this machine has 2; use --comm threads or mpi, or scripts/ptx-run --devices 4 without a card" env EMULATOR_DEVICES=2 "$run" train --data karate --model gcn --comm nccl --ranks 4

# Programs as docs/gpu.md has nvcc build them, and as the emulator cannot use them.
build() { "$nvcc" -std=c++20 "${@:3}" "$2" -o "$folder/$1"; }
planted=$1/tests/emulator/planted_faults.cu
build faults.o "$planted" -c
build faults "$folder/faults.o" -cudart shared
build static "$folder/faults.o" -cudart static
build linked "$planted" -cudart shared -rdc=true
faults=$folder/faults
expect 0 "no kernel ran" "$run" --costs "$faults" nothing
expect 139 "emulator: the host touches device memory: 12 bytes into a block of 128 bytes of device 0" "$run" "$faults" touch
expect 0 "read by twice(float const*, float*) on stream 2 that no event orders before this one on stream 1" "$run" --races "$faults" order
expect 0 "emulator: a write of 4 bytes is out of bounds" "$run" "$faults" end
expect 0 "in work that it did not wait for" "$run" "$faults" end
expect 0 "emulator: a launch of fill(float*, float) with blocks of (2000, 1, 1) threads" "$run" "$faults" launch
expect 0 "emulator: a copy of 132 bytes reads beyond a block of 128 bytes of device 0" "$run" "$faults" copy
expect 1 "runs for more than 1 s" "$run" --patience 1 "$faults" spin
expect 0 "compile without -rdc=true" "$run" "$folder/linked" launch
expect 2 "link it with -cudart shared" "$run" "$folder/static" end

# The program in docs/gpu.md.
page=${3:-}
if [[ -z $page ]]; then
  page=$folder/spmm
  awk '/^```/ { if (++fences == 2) exit; next } fences' "$1/docs/gpu.md" >"$page.cu"
  build spmm "$page.cu" -cudart shared -I "$1/include" --expt-relaxed-constexpr
fi
expect 0 "row 0 of A X is 2, row 1 is 4" "$run" "$page"
