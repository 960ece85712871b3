// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of partial results in a fixed order: groups are summed sequentially, then groups of these sums, until
/// one remains.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "partita/local/cuda/vector.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::on_cuda {

inline constexpr std::int64_t summed_at_once = 32;

/// to(g, j) = from(32 g, j) + from(32 g + 1, j) + ... over `count` rows of `width` sums.
template <class Sum>
struct add_groups {
  const Sum* from;
  Sum* to;
  std::int64_t count, width;

  constexpr void operator()(std::int64_t thread) const {
    const std::int64_t group = thread / width, j = thread % width;
    const std::int64_t first = group * summed_at_once;
    const std::int64_t parts = summed_at_once < count - first ? summed_at_once : count - first;
    const Sum* const part = from + first * width + j;
    Sum total = part[0];
    for (std::int64_t p = 1; p < parts; ++p) total += part[p * width];
    to[thread] = total;
  }
};

/// Elements of scratch memory that add_up needs for `count` rows of `width` partial sums, including the
/// input.
inline std::size_t room_to_add_up(std::int64_t count, std::int64_t width) {
  std::int64_t rows = count;
  while (count > 1) {
    count = quotient_up(count, summed_at_once);
    rows += count;
  }
  return static_cast<std::size_t>(rows * width);
}

/// Sums `count` >= 1 rows of `width` partial sums at `parts`, which must have room for room_to_add_up
/// elements. Returns where the result is.
template <class Sum>
const Sum* add_up(const device_queue<cuda_device>& q, Sum* parts, std::int64_t count, std::int64_t width) {
  while (count > 1) {
    const std::int64_t groups = quotient_up(count, summed_at_once);
    Sum* const sums = parts + count * width;
    on_cuda::launch(q, groups * width, add_groups<Sum>{parts, sums, count, width});
    parts = sums;
    count = groups;
  }
  return parts;
}

}  // namespace partita::on_cuda
