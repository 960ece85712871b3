// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Exponential functions without branches and calls, so that loops over them vectorise, on any device; and
/// how exp is expanded, for kernels that work with vectors.

#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace partita::base {

/// How exp(z) - 1 = 2^k (exp(r) - 1) + 2^k - 1 is computed: r = z - k (high + low), where high + low = log 2
/// and k high is exact, and exp(r) = 1 + r + r^2 p(r), with the coefficients of p from the highest power on.
/// They come from a function, because device code does not see static arrays. Adding `rounder` rounds to an
/// integer, in the lower bits. At `lowest` and below the result is -1, at `highest` and above infinity.
template <class T>
struct exponential_expansion;
template <>
struct exponential_expansion<float> {
  using word = std::uint32_t;
  static constexpr int fraction_bits = 23, bias = 127;
  static constexpr float lowest = -18, highest = 88.8F, high = 0.693359375F, low = -2.12194440e-4F,
                         rounder = 0x1.8p23F;
  static constexpr std::array<float, 6> p() {
    return {1.9875691500e-4F, 1.3981999507e-3F, 8.3334519073e-3F,
            4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F};
  }
};
template <>
struct exponential_expansion<double> {
  using word = std::uint64_t;
  static constexpr int fraction_bits = 52, bias = 1023;
  static constexpr double lowest = -38, highest = 709.9, high = 0.6931471803691238,
                          low = 1.9082149292705877e-10, rounder = 0x1.8p52;
  static constexpr std::array<double, 12> p() {
    return {1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
            1. / 5040,       1. / 720,       1. / 120,      1. / 24,      1. / 6,      1. / 2};
  }
};

namespace detail {

/// a, or b if `second`. Compilers make branches of conditional expressions with constants.
template <class T>
constexpr T chosen(T a, T b, bool second) {
  using word = typename exponential_expansion<T>::word;
  const word bits = std::bit_cast<word>(a);
  return std::bit_cast<T>(bits ^ ((bits ^ std::bit_cast<word>(b)) & (word{0} - word{second})));
}

}  // namespace detail

/// exp(x), to two units in the last place; 0 where that is less than twice the least normal number, NaN of
/// NaN. Of a dual number its derivative, too; what is called in functions of either, after `using
/// partita::base::exponential`, in the place of std::exp.
template <class T>
requires std::is_floating_point_v<T>
constexpr T exponential(T x) {
  using how = exponential_expansion<T>;
  using word = typename how::word;
  constexpr T lowest = std::is_same_v<T, float> ? T(-86.9) : T(-708);
  const T z = detail::chosen(detail::chosen(x, lowest, x < lowest), how::highest, x > how::highest);
  const T shifted = z * T(1.44269504088896340736) + how::rounder, whole = shifted - how::rounder;
  const T r = (z - whole * how::high) - whole * how::low;
  T sum = 0;
  for (const T factor : how::p()) sum = sum * r + factor;
  const T half = std::bit_cast<T>((std::bit_cast<word>(shifted) + (how::bias - 1)) << how::fraction_bits);
  return detail::chosen(T(2) * (half * (sum * r * r + r) + half), T(0), x < lowest);
}

/// exp(x) - 1, to two units in the last place, near 0 too; NaN of NaN.
template <class T>
constexpr T exponential_less_one(T x) {
  using how = exponential_expansion<T>;
  using word = typename how::word;
  const T z = detail::chosen(detail::chosen(x, how::lowest, x < how::lowest), how::highest, x > how::highest);
  const T shifted = z * T(1.44269504088896340736) + how::rounder, whole = shifted - how::rounder;
  const T r = (z - whole * how::high) - whole * how::low;
  T sum = 0;
  for (const T factor : how::p()) sum = sum * r + factor;
  const T of_r = sum * r * r + r;
  const T half = std::bit_cast<T>((std::bit_cast<word>(shifted) + (how::bias - 1)) << how::fraction_bits);
  return T(2) * (half * of_r + (half - T(0.5)));  // half is 2^(k - 1), since 2^k may be infinite
}

/// x > 0 ? x : exp(x) - 1, likewise.
template <class T>
constexpr T exponential_linear(T x) {
  return detail::chosen(exponential_less_one(detail::chosen(x, T(0), x > T(0))), x, x > T(0));
}

}  // namespace partita::base
