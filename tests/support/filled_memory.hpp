// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels on numbers that say where they stand, and the numbers back on the host.

#include <cstdint>
#include <span>
#include <vector>

#include "partita/memory/cuda.hpp"

namespace test_support {

/// data[t] = 3 t + start.
struct fill {
  int* data;
  int start;
  constexpr void operator()(std::int64_t t) const { data[t] = static_cast<int>(3 * t) + start; }
};
/// to[t] = from[t] + 1.
struct increment {
  const int* from;
  int* to;
  constexpr void operator()(std::int64_t t) const { to[t] = from[t] + 1; }
};

inline std::vector<int> filled(int count, int start) {
  std::vector<int> v;
  for (int t = 0; t < count; ++t) v.push_back(3 * t + start);
  return v;
}

inline std::vector<int> download(const partita::device_queue<partita::cuda_device>& q,
                                 const partita::buffer<int, partita::cuda_device>& b) {
  std::vector<int> v(b.size());
  partita::copy(q, b.span(), std::span<int>(v));
  return v;
}

}  // namespace test_support
