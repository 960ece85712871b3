// SPDX-License-Identifier: Apache-2.0
// Layouts: what they are, their names, and what their types refuse.
#include "partita/partition/layout.hpp"

#include "support/matrices.hpp"

namespace test_layout {

using namespace test_support;

constexpr axis_set none{};
constexpr axis_set row = axis::row, col = axis::col, depth = axis::depth;
constexpr layout x_row{row, none}, x_grid{row, col}, x_split{row | depth, col};
static_assert(vertex_rows == layout{row | depth | col, none});
static_assert(replicated == layout{none, none});
static_assert(partition::full_width(x_split) == vertex_rows && partition::full_width(x_row) == x_row);
static_assert(partition::full_width(x_grid) == layout{row | col, none});
static_assert(partition::rows_of(x_split) == layout{row | depth, none});
static_assert(partition::full_width(dynamic_layout) == dynamic_layout &&
              partition::rows_of(dynamic_layout) == dynamic_layout);
static_assert(partition::is_layout(x_grid) && !partition::is_layout({row, row}) &&
              !partition::is_layout(dynamic_layout));

TEST_CASE("layouts: no axis cuts both dimensions, and products with a weight see whole rows") {
  for (const layout l : every_layout()) {
    CHECK(partition::is_layout(l));
    CHECK(partition::full_width(l) == layout{l.used(), none});
    CHECK(partition::rows_of(l) == layout{l.rows, none});
    CHECK(partition::is_layout(partition::full_width(l)));
  }
}

TEST_CASE("layouts: names") {
  CHECK(to_string(replicated) == "rows cut by none, columns by none");
  CHECK(to_string(x_split) == "rows cut by row+depth, columns by col");
}

TEST_CASE("layouts: a type keeps to its own") {
  CHECK(partition::checked_layout(x_grid, layout{axis::row, axis::col}) == x_grid);
  CHECK(partition::checked_layout(x_grid, dynamic_layout) == x_grid);
  expect_error<shape_error>(
      "a matrix whose type has rows cut by row, columns by col cannot have rows cut by row, columns by none",
      [] {
        partition::checked_layout(x_row, layout{axis::row, axis::col});
      });
  expect_error<shape_error>("not both: rows cut by row, columns by row+col", [] {
    partition::checked_layout({row, row | col}, dynamic_layout);
  });
}

}  // namespace test_layout
