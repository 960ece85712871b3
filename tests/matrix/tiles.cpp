// SPDX-License-Identifier: Apache-2.0
// Rows of CSR tiles and what they hold.
#include "partita/matrix/tiles.hpp"

#include <doctest/doctest.h>

#include "support/tiles.hpp"

namespace test_tiles {

using namespace partita;
using namespace test_support;

TEST_CASE("counted tiles have as many entries in each row as in the others, whatever part of them is taken") {
  device_queue<host> q;
  local::tile_shape shape{10, {3, 5}, 70, {}, {20, 50}, {}};
  const local::csr_tiles<double, host> counted(q, shape, {});
  CHECK(counted.is_counted());
  for (const auto& [tile, entries] : {std::pair{0, 20}, {1, 50}})
    for (const auto& part : counted.parts(static_cast<std::size_t>(tile))) {
      CHECK(part.entries.entries == entries);
      for (const local_index begin : {0, 4, 7}) {
        const auto rows = part.between(begin, begin + 3);
        CHECK(rows.entries.entries == -1);
        CHECK(rows.entries.offsets[3] - rows.entries.offsets[0] == 3 * entries / 10);
      }
    }
  shape.rows = 0, shape.nonzeros = 0, shape.entries_of_parts = {0, 0};
  CHECK(shape.even_offsets() == std::vector<local_index>{0, 0});
}

TEST_CASE("tiles hold the entries, duplicates added up") {
  entries_of_tiles expected;
  for (const auto& e : given_to_tiles) expected[{e.row - rows_of_tiles.begin, e.col}] += e.value;
  const auto a = small_tiles(device_queue<host>());
  CHECK(a.widths == std::vector<local_index>{4, 0, 5, 2});
  CHECK(a.nonzeros == expected.size());
  CHECK(entries_of(a, {0, 4, 4, 9}) == expected);
}

}  // namespace test_tiles
