// SPDX-License-Identifier: Apache-2.0
// References to callables.
#include "partita/base/function_reference.hpp"

#include <doctest/doctest.h>

namespace test_function_reference {

using partita::base::function_reference;

int twice(function_reference<void(int)> f) {
  f(1);
  f(2);
  return 2;
}

TEST_CASE("function references: call what they refer to") {
  int sum = 0;
  const auto add = [&](int x) { sum += x; };
  const function_reference<void(int)> first = add, copy = first;
  CHECK(twice(copy) == 2);
  CHECK(twice([&](int x) { sum += 10 * x; }) == 2);
  CHECK(sum == 33);
}

}  // namespace test_function_reference
