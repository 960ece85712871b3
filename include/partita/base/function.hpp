// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Element-wise function objects passed to kernels, in addition to std::plus<>, std::minus<>,
/// std::multiplies<> and std::divides<>.
///
/// A kernel function object must have a named type at namespace scope, be trivially copyable and have a
/// constexpr operator(), so that it runs on any device. Lambdas work on the host only.

#include <type_traits>

namespace partita::base {

/// a x.
template <class T>
struct scaled {
  T a;
  constexpr T operator()(T x) const { return a * x; }
};

/// a x + b y.
template <class T>
struct linear_combination {
  T a, b;
  constexpr T operator()(T x, T y) const { return a * x + b * y; }
};

/// max(x, 0).
struct positive_part {
  template <class T>
  constexpr T operator()(T x) const {
    return x > T(0) ? x : T(0);
  }
};

/// max(x, y), or NaN if either is NaN. Every maximum over ranks, rows or edges uses it, so NaNs propagate.
struct larger_of {
  template <class T>
  constexpr T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>)
      return bool((y > x) | (y != y)) ? y : x;  // a single condition, so that the loop vectorises
    else
      return y > x ? y : x;
  }
};

}  // namespace partita::base
