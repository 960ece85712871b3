// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums that have the same bits in every order of their terms: each term is rounded to a fixed grid on which
/// doubles add up without rounding.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "partita/base/index.hpp"

namespace partita::base {

/// sum += x y, for numbers that were T, rounded once; V: double, or a vector of them. Products of floats are
/// exact in double: there it does not matter whether the compiler contracts the two operations.
template <class T, class V>
constexpr void multiply_add(const V& x, const V& y, V& sum) {
  if constexpr (std::is_same_v<T, float>)
    sum += x * y;
  else if constexpr (std::is_same_v<V, double>)
    sum = std::fma(x, y, sum);
  else
    [&]<std::size_t... Lanes>(std::index_sequence<Lanes...>) {
      sum = V{std::fma(x[Lanes], y[Lanes], sum[Lanes])...};
    }
  (std::make_index_sequence<sizeof(V) / sizeof(double)>());
}

/// The first part of a term: a multiple of the coarse unit.
struct coarse_rounding {
  double coarse;
  constexpr double operator()(double t) const { return (t + coarse) - coarse; }
  /// sum += the part of t; V: double, or a vector of them.
  template <class V>
  constexpr void add(const V& t, V& sum) const {
    sum += (t + coarse) - coarse;
  }
  /// sum += the part of x y, for numbers that were T.
  template <class T, class V>
  constexpr void add_product(const V& x, const V& y, V& sum) const {
    V rounded = V() + coarse;
    multiply_add<T>(x, y, rounded);
    sum += rounded - coarse;
  }
};
/// The second part: what the first one left, to a multiple of the fine unit.
struct fine_part {
  double coarse, fine;
  constexpr double operator()(double t) const { return ((t - ((t + coarse) - coarse)) + fine) - fine; }
  template <class V>
  constexpr void add(const V& t, V& sum) const {
    sum += ((t - ((t + coarse) - coarse)) + fine) - fine;
  }
  template <class T, class V>
  constexpr void add_product(const V& x, const V& y, V& sum) const {
    V rounded = V() + coarse;
    multiply_add<T>(x, y, rounded);
    V left = coarse - rounded;
    multiply_add<T>(x, y, left);
    sum += (left + fine) - fine;
  }
};

/// q = (t + C) - C rounds t to a multiple of 2^e, for C = 1.5 * 2^(e + 52) and |t| <= 2^(e + 51). If e is
/// such that the sum of all |q| is at most 2^(e + 51), every partial sum of them is exact, also with C added,
/// and their order does not matter. The remainders t - q are exact, too, and are summed on a second grid in
/// the same way.
///
/// Of n products of which none is larger than M, each is rounded once, as fma(x, y, C) - C, to a unit of at
/// most 2^-48 n M; in double, on two grids, to one of at most 2^-99 n^2 M. Units below 2^-900 are not used:
/// there what the first grid leaves would be subnormal. Where M is not finite every sum is NaN.
///
/// Source: the rounding of Demmel, Nguyen (ARITH 2013), with the number of terms known in advance.
class exact_grid {
 public:
  /// For sums of at most `terms` products of numbers up to `x` in magnitude by numbers up to `y`.
  static exact_grid of_products(double x, double y, global_index terms) {
    if (!std::isfinite(x) || !std::isfinite(y)) return exact_grid();
    int of_x = 0, of_y = 0;
    std::frexp(x, &of_x);
    std::frexp(y, &of_y);
    return exact_grid(of_x + of_y, std::max<global_index>(terms, 1));
  }

  coarse_rounding coarse() const { return {coarse_}; }
  fine_part fine() const { return {coarse_, fine_}; }

 private:
  exact_grid() = default;
  /// For terms of at most 2^bound: the sum of their parts, none of which is larger, is at most 2^51 units of
  /// 2^unit, and so is that of the remainders, of at most 2^(unit - 1), on their grid.
  exact_grid(int bound, global_index terms) {
    const int bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(terms)));
    const int unit = std::max(bound + bits - 51, -900);
    coarse_ = std::ldexp(1.5, unit + 52);
    fine_ = std::ldexp(1.5, std::max(unit + bits - 52, -900) + 52);
  }

  double coarse_ = std::numeric_limits<double>::quiet_NaN(), fine_ = coarse_;
};

/// How many sums a sum of T is kept in: for float one on the coarse grid has more digits than the result.
template <class T>
inline constexpr int exact_sums = std::is_same_v<T, float> ? 1 : 2;

/// f(level, part) for the parts of a term that sums of T are made of.
template <class T, class Function>
void for_exact_parts(const exact_grid& grid, Function f) {
  f(0, grid.coarse());
  if constexpr (exact_sums<T> == 2) f(1, grid.fine());
}

}  // namespace partita::base
