// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whether numbers are finite.

#include <cmath>
#include <limits>
#include <span>
#include <type_traits>

#include "partita/matrix/dense.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita::algebra {

/// Whether none of a range of values is infinite or not a number. Without an early end, so that it is
/// vectorised. Local; no communication.
template <class Range>
bool all_finite(const Range& values) {
  bool bad = false;
  for (const auto x : values) bad |= !(std::abs(x) <= std::numeric_limits<decltype(x)>::max());
  return !bad;
}

/// The same of this rank's block of x. Local; no communication.
template <class T, layout L, class Device>
bool is_finite(dense<T, L, Device>& x) {
  return local::read_on_host(x.mesh().queue(), std::span<const T>(x.values()),
                             [](std::span<const T> values) { return all_finite(values); });
}

/// The same of two blocks of one row, the second of which may be empty. A device may find large finite
/// numbers not to be; it has one number read. Local; no communication.
template <class T, class Device>
bool are_finite(dense<T, replicated, Device>& x, dense<T, replicated, Device>& y) {
  const auto& q = x.mesh().queue();
  if constexpr (memory::enqueues<Device>)
    if (local::runs_whole(q)) {
      const matrix_view<const T> all = x.local();
      return std::isfinite(dot(q, all, y.values().empty() ? all : matrix_view<const T>(y.local())));
    }
  q.synchronize();  // far values are read where they are
  return is_finite(x) && is_finite(y);
}

}  // namespace partita::algebra
