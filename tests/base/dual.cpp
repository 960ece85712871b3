// SPDX-License-Identifier: Apache-2.0
// Dual numbers against finite differences and derivatives by hand.
#include "partita/base/dual.hpp"

#include <doctest/doctest.h>

namespace test_dual {

using partita::base::dual;

/// A function of generic arithmetic with every operation.
struct everything {
  template <class S>
  S operator()(const S& x, const S& y) const {
    using std::abs, std::cos, std::exp, std::log, std::max, std::min, std::pow, std::sin, std::sqrt,
        std::tanh, partita::base::exponential;
    S z = x * exp(-y) + exponential(x - y) / 3 + log(x) / (2 + y) - sqrt(x + 1) * tanh(y);
    z += sin(x) * cos(y);
    z -= 3 * abs(y - x);
    z *= max(x, y) - min(x, S(0.25));
    z /= +(pow(x, 2.5) + 1.f);
    return x > y ? z : S(0) - z;
  }
};

TEST_CASE("dual numbers: partial derivatives are those of central differences") {
  const everything f;
  const double h = 1e-6;
  for (const auto& [x, y] : {std::pair{0.7, 1.9}, {1.9, 0.7}, {0.1, 0.3}, {2.5, 2.0}}) {
    using number = dual<double, 2>;
    const number z = f(number::input(x, 0), number::input(y, 1));
    CHECK(z.value == f(x, y));
    CHECK(z.slope[0] == doctest::Approx((f(x + h, y) - f(x - h, y)) / (2 * h)).epsilon(1e-8));
    CHECK(z.slope[1] == doctest::Approx((f(x, y + h) - f(x, y - h)) / (2 * h)).epsilon(1e-8));
  }
}

TEST_CASE("dual numbers: constants of any type have no slope") {
  constexpr dual<float, 1> x = dual<float, 1>::input(3, 0);
  constexpr dual<float, 1> y = (2 * x + 1L - 4u) / 2.0;
  static_assert(y.value == 1.5f);
  static_assert(y.slope[0] == 1);
  constexpr dual<float, 1> chosen = x > 5 ? x : 0;
  static_assert(chosen.value == 0);
  static_assert(chosen.slope[0] == 0);
  CHECK(x == 3);
  CHECK(x >= 2.5);
}

}  // namespace test_dual
