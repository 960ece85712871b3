// SPDX-License-Identifier: Apache-2.0
// Exponentials without branches against those of the standard library.
#include "partita/base/exponential.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <limits>

namespace test_exponential {

using namespace partita;

/// How many units in the last place of `wanted` lie between them.
template <class T>
double units(T found, long double wanted) {
  const T near = static_cast<T>(std::abs(wanted));
  const T unit = std::nextafter(near, std::numeric_limits<T>::infinity()) - near;
  return static_cast<double>(std::abs(found - wanted) / unit);
}

TEST_CASE_TEMPLATE("exp(x) - 1 is right to two units in the last place, near 0 too", T, float, double) {
  double worst = 0;
  const auto look = [&](T x) {
    worst = std::max(worst, units(base::exponential_less_one(x), std::expm1l(x)));
  };
  for (int k = 0; k < 200000; ++k) {
    look(static_cast<T>(-20 + k * 2e-4));
    look(static_cast<T>(std::ldexp(1 + k * 5e-6, -1 - k % 60)));
    look(-static_cast<T>(std::ldexp(1 + k * 5e-6, -1 - k % 60)));
  }
  for (const T x : {T(80), T(88.7), T(-40), T(-87), T(-1e30), std::numeric_limits<T>::min()}) look(x);
  CHECK(worst <= 2);
}

TEST_CASE_TEMPLATE("exp(x) - 1 of what is infinite, not a number, or 0", T, float, double) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  CHECK(base::exponential_less_one(infinity) == infinity);
  CHECK(base::exponential_less_one(std::log(std::numeric_limits<T>::max()) + 1) == infinity);
  CHECK(base::exponential_less_one(-infinity) == -1);
  CHECK(std::isnan(base::exponential_less_one(std::numeric_limits<T>::quiet_NaN())));
  static_assert(base::exponential_less_one(T(0)) == 0);
}

TEST_CASE_TEMPLATE("exp(x) is right to two units in the last place, and 0 or infinite beyond", T, float,
                   double) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  const T most = std::is_same_v<T, float> ? T(86.8) : T(707.9);
  double worst = 0;
  for (int k = -100000; k <= 100000; ++k) {
    const T x = most * static_cast<T>(k) / 100000;
    worst = std::max(worst, units(base::exponential(x), std::exp(static_cast<long double>(x))));
  }
  CHECK(worst <= 2);
  CHECK(base::exponential(-most - 1) < 2 * std::numeric_limits<T>::min());
  CHECK(base::exponential(-infinity) == 0);
  CHECK(base::exponential(infinity) == infinity);
  CHECK(std::isnan(base::exponential(std::numeric_limits<T>::quiet_NaN())));
  static_assert(base::exponential(T(0)) == 1);
}

TEST_CASE_TEMPLATE("positive numbers stay as they are", T, float, double) {
  static_assert(base::exponential_linear(T(1e30)) == T(1e30) && base::exponential_linear(T(0)) == 0);
  CHECK(base::exponential_linear(T(-0.5)) == base::exponential_less_one(T(-0.5)));
  CHECK(std::isnan(base::exponential_linear(std::numeric_limits<T>::quiet_NaN())));
}

}  // namespace test_exponential
