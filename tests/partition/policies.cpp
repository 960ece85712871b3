// SPDX-License-Identifier: Apache-2.0
// Policies, against the tables of the design.
#include "partita/partition/policies.hpp"

#include "support/matrices.hpp"

namespace test_policies {

using namespace test_support;

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
      for (axis a : partition::all_axes) fits = fits && (m[a] == 1 || p.used().contains(a));
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
  expect_error<shape_error>("col and depth only its columns; the layout is rows cut by row+col", [] {
    require_mesh({"mine", {row | col, none}, {row | col, none}}, {2, 2, 1}, 4);
  });
  expect_error<shape_error>("policy mine: A with rows cut by row, columns by col and X with rows cut by row",
                            [] {
                              require_mesh({"mine", {row, col}, {row, none}}, {2, 2, 1}, 4);
                            });
  expect_error<mesh_error>("at least one rank, not 0", [] { require_mesh(grid_2d, {1, 1, 1}, 0); });
  expect_error<mesh_error>("mesh -1x-1x1 has an axis of size less than 1", [] {
    require_mesh(grid_2d, {-1, -1, 1}, 1);
  });
}

TEST_CASE("policies: every mesh that they allow, and which of them do the same there") {
  using partition::meshes_of, partition::same_policy;
  using meshes = std::vector<mesh_shape>;
  CHECK(meshes_of(row_1d, 4) == meshes{{4, 1, 1}});
  CHECK(meshes_of(grid_2d, 4) == meshes{{4, 1, 1}, {2, 2, 1}, {1, 4, 1}});
  CHECK(meshes_of(split_3d, 4) == meshes{{4, 1, 1}, {2, 2, 1}, {1, 4, 1}, {2, 1, 2}, {1, 2, 2}, {1, 1, 4}});
  CHECK(same_policy(grid_2d, {4, 1, 1}) == "row_1d");
  CHECK(same_policy(grid_2d, {2, 2, 1}).empty());
  CHECK(same_policy(split_3d, {2, 2, 1}) == "grid_2d");
  CHECK(same_policy(row_1d, {4, 1, 1}).empty());
  CHECK(same_policy(split_3d, {2, 2, 1}, std::array{row_1d, split_3d}).empty());
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
      "unknown policy 'grid'; known policies: row_1d, replicated_1_5d, grid_2d, "
      "split_3d, feature_column, feature_row",
      [] { find_policy("grid"); });
}

}  // namespace test_policies
