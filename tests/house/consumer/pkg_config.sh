#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pkg-config knows an installed partita, and a program compiles with what it says: pkg_config.sh PREFIX VERSION COMPILER OUT
set -euo pipefail

export PKG_CONFIG_PATH=$1/share/pkgconfig
[[ $(pkg-config --modversion partita) == "$2" ]]
read -ra flags <<<"$(pkg-config --cflags --libs partita)"
"$3" -std=c++20 "$(dirname "$0")/consumer.cpp" "${flags[@]}" -o "$4"
"$4"
