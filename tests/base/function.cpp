// SPDX-License-Identifier: Apache-2.0
// Functions of single entries.
#include "partita/base/function.hpp"

#include <cmath>
#include <cstdint>
#include <doctest/doctest.h>
#include <initializer_list>
#include <limits>

namespace test_function {

using namespace partita;

static_assert(base::scaled<double>{2}(3) == 6);
static_assert(base::linear_combination<int>{2, -3}(5, 7) == -11);
static_assert(std::is_trivially_copyable_v<base::linear_combination<float>>);

TEST_CASE_TEMPLATE("functions: the positive part", T, float, double) {
  CHECK(base::positive_part{}(T(2)) == 2);
  CHECK(base::positive_part{}(T(-2)) == 0);
  CHECK_FALSE(std::signbit(base::positive_part{}(T(-0.0))));
  CHECK(base::positive_part{}(std::numeric_limits<T>::quiet_NaN()) == 0);
}

TEST_CASE_TEMPLATE("functions: the larger of two", T, float, double) {
  CHECK(base::larger_of{}(T(2), T(3)) == 3);
  CHECK(base::larger_of{}(T(3), T(2)) == 3);
  CHECK(base::larger_of{}(T(-1), -std::numeric_limits<T>::infinity()) == -1);
  CHECK(base::larger_of{}(std::uint8_t{7}, std::uint8_t{200}) == 200);
}

TEST_CASE_TEMPLATE("functions: neither order hides that one of two is NaN", T, float, double) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const T other : {T(1), std::numeric_limits<T>::infinity(), nan}) {
    CHECK(std::isnan(base::larger_of{}(nan, other)));
    CHECK(std::isnan(base::larger_of{}(other, nan)));
  }
}

}  // namespace test_function
