#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/cluster runs a command on each of its hosts, passes on how it ends and leaves nothing behind; or it says why it cannot.
# usage: cluster.sh SOURCES
set -euo pipefail
cluster=$1/scripts/cluster
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# expect CODE WORDS COMMAND...: COMMAND exits with CODE and prints WORDS, or is skipped with a sentence.
expect() {
  local code=0 text process
  "${@:3}" >"$folder/text" 2>&1 &
  process=$!
  wait "$process" || code=$?
  text=$(sort "$folder/text")
  if [[ $code == 77 && $text == "cluster: skipped: "* ]]; then return; fi
  if [[ $code != "$1" || $text != *"$2"* ]]; then
    printf 'cluster: %s\nexited with %s instead of %s, or without "%s":\n%s\n' "${*:3}" "$code" "$1" "$2" "$text" >&2
    exit 1
  fi
  if command -v ip >/dev/null && ip netns list 2>/dev/null | grep "^partita-$process-"; then
    echo "cluster: its namespaces are still there" >&2
    exit 1
  fi
}
expect 0 "usage: cluster" "$cluster" --help
expect 2 "either a command" "$cluster" --hosts 2
expect 2 "one number of hosts" "$cluster" --hosts 2 3 -- true
expect 2 "invalid choice" "$cluster" --hosts 9 -- true
expect 2 "1lot is not a rate" "$cluster" --rate 1lot -- true
expect 0 $'rank 0 on h1\nrank 1 on h2' "$cluster" --hosts 2 --rate 100mbit -- sh -c 'echo rank $OMPI_COMM_WORLD_RANK on $(hostname)'
expect 1 "" "$cluster" --hosts 2 -- false
