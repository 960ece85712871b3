// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Functions of single entries that kernels are given again and again; std::plus<>, std::minus<>,
/// std::multiplies<> and std::divides<> are others.
///
/// A function that a kernel gets is an object of a named type at namespace scope, trivially copyable, with a
/// constexpr operator(): such an object runs wherever the entries live, a lambda on the host alone.

#include <type_traits>

namespace partita {

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

/// max(x, y), NaN where one of them is. Maxima over ranks, rows and edges are made of it: none hides a NaN.
struct larger_of {
  template <class T>
  constexpr T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>)
      return bool((y > x) | (y != y)) ? y : x;  // one condition, which vectorises
    else
      return y > x ? y : x;
  }
};

}  // namespace partita
