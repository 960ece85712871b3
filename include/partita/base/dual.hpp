// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dual numbers: a value and its derivatives with respect to N inputs, from which adjoints of user-made
/// functions are derived. A function of generic arithmetic, [](auto x, auto y) { return x * exp(y); }, called
/// with numbers gives a value, called with duals also its partial derivatives (forward mode).
///
/// Constants of any arithmetic type mix with duals. Comparisons are those of the values, so that branches and
/// max are differentiated along the branch that is taken. All of it is constexpr or inline, and runs on any
/// device that runs the function with numbers.

#include <array>
#include <cmath>
#include <type_traits>

#include "partita/base/exponential.hpp"

namespace partita::base {

/// value + sum over k of slope[k] eps_k, eps_k eps_l = 0.
template <class T, int N>
struct dual {
  T value{};
  std::array<T, static_cast<std::size_t>(N)> slope{};

  constexpr dual() = default;
  /// A constant.
  template <class Number>
  requires std::is_arithmetic_v<Number>
  constexpr dual(Number constant)  // NOLINT(google-explicit-constructor): constants mix with duals
      : value(static_cast<T>(constant)) {}
  /// Input `k`, whose slope with respect to itself is 1.
  static constexpr dual input(T value, int k) {
    dual x(value);
    x.slope[static_cast<std::size_t>(k)] = T(1);
    return x;
  }

  /// f(x), given f's value and its derivative at x.value: the chain rule.
  constexpr dual through(T f, T derivative) const {
    dual y(f);
    for (std::size_t k = 0; k < slope.size(); ++k) y.slope[k] = derivative * slope[k];
    return y;
  }
  /// f(x, y), given f's value and its two partial derivatives.
  static constexpr dual of_two(const dual& x, const dual& y, T f, T by_x, T by_y) {
    dual z(f);
    for (std::size_t k = 0; k < z.slope.size(); ++k) z.slope[k] = by_x * x.slope[k] + by_y * y.slope[k];
    return z;
  }

  friend constexpr dual operator+(const dual& x) { return x; }
  friend constexpr dual operator-(const dual& x) { return x.through(-x.value, T(-1)); }
  friend constexpr dual operator+(const dual& x, const dual& y) {
    return of_two(x, y, x.value + y.value, T(1), T(1));
  }
  friend constexpr dual operator-(const dual& x, const dual& y) {
    return of_two(x, y, x.value - y.value, T(1), T(-1));
  }
  friend constexpr dual operator*(const dual& x, const dual& y) {
    return of_two(x, y, x.value * y.value, y.value, x.value);
  }
  friend constexpr dual operator/(const dual& x, const dual& y) {
    const T quotient = x.value / y.value;
    return of_two(x, y, quotient, T(1) / y.value, -quotient / y.value);
  }
  constexpr dual& operator+=(const dual& y) { return *this = *this + y; }
  constexpr dual& operator-=(const dual& y) { return *this = *this - y; }
  constexpr dual& operator*=(const dual& y) { return *this = *this * y; }
  constexpr dual& operator/=(const dual& y) { return *this = *this / y; }

  friend constexpr bool operator==(const dual& x, const dual& y) { return x.value == y.value; }
  friend constexpr auto operator<=>(const dual& x, const dual& y) { return x.value <=> y.value; }

  // What a function calls unqualified, after `using std::exp` if it is also called with numbers.
  friend constexpr dual exp(const dual& x) {
    const T e = std::exp(x.value);
    return x.through(e, e);
  }
  friend constexpr dual exponential(const dual& x) {
    const T e = base::exponential(x.value);
    return x.through(e, e);
  }
  friend constexpr dual log(const dual& x) { return x.through(std::log(x.value), T(1) / x.value); }
  friend constexpr dual sqrt(const dual& x) {
    const T root = std::sqrt(x.value);
    return x.through(root, T(1) / (T(2) * root));
  }
  friend constexpr dual tanh(const dual& x) {
    const T t = std::tanh(x.value);
    return x.through(t, T(1) - t * t);
  }
  friend constexpr dual sin(const dual& x) { return x.through(std::sin(x.value), std::cos(x.value)); }
  friend constexpr dual cos(const dual& x) { return x.through(std::cos(x.value), -std::sin(x.value)); }
  friend constexpr dual pow(const dual& x, T exponent) {
    return x.through(std::pow(x.value, exponent), exponent * std::pow(x.value, exponent - T(1)));
  }
  friend constexpr dual abs(const dual& x) { return x.value < T(0) ? -x : x; }
  friend constexpr dual max(const dual& x, const dual& y) { return y.value > x.value ? y : x; }
  friend constexpr dual min(const dual& x, const dual& y) { return y.value < x.value ? y : x; }
};

}  // namespace partita::base
