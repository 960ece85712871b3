// SPDX-License-Identifier: Apache-2.0
// Rows of CSR tiles and what they hold.
#include "partita/matrix/tiles.hpp"

#include <doctest/doctest.h>

#include "support/tiles.hpp"

namespace test_tiles {

using namespace partita;
using namespace test_support;

TEST_CASE("tiles hold the entries, duplicates added up") {
  entries_of_tiles expected;
  for (const auto& e : given_to_tiles) expected[{e.row - rows_of_tiles.begin, e.col}] += e.value;
  const auto a = small_tiles(device_queue<host>());
  CHECK(a.widths == std::vector<local_index>{4, 0, 5, 2});
  CHECK(a.nonzeros == expected.size());
  CHECK(entries_of(a, {0, 4, 4, 9}) == expected);
}

}  // namespace test_tiles
