// SPDX-License-Identifier: Apache-2.0
#pragma once
// Handlers that do the same in every lane.
#include "warp.hpp"

namespace emulator::ptx {

/// to[l] = f(l) for the lanes of the mask; f must be harmless in the others.
template <class T, class F>
void for_lanes(lane_mask active, T* to, F f) {
  if (active == every_lane) {
#pragma GCC ivdep
    for (unsigned l = 0; l < warp_size; ++l) to[l] = f(l);
  } else {
#pragma GCC ivdep
    for (unsigned l = 0; l < warp_size; ++l) {
      const auto made = f(l);
      to[l] = (active >> l & 1) != 0 ? made : static_cast<decltype(made)>(to[l]);
    }
  }
}

/// One lane after another, for what must not happen in others.
void for_each_lane(lane_mask active, auto f) {
  for (; active != 0; active &= active - 1) f(static_cast<unsigned>(std::countr_zero(active)));
}

/// The lanes in which f(l) holds.
lane_mask lanes_where(auto f) {
  lane_mask mask = 0;
  for (unsigned l = 0; l < warp_size; ++l) mask |= static_cast<lane_mask>(f(l) ? 1 : 0) << l;
  return mask;
}

/// Sums and products of integers wrap around.
template <class T>
struct wrapping {
  using type = T;
};
template <class T>
requires std::is_integral_v<T>
struct wrapping<T> {
  using type = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;
};
template <class T>
using wrapping_t = typename wrapping<T>::type;

/// d = F(a), d = F(a, b), d = F(a, b, c), with D what F returns.
template <class F, class T>
constexpr handler unary = [](warp& w, const operation& o, lane_mask active) {
  using D = decltype(F{}(T{}));
  const auto* const a = w.lanes<T>(o.a);
  for_lanes(active, w.lanes<D>(o.d), [=](unsigned l) { return F{}(a[l]); });
};
template <class F, class T, class U = T>
constexpr handler binary = [](warp& w, const operation& o, lane_mask active) {
  using D = decltype(F{}(T{}, U{}));
  const auto* const a = w.lanes<T>(o.a);
  const auto* const b = w.lanes<U>(o.b);
  for_lanes(active, w.lanes<D>(o.d), [=](unsigned l) { return F{}(a[l], b[l]); });
};
template <class F, class T, class U = T, class V = T>
constexpr handler ternary = [](warp& w, const operation& o, lane_mask active) {
  using D = decltype(F{}(T{}, U{}, V{}));
  const auto* const a = w.lanes<T>(o.a);
  const auto* const b = w.lanes<U>(o.b);
  const auto* const c = w.lanes<V>(o.c);
  for_lanes(active, w.lanes<D>(o.d), [=](unsigned l) { return F{}(a[l], b[l], c[l]); });
};

}  // namespace emulator::ptx
