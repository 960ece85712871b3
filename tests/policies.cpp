// Layouts, policies and routes, against the tables of the design.
#include "partita/partition/policies.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "partita/partition/route.hpp"
#include "support/matrices.hpp"

namespace test_policies {

using namespace partita;
using test_support::every_layout;
using test_support::every_small_mesh;
using test_support::expect_error;

namespace {

constexpr axis_set none{};
constexpr axis_set row = axis::row, col = axis::col, depth = axis::depth;

// Section 1 of the design: the policies, and along which axes of theirs each operand is copied.
constexpr bool is_policy(const policy& p, axis_set used, layout a, axis_set a_copies, layout x,
                         axis_set x_copies) {
  return p.used() == used && p.sparse == a && p.dense == x && used - p.sparse.used() == a_copies &&
         used - p.dense.used() == x_copies;
}
static_assert(is_policy(row_1d, row, {row, none}, none, {row, none}, none));
static_assert(is_policy(replicated_1_5d, row | depth, {row, depth}, none, {row, none}, depth));
static_assert(is_policy(grid_2d, row | col, {row, col}, none, {row, col}, none));
static_assert(is_policy(split_3d, row | col | depth, {row, col | depth}, none, {row | depth, col}, none));
static_assert(is_policy(feature_column, col, {none, none}, col, {none, col}, none));
static_assert(is_policy(feature_row, row | col, {row, none}, col, {row, col}, none));
static_assert(vertex_rows == layout{row | depth | col, none});
static_assert(replicated == layout{none, none});

// Nesting: rows as row, depth, col; columns as col, depth, row.
static_assert(order_of(nesting::rows) == std::array{axis::row, axis::depth, axis::col});
static_assert(order_of(nesting::cols) == std::array{axis::col, axis::depth, axis::row});

// Layouts.
constexpr layout x_row{row, none}, x_grid{row, col}, x_split{row | depth, col}, x_column{none, col},
    x_vertex = vertex_rows, x_all = replicated;
static_assert(full_width(x_split) == vertex_rows && full_width(x_row) == x_row);
static_assert(full_width(x_grid) == layout{row | col, none});
static_assert(rows_of(x_split) == layout{row | depth, none});
static_assert(full_width(dynamic_layout) == dynamic_layout && rows_of(dynamic_layout) == dynamic_layout);
static_assert(is_layout(x_grid) && !is_layout({row, row}) && !is_layout(dynamic_layout));

// Sets of axes.
static_assert((row | depth).contains(axis::depth) && !(row | depth).contains(axis::col));
static_assert(every_axis - col == (row | depth) && ((row | col) & (col | depth)) == col);
static_assert(none.empty() && !row.empty() && (row - row).empty());

// Routes that have names elsewhere.
constexpr route between(layout from, layout to) { return route_between(from, to); }
static_assert(between(x_row, x_row) == route{movement::slice, none});
static_assert(between(x_all, x_vertex) == route{movement::slice, none});
static_assert(between(x_all, x_grid) == route{movement::slice, none});
static_assert(between(x_row, x_grid) == route{movement::slice, none});
static_assert(between(x_row, x_vertex) == route{movement::slice, none});
static_assert(between(x_vertex, x_all) == route{movement::all_gather, every_axis});
static_assert(between(x_row, x_all) == route{movement::all_gather, row});
static_assert(between(x_grid, x_row) == route{movement::all_gather, col});
static_assert(between(x_vertex, x_row) == route{movement::all_gather, depth | col});
static_assert(between(x_split, x_row) == route{movement::all_gather, depth | col});
static_assert(between(x_column, x_all) == route{movement::all_gather, col});
static_assert(between(x_grid, x_vertex) == route{movement::all_to_all, col});
static_assert(between(x_vertex, x_grid) == route{movement::all_to_all, depth | col});
static_assert(between(x_split, x_vertex) == route{movement::all_to_all, col});
static_assert(between(x_vertex, x_split) == route{movement::all_to_all, col});
static_assert(between(x_column, x_vertex) == route{movement::all_to_all, col});
static_assert(between(x_row, {none, row}) == route{movement::all_to_all, row});
static_assert(between({none, row}, x_row) == route{movement::all_to_all, row});
// The same axis under another nesting is another layout.
static_assert(between({depth, none}, {row | depth, none}) == route{movement::all_to_all, depth});
static_assert(between({row | depth, none}, {row, none}) == route{movement::all_gather, depth});
static_assert(between({row | depth, none}, {depth, none}) == route{movement::all_to_all, row | depth});

}  // namespace

TEST_CASE("routes: from every layout to itself, and to and from replicas") {
  const auto layouts = every_layout();
  CHECK(layouts.size() == 27);
  for (const layout from : layouts) {
    CHECK(route_between(from, from) == route{movement::slice, none});
    CHECK(route_between({none, none}, from) == route{movement::slice, none});
    const route gather = route_between(from, {none, none});
    CHECK(gather.group == from.used());
    CHECK(gather.kind == (from.used().empty() ? movement::slice : movement::all_gather));
  }
}

TEST_CASE("policies: the default mesh is the nearest to a square or a cube") {
  struct line {
    int ranks;
    int grid[2];
    int split[3];
  };
  const line lines[] = {
      {1, {1, 1}, {1, 1, 1}},  {2, {2, 1}, {2, 1, 1}},  {3, {3, 1}, {3, 1, 1}}, {4, {2, 2}, {2, 2, 1}},
      {6, {3, 2}, {3, 2, 1}},  {8, {4, 2}, {2, 2, 2}},  {9, {3, 3}, {3, 3, 1}}, {12, {4, 3}, {3, 2, 2}},
      {16, {4, 4}, {4, 2, 2}}, {27, {9, 3}, {3, 3, 3}},
  };
  CHECK(std::size(lines) == test_support::rank_counts.size());
  for (const auto& [ranks, grid, split] : lines) {
    CAPTURE(ranks);
    CHECK(default_mesh(row_1d, ranks) == mesh_shape{ranks, 1, 1});
    CHECK(default_mesh(replicated_1_5d, ranks) == mesh_shape{grid[0], 1, grid[1]});
    CHECK(default_mesh(grid_2d, ranks) == mesh_shape{grid[0], grid[1], 1});
    CHECK(default_mesh(split_3d, ranks) == mesh_shape{split[0], split[1], split[2]});
    CHECK(default_mesh(feature_column, ranks) == mesh_shape{1, ranks, 1});
    CHECK(default_mesh(feature_row, ranks) == mesh_shape{grid[0], grid[1], 1});
    for (const policy& p : named_policies) require_mesh(p, default_mesh(p, ranks), ranks);
  }
  CHECK(default_mesh(replicated_1_5d, 12, 3) == mesh_shape{4, 1, 3});
  CHECK(default_mesh(replicated_1_5d, 12, 12) == mesh_shape{1, 1, 12});
  CHECK(default_mesh(split_3d, 12, 3) == mesh_shape{2, 2, 3});
  CHECK(default_mesh(row_1d, 6, 1) == mesh_shape{6, 1, 1});

  expect_error<mesh_error>("at least one rank, not 0", [] { default_mesh(grid_2d, 0); });
  expect_error<mesh_error>("at least one rank, not -4", [] { default_mesh(grid_2d, -4); });
  expect_error<mesh_error>("replication 5 does not divide 12 ranks", [] { default_mesh(split_3d, 12, 5); });
  expect_error<mesh_error>("replication 0 does not divide 12 ranks", [] { default_mesh(split_3d, 12, 0); });
  expect_error<mesh_error>("replication -2 does not divide 12", [] { default_mesh(split_3d, 12, -2); });
  expect_error<mesh_error>("policy row_1d has no mesh of 6 ranks with replication 2",
                           [] { default_mesh(row_1d, 6, 2); });
}

TEST_CASE("policies: a mesh fills its ranks and uses no other axis") {
  for (const mesh_shape m : every_small_mesh())
    for (const policy& p : named_policies) {
      CAPTURE(std::string(p.name));
      bool fits = true;
      for (axis a : all_axes) fits = fits && (m[a] == 1 || p.used().contains(a));
      if (fits)
        CHECK_NOTHROW(require_mesh(p, m, m.size()));
      else
        CHECK_THROWS_AS(require_mesh(p, m, m.size()), mesh_error);
      CHECK_THROWS_AS(require_mesh(p, m, m.size() + 1), mesh_error);
    }
  expect_error<mesh_error>("mesh 2x2x1 has 4 places for 6 ranks", [] {
    require_mesh(grid_2d, {2, 2, 1}, 6);
  });
  expect_error<mesh_error>("policy row_1d does not use the col axis of mesh 2x3x1", [] {
    require_mesh(row_1d, {2, 3, 1}, 6);
  });
  expect_error<mesh_error>("policy grid_2d does not use the depth axis of mesh 1x1x2", [] {
    require_mesh(grid_2d, {1, 1, 2}, 2);
  });
  expect_error<mesh_error>("at least one rank, not 0", [] { require_mesh(grid_2d, {1, 1, 1}, 0); });
  expect_error<mesh_error>("mesh -1x-1x1 has an axis without ranks", [] {
    require_mesh(grid_2d, {-1, -1, 1}, 1);
  });
}

TEST_CASE("policies: by name") {
  std::vector<std::string> names;
  for (const policy& p : named_policies) {
    names.emplace_back(p.name);
    CHECK(&find_policy(p.name) == &p);
  }
  CHECK(names == std::vector<std::string>{"row_1d", "replicated_1_5d", "grid_2d", "split_3d",
                                          "feature_column", "feature_row"});
  expect_error<mesh_error>(
      "there is no policy 'grid'; the policies are row_1d, replicated_1_5d, grid_2d, "
      "split_3d, feature_column, feature_row",
      [] { find_policy("grid"); });
}

}  // namespace test_policies
