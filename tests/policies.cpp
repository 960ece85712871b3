// Layouts, policies and routes, against the tables of the design.
#include "partita/partition/policies.hpp"

#include <array>
#include <doctest/doctest.h>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/partition/route.hpp"
#include "support/matrices.hpp"

namespace test_policies {

using namespace partita;
using test_support::every_cut;
using test_support::every_small_mesh;
using test_support::expect_error;

namespace {

constexpr axis_set none{};
constexpr axis_set row = axis::row, col = axis::col, depth = axis::depth;

// Section 1 of the design: the policies, and along which axes of theirs each operand is copied.
template <class Policy>
constexpr bool is_policy(axis_set used, cut a, axis_set a_copies, cut x, axis_set x_copies) {
  const cut sparse = Policy::sparse_layout::value, dense = Policy::dense_layout::value;
  return Policy::used == used && sparse == a && dense == x && used - sparse.used() == a_copies &&
         used - dense.used() == x_copies;
}
static_assert(is_policy<row_1d>(row, {row, none}, none, {row, none}, none));
static_assert(is_policy<replicated_1_5d>(row | depth, {row, depth}, none, {row, none}, depth));
static_assert(is_policy<grid_2d>(row | col, {row, col}, none, {row, col}, none));
static_assert(is_policy<split_3d>(row | col | depth, {row, col | depth}, none, {row | depth, col}, none));
static_assert(is_policy<feature_column>(col, {none, none}, col, {none, col}, none));
static_assert(is_policy<feature_row>(row | col, {row, none}, col, {row, col}, none));
static_assert(vertex_rows::value == cut{row | depth | col, none});
static_assert(replicated::value == cut{none, none});

// Nesting: rows as row, depth, col; columns as col, depth, row.
static_assert(order_of(nesting::rows) == std::array{axis::row, axis::depth, axis::col});
static_assert(order_of(nesting::cols) == std::array{axis::col, axis::depth, axis::row});
static_assert(nests_as<axes<axis::row, axis::col>>(nesting::rows));
static_assert(!nests_as<axes<axis::col, axis::row>>(nesting::rows));
static_assert(!nests_as<axes<axis::row, axis::row>>(nesting::rows));
static_assert(nests_as<axes<axis::col, axis::row>>(nesting::cols));
static_assert(!nests_as<axes<axis::row, axis::col>>(nesting::cols));
static_assert(!nests_as<axes<axis::depth, axis::col>>(nesting::cols));

using row_layout = layout<axes<axis::row>, axes<>>;
using grid_layout = layout<axes<axis::row>, axes<axis::col>>;
using split_layout = layout<axes<axis::row, axis::depth>, axes<axis::col>>;
using column_layout = layout<axes<>, axes<axis::col>>;
static_assert(std::is_empty_v<split_layout>);
static_assert(std::is_same_v<layout_of<cut{row | depth, col}>, split_layout>);
static_assert(std::is_same_v<layout_of<cut{every_axis, none}>, vertex_rows>);
static_assert(std::is_same_v<layout_of<cut{none, every_axis}>,
                             layout<axes<>, axes<axis::col, axis::depth, axis::row>>>);
static_assert(std::is_same_v<layout_of<cut{none, none}>, replicated>);
static_assert(std::is_same_v<full_width<split_layout>, vertex_rows>);
static_assert(std::is_same_v<full_width<grid_layout>, layout<axes<axis::row, axis::col>, axes<>>>);
static_assert(std::is_same_v<full_width<row_layout>, row_layout>);

// Sets of axes.
static_assert((row | depth).contains(axis::depth) && !(row | depth).contains(axis::col));
static_assert(every_axis - col == (row | depth) && ((row | col) & (col | depth)) == col);
static_assert(none.empty() && !row.empty() && (row - row).empty());

// Routes that have names elsewhere.
constexpr route between(cut from, cut to) { return route_between(from, to); }
constexpr cut x_row = row_layout::value, x_grid = grid_layout::value, x_split = split_layout::value,
              x_column = column_layout::value, x_vertex = vertex_rows::value, x_all = replicated::value;
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
// The same axis under another nesting is another cut.
static_assert(between({depth, none}, {row | depth, none}) == route{movement::all_to_all, depth});
static_assert(between({row | depth, none}, {row, none}) == route{movement::all_gather, depth});
static_assert(between({row | depth, none}, {depth, none}) == route{movement::all_to_all, row | depth});

/// Of 27: where each axis goes, as a number in base 3.
constexpr cut cut_number(std::size_t i) {
  cut c;
  for (axis a : all_axes) {
    if (i % 3 == 1) c.rows = c.rows | a;
    if (i % 3 == 2) c.cols = c.cols | a;
    i /= 3;
  }
  return c;
}
template <cut C>
constexpr bool round_trips = layout_of<C>::value == C;
template <std::size_t... I>
void check_types(std::index_sequence<I...>) {
  static_assert((round_trips<cut_number(I)> && ...));
}

}  // namespace

TEST_CASE("layouts: every cut has one type") {
  const auto cuts = every_cut();
  CHECK(cuts.size() == 27);
  for (cut from : cuts) {
    CHECK(route_between(from, from) == route{movement::slice, none});
    CHECK(route_between({none, none}, from) == route{movement::slice, none});
    const route gather = route_between(from, {none, none});
    CHECK(gather.group == from.used());
    CHECK(gather.kind == (from.used().empty() ? movement::slice : movement::all_gather));
  }
  check_types(std::make_index_sequence<27>{});
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
    CHECK(default_mesh<row_1d>(ranks) == mesh_shape{ranks, 1, 1});
    CHECK(default_mesh<replicated_1_5d>(ranks) == mesh_shape{grid[0], 1, grid[1]});
    CHECK(default_mesh<grid_2d>(ranks) == mesh_shape{grid[0], grid[1], 1});
    CHECK(default_mesh<split_3d>(ranks) == mesh_shape{split[0], split[1], split[2]});
    CHECK(default_mesh<feature_column>(ranks) == mesh_shape{1, ranks, 1});
    CHECK(default_mesh<feature_row>(ranks) == mesh_shape{grid[0], grid[1], 1});
    for_each_policy([r = ranks]<class Policy>(Policy) { require_mesh<Policy>(default_mesh<Policy>(r), r); });
  }
  CHECK(default_mesh<replicated_1_5d>(12, 3) == mesh_shape{4, 1, 3});
  CHECK(default_mesh<replicated_1_5d>(12, 12) == mesh_shape{1, 1, 12});
  CHECK(default_mesh<split_3d>(12, 3) == mesh_shape{2, 2, 3});
  CHECK(default_mesh<row_1d>(6, 1) == mesh_shape{6, 1, 1});

