// SPDX-License-Identifier: Apache-2.0
// Routes, against the tables of the design.
#include "partita/partition/route.hpp"

#include "support/matrices.hpp"

namespace test_route {

using namespace test_support;

constexpr axis_set none{};
constexpr axis_set row = axis::row, col = axis::col, depth = axis::depth;
constexpr layout x_row{row, none}, x_grid{row, col}, x_split{row | depth, col}, x_column{none, col},
    x_vertex = vertex_rows, x_all = replicated;

// Routes that have names elsewhere.
constexpr partition::route between(layout from, layout to) { return partition::route_between(from, to); }
static_assert(between(x_row, x_row) == partition::route{partition::movement::slice, none});
static_assert(between(x_all, x_vertex) == partition::route{partition::movement::slice, none});
static_assert(between(x_all, x_grid) == partition::route{partition::movement::slice, none});
static_assert(between(x_row, x_grid) == partition::route{partition::movement::slice, none});
static_assert(between(x_row, x_vertex) == partition::route{partition::movement::slice, none});
static_assert(between(x_vertex, x_all) ==
              partition::route{partition::movement::all_gather, partition::every_axis});
static_assert(between(x_row, x_all) == partition::route{partition::movement::all_gather, row});
static_assert(between(x_grid, x_row) == partition::route{partition::movement::all_gather, col});
static_assert(between(x_vertex, x_row) == partition::route{partition::movement::all_gather, depth | col});
static_assert(between(x_split, x_row) == partition::route{partition::movement::all_gather, depth | col});
static_assert(between(x_column, x_all) == partition::route{partition::movement::all_gather, col});
static_assert(between(x_grid, x_vertex) == partition::route{partition::movement::all_to_all, col});
static_assert(between(x_vertex, x_grid) == partition::route{partition::movement::all_to_all, depth | col});
static_assert(between(x_split, x_vertex) == partition::route{partition::movement::all_to_all, col});
static_assert(between(x_vertex, x_split) == partition::route{partition::movement::all_to_all, col});
static_assert(between(x_column, x_vertex) == partition::route{partition::movement::all_to_all, col});
static_assert(between(x_row, {none, row}) == partition::route{partition::movement::all_to_all, row});
static_assert(between({none, row}, x_row) == partition::route{partition::movement::all_to_all, row});
// The same axis under another nesting is another layout.
static_assert(between({depth, none}, {row | depth, none}) ==
              partition::route{partition::movement::all_to_all, depth});
static_assert(between({row | depth, none}, {row, none}) ==
              partition::route{partition::movement::all_gather, depth});
static_assert(between({row | depth, none}, {depth, none}) ==
              partition::route{partition::movement::all_to_all, row | depth});

TEST_CASE("routes: from every layout to itself, and to and from replicas") {
  const auto layouts = every_layout();
  CHECK(layouts.size() == 27);
  for (const layout from : layouts) {
    CHECK(partition::route_between(from, from) == partition::route{partition::movement::slice, none});
    CHECK(partition::route_between({none, none}, from) == partition::route{partition::movement::slice, none});
    const partition::route gather = partition::route_between(from, {none, none});
    CHECK(gather.group == from.used());
    CHECK(gather.kind ==
          (from.used().empty() ? partition::movement::slice : partition::movement::all_gather));
  }
}

}  // namespace test_route
