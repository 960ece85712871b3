// SPDX-License-Identifier: Apache-2.0
#pragma once
/// SIMD register width of the target, and the tile and strip sizes derived from it.

#include <algorithm>

#include "partita/base/index.hpp"

namespace partita::on_host {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

/// Row block size of sparse products.
inline constexpr local_index row_block = 16;

/// Maximum number of columns accumulated in registers.
template <class T>
inline constexpr int widest_strip = (vector_bytes == 64 ? 512 : 256) / static_cast<int>(sizeof(T));

/// Smallest power of two that covers the missing columns, or else the largest that fits.
template <class T>
inline local_index strip_width(local_index cols, local_index missing) {
  local_index width = 1;
  while (width < missing && 2 * width <= std::min<local_index>(cols, widest_strip<T>)) width *= 2;
  return width;
}

/// Prefetches n elements.
template <class T>
inline void prefetch(const T* x, local_index n) {
  for (local_index j = 0; j < n; j += 64 / sizeof(T)) __builtin_prefetch(x + j);
}

}  // namespace partita::on_host
