// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows at a time, and rows ahead.

#include "partita/base/index.hpp"

namespace partita::on_host {

/// Row block size of sparse products.
inline constexpr local_index row_block = 16;

/// Where row i of a reordered block is in the block: its row there, and what its entries' numbers are less
/// there than here.
struct row_place {
  local_index row = 0, shift = 0;
};

/// Prefetches n elements.
template <class T>
inline void prefetch(const T* x, local_index n) {
  for (local_index j = 0; j < n; j += 64 / sizeof(T)) __builtin_prefetch(x + j);
  asm volatile("");  // GCC drops calls of functions that only prefetch
}

}  // namespace partita::on_host
