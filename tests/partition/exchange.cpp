// SPDX-License-Identifier: Apache-2.0
// What ranks exchange to obtain other blocks: groups, kinds and sizes on small examples.
#include "partita/partition/exchange.hpp"

#include <doctest/doctest.h>

namespace test_exchange {

using namespace partita;
using namespace partita::partition;

constexpr mesh_shape grid{2, 3, 1};
route between(const block_layout& from, const block_layout& to) {
  return route_of_blocks(
      grid, from.axes.used(), [&](coordinates q) { return from.block(q); },
      [&](coordinates q) { return to.block(q); });
}

TEST_CASE("placements have blocks") {
  const block_layout p = evenly({7, 5}, grid, {axis::row, axis::col});
  CHECK(p.shape() == matrix_shape{7, 5});
  CHECK(p.block({1, 2, 0}) == rectangle{{4, 7}, {4, 5}});
  CHECK(intersection(p.block({0, 0, 0}), rectangle{{3, 6}, {1, 9}}) == rectangle{{3, 4}, {1, 2}});
  CHECK(same_blocks(grid, {axis::row, {}}, {axis::row | axis::depth, {}}));
  CHECK_FALSE(same_blocks(grid, {axis::row, {}}, {axis::row | axis::col, {}}));
}

TEST_CASE("routes between blocks have the fewest axes") {
  const matrix_shape shape{12, 12};
  const auto on = [&](layout l) { return evenly(shape, grid, l); };
  const layout cells{axis::row, axis::col};
  CHECK(between(on(cells), on(cells)) == route{});
  CHECK(between(on({}), on(cells)) == route{});
  CHECK(between(on(cells), on({axis::row, {}})) == route{movement::all_gather, axis::col});
  CHECK(between(on(cells), on({})) == route{movement::all_gather, axis::row | axis::col});
  CHECK(between(on(cells), on({axis::row | axis::col, {}})) == route{movement::all_to_all, axis::col});
  CHECK(between(on(cells), on({axis::col, axis::row})) == route{movement::all_to_all, axis::row | axis::col});
  block_layout shifted = on({axis::row, {}});
  shifted.rows = blocking::given({5, 7}, grid, nesting::rows);
  CHECK(between(on({axis::row, {}}), shifted) == route{movement::all_to_all, axis::row});
  const block_layout one_row = evenly({1, 12}, grid, {axis::row, {}});
  CHECK(between(one_row, evenly({1, 12}, grid, {})) == route{movement::all_gather, axis::row});
}

TEST_CASE("stages bring parts, and whole rows need no packing") {
  const block_layout from = evenly({12, 6}, grid, {axis::row, axis::col});
  const auto old_block = [&](coordinates q) { return from.block(q); };
  const auto rows = [](coordinates q, global_index s) {
    return rectangle{base::part_of({6 * q.row, 6 * q.row + 6}, s, 2), {0, 6}};
  };
  const route along_col{movement::all_gather, axis::col};
  const exchange by_rows(grid, along_col, {1, 2, 0}, old_block, rows, 2);
  REQUIRE(by_rows.stages.size() == 2);
  CHECK(by_rows.stages[1].block == rectangle{{9, 12}, {0, 6}});
  CHECK(by_rows.stages[1].send[0] == rectangle{{9, 12}, {4, 6}});
  CHECK(by_rows.stages[1].recv[1] == rectangle{{9, 12}, {2, 4}});
  CHECK(by_rows.largest.packed == 0);     // whole rows of what the rank owns
  CHECK(by_rows.largest.incoming == 18);  // 3 x 6
  CHECK(by_rows.largest.unpacked == 18);  // columns side by side
  CHECK(buffered(by_rows.largest, 2) == 2 * 18 + 18);

  const auto cols = [](coordinates q, global_index s) {
    return rectangle{{0, 12}, base::part_of({2 * q.col, 2 * q.col + 2}, s, 2)};
  };
  const exchange by_cols(grid, {movement::all_gather, axis::row}, {0, 1, 0}, old_block, cols, 2);
  CHECK(by_cols.largest.packed == 6);     // one of two columns
  CHECK(by_cols.largest.incoming == 12);  // 12 x 1
  CHECK(by_cols.largest.unpacked == 0);   // rows one after the other
  CHECK_FALSE(exchange(grid, {}, {0, 0, 0}, old_block, cols, 2).travels());
}

}  // namespace test_exchange