  expect_error<mesh_error>("at least one rank, not 0", [] { default_mesh<grid_2d>(0); });
  expect_error<mesh_error>("at least one rank, not -4", [] { default_mesh<grid_2d>(-4); });
  expect_error<mesh_error>("replication 5 does not divide 12 ranks", [] { default_mesh<split_3d>(12, 5); });
  expect_error<mesh_error>("replication 0 does not divide 12 ranks", [] { default_mesh<split_3d>(12, 0); });
  expect_error<mesh_error>("replication -2 does not divide 12", [] { default_mesh<split_3d>(12, -2); });
  expect_error<mesh_error>("policy row_1d has no mesh of 6 ranks with replication 2",
                           [] { default_mesh<row_1d>(6, 2); });
}

TEST_CASE("policies: a mesh fills its ranks and uses no other axis") {
  for (const mesh_shape m : every_small_mesh())
    for_each_policy([&]<class Policy>(Policy) {
      CAPTURE(Policy::name);
      bool fits = true;
      for (axis a : all_axes) fits = fits && (m[a] == 1 || Policy::used.contains(a));
      if (fits)
        CHECK_NOTHROW(require_mesh<Policy>(m, m.size()));
      else
        CHECK_THROWS_AS(require_mesh<Policy>(m, m.size()), mesh_error);
      CHECK_THROWS_AS(require_mesh<Policy>(m, m.size() + 1), mesh_error);
    });
  expect_error<mesh_error>("mesh 2x2x1 has 4 places for 6 ranks", [] {
    require_mesh<grid_2d>({2, 2, 1}, 6);
  });
  expect_error<mesh_error>("policy row_1d does not use the col axis of mesh 2x3x1", [] {
    require_mesh<row_1d>({2, 3, 1}, 6);
  });
  expect_error<mesh_error>("policy grid_2d does not use the depth axis of mesh 1x1x2", [] {
    require_mesh<grid_2d>({1, 1, 2}, 2);
  });
  expect_error<mesh_error>("at least one rank, not 0", [] { require_mesh<grid_2d>({1, 1, 1}, 0); });
  expect_error<mesh_error>("mesh -1x-1x1 has an axis without ranks", [] {
    require_mesh<grid_2d>({-1, -1, 1}, 1);
  });
}

TEST_CASE("policies: by name") {
  std::vector<std::string> names;
  for_each_policy([&]<class Policy>(Policy) {
    names.push_back(Policy::name);
    std::string visited;
    visit_policy(Policy::name, [&]<class P>(P) { visited += std::is_same_v<P, Policy> ? "right" : "wrong"; });
    CHECK(visited == "right");
  });
  CHECK(names == std::vector<std::string>{"row_1d", "replicated_1_5d", "grid_2d", "split_3d",
                                          "feature_column", "feature_row"});
  expect_error<mesh_error>(
      "there is no policy 'grid'; the policies are row_1d, replicated_1_5d, grid_2d, "
      "split_3d, feature_column, feature_row",
      [] { visit_policy("grid", [](auto) {}); });
}

}  // namespace test_policies
