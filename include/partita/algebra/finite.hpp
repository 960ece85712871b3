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

/// Whether all values of a range are finite. It does not end early, so that it is vectorised. Local; no
/// communication.
template <class Range>
bool all_finite(const Range& values) {
  bool bad = false;
  for (const auto x : values) bad |= !(std::abs(x) <= std::numeric_limits<decltype(x)>::max());
  return !bad;
}

/// The same for this rank's block of x. Local; no communication.
template <class T, layout L, class Device>
bool is_finite(dense<T, L, Device>& x) {
  return local::read_on_host(x.mesh().queue(), std::span<const T>(x.values()),
                             [](std::span<const T> values) { return all_finite(values); });
}

/// The same for two blocks of one row, the second of which may be empty. A device may take large finite
/// numbers for infinite; one number is read from it. Local; no communication.
template <class T, class Device>
bool are_finite(dense<T, replicated, Device>& x, dense<T, replicated, Device>& y) {
  const auto& q = x.mesh().queue();
  if constexpr (memory::enqueues<Device>)
    if (local::runs_whole(q)) {
      const matrix_view<const T> all = x.local();
      return std::isfinite(dot(q, all, y.values().empty() ? all : matrix_view<const T>(y.local())));
    }
  q.synchronize();  // far values are read in place
  return is_finite(x) && is_finite(y);
}

}  // namespace partita::algebra
