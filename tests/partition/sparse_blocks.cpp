// SPDX-License-Identifier: Apache-2.0
// The columns of a sparse matrix's tiles: every column is in one.
#include "partita/partition/sparse_blocks.hpp"

#include "support/matrices.hpp"

namespace test_sparse_blocks {

using namespace test_support;
using partition::column_cut, partition::require_sparse, partition::tile_columns;

constexpr axis_set row = axis::row, col = axis::col, depth = axis::depth, none{};

static_assert(column_cut(layout{row, none}) == row);
static_assert(column_cut(layout{row, depth | col}) == partition::every_axis);

TEST_CASE("a rank has a tile for each part of the rows along row, and every column is in one tile") {
  const mesh_shape shape{3, 2, 2};
  const blocking cols = blocking::even(23, shape, nesting::cols);
  for (const layout l : {layout{row, col}, layout{row, col | depth}, layout{none, col}, layout{row, none}}) {
    std::vector<int> owners(23);
    for (int r = 0; r < shape.size(); ++r) {
      const coordinates at = shape.at(r);
      const std::vector<interval> tiles = tile_columns(l, cols, at);
      REQUIRE(tiles.size() == (l.rows.contains(axis::row) ? 3 : 1));
      bool counts = at.row == 0;  // once, where ranks have the same columns
      for (const axis a : {axis::col, axis::depth})
        counts = counts && (at[a] == 0 || column_cut(l).contains(a));
      for (std::size_t t = 0; t < tiles.size(); ++t) {
        CHECK(tiles[t] == tile_columns(l, cols, at, t));
        for (global_index j = tiles[t].begin; counts && j < tiles[t].end; ++j)
          ++owners[static_cast<std::size_t>(j)];
      }
    }
    CHECK(owners == std::vector<int>(23, 1));
  }
}

TEST_CASE("blockings of another mesh are refused") {
  const mesh_shape shape{2, 3, 1};
  const blocking ours = blocking::even(9, shape, nesting::rows);
  const blocking others = blocking::even(9, {3, 2, 1}, nesting::rows);
  require_sparse(shape, layout{row, col}, ours, ours);
  CHECK_THROWS_WITH_AS(require_sparse(shape, layout{row, col}, ours, others),
                       "blockings of mesh 3x2x1 given to a sparse matrix on mesh 2x3x1", shape_error);
  CHECK_THROWS_AS(require_sparse(shape, layout{col, row}, ours, ours), shape_error);
}

}  // namespace test_sparse_blocks
