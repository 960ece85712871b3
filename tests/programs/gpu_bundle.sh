#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A bundle of what is built brings all that a machine with a driver and CUDA lacks, and scripts/gpu-check --prebuilt measures with
# it: here on the emulator, beside an nvidia-smi that names a card.
# usage: gpu_bundle.sh SOURCES BUILD EMULATOR
set -euo pipefail
emulator=$3
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
bundle=$folder/bundle

stop() {
  printf 'gpu_bundle: %s\n' "$1" "${@:2}" >&2
  exit 1
}

# With the libraries of MPI and BLAS, which a bundle that is built for itself lacks, it is larger than others may be.
"$1/scripts/gpu-bundle" --build "$2" --out "$bundle" --most 200
[[ -z $(find "$bundle" ! -perm -u+w) ]] || stop "what cannot be written cannot be replaced by the next bundle"
code=0
text=$("$1/scripts/gpu-bundle" --build "$2" --out "$folder/large" --most 1 2>&1) || code=$?
[[ $code == 1 && $text == *" MB, and may have 1"* ]] || stop "a bundle that is too large is not refused:" "$text"
own=$(cd "$bundle/lib" && ls | paste -sd '|')
needed=$(readelf -d "$bundle"/bin/* "$bundle"/lib/* | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u)
lacking=$(grep -Evx "${own:-none}|ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp|cudart|cublas|cublasLt|cusparse|nvJitLink|nccl)\.so.*" <<<"$needed" || true)
[[ -z $lacking ]] || stop "libraries are needed that neither the bundle nor CUDA has:" "$lacking"

mkdir "$folder/bin"
cat >"$folder/bin/nvidia-smi" <<'END'
#!/bin/sh
case $* in
  --query-gpu=compute_cap*) echo 9.0 ;;
  --query-gpu=driver_version*) echo none ;;
  *) echo "NVIDIA Emulator" ;;
esac
END
chmod +x "$folder/bin/nvidia-smi"

# expect CODE WORDS ARGUMENTS...: gpu-check of the bundle exits with CODE and prints WORDS.
expect() {
  local code=0 text
  text=$(env -i PATH="$folder/bin:/usr/bin:/bin" LD_LIBRARY_PATH="$emulator" EMULATOR_CUSPARSE=1 "$bundle/scripts/gpu-check" --prebuilt \
    "${@:3}" 2>&1) || code=$?
  [[ $code == "$1" && $text == *"$2"* ]] || stop "exited with $code instead of $1, or without \"$2\": ${*:3}" "$text"
}
small=(--quick --scale-down 65536 --out "$folder/out")

expect 2 "needs a folder that scripts/gpu-bundle has made" "$folder"
expect 0 "tests, 0 failed" "$bundle" "${small[@]}" --tests 'gpu_page|golden_grid_2d_f32'
for words in '"milliseconds"' '"seconds_per_epoch"' '"capability": "90"'; do
  grep -q "$words" "$folder/out/gpu-emulator.json" || stop "the figures are without $words"
done
grep -q '^## Training steps' "$folder/out/gpu-emulator.md" || stop "the table has no training steps"
[[ $(tar -tzf "$folder/out/gpu-emulator-logs.tgz") == *spmm.log* ]] || stop "the logs are not there"

rm "$bundle/bin/gpu_spmm" "$bundle/bin/gpu_epochs"
expect 1 "nothing was measured" "$bundle" "${small[@]}" --tests gpu_page
sed -i 's/^architecture\t.*/architecture\t100/' "$bundle/manifest.tsv"
expect 1 "the bundle is for compute capability 100, the device has 90" "$bundle"
