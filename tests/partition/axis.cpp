// SPDX-License-Identifier: Apache-2.0
// Axes, sets of them, and how they nest.
#include "partita/partition/axis.hpp"

#include <doctest/doctest.h>

namespace test_axis {

using namespace partita;

constexpr axis_set none{};
constexpr axis_set row = axis::row, col = axis::col, depth = axis::depth;

// Nesting: rows as row, depth, col; columns as col, depth, row.
static_assert(partition::order_of(nesting::rows) == std::array{axis::row, axis::depth, axis::col});
static_assert(partition::order_of(nesting::cols) == std::array{axis::col, axis::depth, axis::row});

// Sets of axes.
static_assert((row | depth).contains(axis::depth) && !(row | depth).contains(axis::col));
static_assert(partition::every_axis - col == (row | depth) && ((row | col) & (col | depth)) == col);
static_assert(none.empty() && !row.empty() && (row - row).empty());

TEST_CASE("axes: sets are sets of bits") {
  for (unsigned a = 0; a < 8; ++a)
    for (unsigned b = 0; b < 8; ++b) {
      CHECK((axis_set(a) | axis_set(b)) == axis_set(a | b));
      CHECK((axis_set(a) & axis_set(b)) == axis_set(a & b));
      CHECK((axis_set(a) - axis_set(b)) == axis_set(a & ~b));
    }
  for (unsigned bits = 0; bits < 8; ++bits) {
    axis_set members;
    for (const axis a : partition::all_axes)
      if (axis_set(bits).contains(a)) members = members | a;
    CHECK(members == axis_set(bits));
    CHECK(members.empty() == (bits == 0));
  }
}

TEST_CASE("axes: names") {
  CHECK(partition::name_of(partition::every_axis) == "row+col+depth");
  CHECK(partition::name_of(depth | row) == "row+depth");
  CHECK(partition::name_of(none) == "none");
}

}  // namespace test_axis
