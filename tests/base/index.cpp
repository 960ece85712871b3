// SPDX-License-Identifier: Apache-2.0
// Indices, their ranges, and the narrowing between global and local ones.
#include "partita/base/index.hpp"

#include <doctest/doctest.h>

#include "support/ranks.hpp"

namespace test_index {

using namespace test_support;

TEST_CASE("indices: local ones are checked") {
  CHECK(base::to_local(0, "n") == 0);
  CHECK(base::to_local(2147483647, "n") == 2147483647);
  expect_error<shape_error>("the width is 2147483648, which does not fit in a 32-bit local index",
                            [] { base::to_local(2147483648, "the width"); });
  expect_error<shape_error>("the width is -1", [] { base::to_local(-1, "the width"); });
}

TEST_CASE("indices: intervals meet in what both contain") {
  for (global_index a = 0; a <= 4; ++a)
    for (global_index b = a; b <= 4; ++b)
      for (global_index c = 0; c <= 4; ++c)
        for (global_index d = c; d <= 4; ++d) {
          const interval x{a, b}, y{c, d}, both = intersection(x, y);
          CHECK(both == (both.empty() ? interval{both.begin, both.begin} : intersection(y, x)));
          CHECK(x.empty() == (x.size() == 0));
          for (global_index i = -1; i <= 5; ++i) CHECK(both.contains(i) == (x.contains(i) && y.contains(i)));
        }
}

TEST_CASE("indices: parts of an interval are nearly equal, longer ones first") {
  CHECK(base::part_of({10, 17}, 0, 3) == interval{10, 13});
  CHECK(base::part_of({10, 17}, 1, 3) == interval{13, 15});
  CHECK(base::part_of({10, 17}, 2, 3) == interval{15, 17});
  CHECK(base::part_of({4, 4}, 1, 2).empty());
}

TEST_CASE("indices: four size classes between two powers of two") {
  static_assert(base::size_class(4) == 4 && base::size_class(7) == 7 && base::size_class(8) == 8);
  static_assert(base::size_class(9) == 10 && base::size_class(15) == 16 && base::size_class(1025) == 1280);
}

TEST_CASE("indices: extents") {
  CHECK(to_string(matrix_shape{3, 4}) == "3 x 4");
  CHECK_FALSE(matrix_shape{3, 4} == matrix_shape{4, 3});
}

TEST_CASE("indices: an operand whose memory cannot be had is named") {
  const auto with = [](auto act) { return [=] { base::with_memory_for("a thing", {3, 4}, act); }; };
  CHECK(base::with_memory_for("a thing", {3, 4}, [] { return 7; }) == 7);
  expect_error<error>("a thing of 3 x 4 does not fit into memory", with([] { throw std::bad_alloc(); }));
  expect_error<error>("a thing of 3 x 4 does not fit into memory",
                      with([] { std::vector<double>().reserve(~std::size_t{0}); }));
  expect_error<device_error>("a thing of 3 x 4: no card", with([] { throw device_error("no card"); }));
}

}  // namespace test_index
