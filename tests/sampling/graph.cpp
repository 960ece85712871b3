// SPDX-License-Identifier: Apache-2.0
// The rows that samplers read.
#include "partita/sampling/graph.hpp"

#include "support/samples.hpp"

namespace test_graph_of_samplers {

using namespace test_support;
using sampling::graph;

/// The rows of a graph that this rank has.
global_rows rows_here(const graph<double>& g) {
  global_rows rows;
  for (global_index v = g.row_range().begin; v < g.row_range().end; ++v) {
    const sampling::graph_row row = g.row(v);
    for (local_index i = 0; i < row.count; ++i) {
      const std::size_t e = row.begin + static_cast<std::size_t>(i);
      CHECK((i == 0 || g.columns()[e - 1] < g.columns()[e]));
      CHECK((g.columns()[e] == v) == (i == row.diagonal));
      rows[v][g.columns()[e]] = g.values()[e];
    }
    if (row.diagonal >= 0) CHECK(row.diagonal < row.count);
  }
  return rows;
}

TEST_CASE("each rank has whole rows, with global columns") {
  constexpr global_index n = 53;
  const auto entries = graph_entries(n);
  for (const auto& [p, shape] :
       {std::pair{row_1d, mesh_shape{1, 1, 1}}, std::pair{row_1d, mesh_shape{3, 1, 1}},
        std::pair{row_1d, mesh_shape{8, 1, 1}}, std::pair{feature_row, mesh_shape{2, 3, 1}},
        std::pair{grid_2d, mesh_shape{4, 1, 1}}, std::pair{feature_column, mesh_shape{1, 4, 1}}})
    for (const std::size_t most : {base::max_tile_entries, std::size_t{n}})
      on_threads(shape.size(), [&](const communicator& world) {
        const host_mesh m(world, shape, device_queue<host>(), most);
        const graph<double> g = test_graph(m, p, n);
        const interval range = g.row_range();
        CHECK(g.vertices() == n);
        CHECK(g.is_replicated() == (shape.row == 1));
        CHECK(g.is_weighted() == false);
        std::vector<triplet<double>> expected;
        for (const auto& e : entries)
          if (range.contains(e.row)) expected.push_back(e);
        CHECK(rows_here(g) == by_rows(expected));
        if (g.is_replicated()) {
          CHECK(range == interval{0, n});
        } else {
          CHECK(g.ranks().size() == shape.row);
          for (global_index v = 0; v < n; ++v)
            CHECK(range.contains(v) == (static_cast<int>(g.owner(v)) == g.ranks().rank()));
        }
      });
}

TEST_CASE("matrices whose rows are not whole, or that are not square, are refused") {
  on_mesh({1, 2, 1}, [](const host_mesh& m) {
    expect_error<shape_error>("must be whole on each rank", [&] { test_graph(m, grid_2d, 10); });
    expect_error<shape_error>("3 x 4", [&] {
      graph<double>(distribute(m, feature_column, {3, 4}, std::vector<triplet<double>>{}));
    });
  });
}

TEST_CASE("weights have the pattern of A and are positive") {
  const host_mesh m(self::world(), {1, 1, 1});
  const auto of = [&](const std::vector<triplet<double>>& entries, global_index n = 4) {
    return distribute(m, row_1d, {n, n}, entries);
  };
  const auto a = of({{0, 1, -1.}, {2, 0, 3.}, {2, 3, 3.}});
  const graph<double> g(a, of({{0, 1, 1.}, {2, 0, 2.}, {2, 3, 4.}}));
  CHECK(g.is_weighted());
  CHECK(g.weights() == std::vector<double>{1, 2, 4});
  CHECK(g.values() == std::vector<double>{-1, 3, 3});
  expect_error<error>("entry (0, 1) is not positive", [&] { graph<double>(a, a); });
  expect_error<shape_error>("row 2 of the weights has not A's number of entries", [&] {
    graph<double>(a, of({{0, 1, 1.}, {2, 0, 2.}}));
  });
  expect_error<shape_error>("row 2 of the weights has column 2 where A has 3", [&] {
    graph<double>(a, of({{0, 1, 1.}, {2, 0, 2.}, {2, 2, 2.}}));
  });
  expect_error<shape_error>("0 to 5 of 5 on this rank, A has 0 to 4 of 4",
                            [&] { graph<double>(a, of({}, 5)); });
}

}  // namespace test_graph_of_samplers
