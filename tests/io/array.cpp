// SPDX-License-Identifier: Apache-2.0
#include "partita/io/array.hpp"

#include <doctest/doctest.h>

namespace test_io_array {

using partita::io::array;

std::size_t forgotten = 0;

void forget(const void*, std::size_t bytes) { forgotten += bytes; }

/// As a mapped file would be.
std::shared_ptr<const int> three() {
  static constexpr int values[] = {4, 5, 6};
  return {values, [](const int*) {}};
}

TEST_CASE("array: of a vector") {
  const array<int> none, values = std::vector<int>{1, 2, 3};
  CHECK(none.empty());
  CHECK(none.begin() == none.end());
  CHECK_FALSE(values.is_mapped());
  CHECK(values.size() == 3);
  CHECK(values[2] == 3);
  CHECK(values == array<int>{1, 2, 3});
  CHECK_FALSE(values == array<int>{1, 2});
  CHECK_FALSE(values == array<int>{1, 2, 4});
  array<int> copy = values;
  copy.edit()[0] = 7;
  copy.push_back(8);
  CHECK(copy == array<int>{7, 2, 3, 8});
  CHECK(values == array<int>{1, 2, 3});
  values.forget();
  CHECK(values[0] == 1);
}

TEST_CASE("array: of values elsewhere, which copies share until they are edited") {
  const array<int> values(three(), 3, forget);
  CHECK(values.is_mapped());
  CHECK(values == array<int>{4, 5, 6});
  const std::span<const int> seen = values;
  CHECK(seen.data() == values.data());
  CHECK(seen.size() == 3);
  array<int> copy = values;
  CHECK(copy.data() == values.data());
  copy.edit()[1] = 0;
  CHECK_FALSE(copy.is_mapped());
  CHECK(copy == array<int>{4, 0, 6});
  CHECK(values == array<int>{4, 5, 6});
  copy.edit()[1] = 1;
  CHECK(copy == array<int>{4, 1, 6});
  copy.forget();
  CHECK(forgotten == 0);
  values.forget();
  CHECK(forgotten == 3 * sizeof(int));
  array<int>(three(), 3).forget();
  CHECK(forgotten == 3 * sizeof(int));
}

}  // namespace test_io_array
