// SPDX-License-Identifier: Apache-2.0
// Rows of edges reach the entries of a pattern, on every policy and mesh.
#include "partita/graph/edge_features.hpp"

#include "support/edge_matrices.hpp"

namespace test_edge_features {

using namespace test_support;
using graph::repeated_edges;

constexpr matrix_shape shape{31, 31};

/// The edges of sparse_entries, and, `repeated`, the first of them again.
io::dataset data_of(local_index k, bool repeated) {
  io::dataset data;
  data.name = "graph";
  data.vertices = shape.rows;
  std::vector<double> rows;
  const auto add = [&](const auto& e) {
    data.edges.push_back({e.col, e.row});
    for (local_index j = 0; j < k; ++j) rows.push_back(edge_entry(e.row, e.col, j));
  };
  const auto entries = sparse_entries(shape, 4);
  for (const auto& e : entries) add(e);
  if (repeated) add(entries.front());
  data.edge_features = io::feature_table(static_cast<global_index>(data.edges.size()), k, std::move(rows));
  return data;
}

/// The edges and a loop at every vertex, as entries.
std::vector<triplet<double>> with_loops() {
  auto entries = sparse_entries(shape, 4);
  for (global_index v = 0; v < shape.rows; ++v) entries.push_back({v, v, 1});
  return entries;
}

TEST_CASE("features of a dataset's edges, with repeated ones summed and zeros on added loops") {
  const auto there = sparse_entries(shape, 4);
  const auto is_edge = [&](auto v, auto u) {
    return std::any_of(there.begin(), there.end(), [&](const auto& e) { return e.row == v && e.col == u; });
  };
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index k, row_exchange) {
    const auto a = distribute(m, p.sparse, shape, share(with_loops(), m));
    const auto e = graph::edge_features(a, data_of(k, true), repeated_edges::summed);
    CHECK(e.heads() == k);
    CHECK(
        largest_error(e, [&](auto v, auto u, auto h) {
          const double times = !is_edge(v, u) ? 0 : v == there.front().row && u == there.front().col ? 2 : 1;
          return times * edge_entry(v, u, h);
        }) == 0);
  });
}

TEST_CASE("rows in memory, each on one rank") {
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index k, row_exchange) {
    const auto a = distribute(m, p.sparse, shape, share(sparse_entries(shape, 4), m));
    std::vector<io::edge> edges;
    std::vector<double> rows;
    for (const auto& e : share(sparse_entries(shape, 4), m)) {
      edges.push_back({e.col, e.row});
      for (local_index j = 0; j < k; ++j) rows.push_back(edge_entry(e.row, e.col, j));
    }
    const auto e = graph::edge_features(a, edges, rows, k);
    CHECK(largest_error(e, edge_entry) == 0);
  });
}

TEST_CASE("what does not fit is refused by name") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    const auto a = distribute(m, row_1d, shape, sparse_entries(shape, 4));
    const auto edge = sparse_entries(shape, 4).front();
    const std::vector<io::edge> edges{{edge.col, edge.row}, {4, 3}};
    const std::vector<double> rows{1, 2};
    expect_error<error>("comes more than once; repeated_edges::summed",
                        [&] { graph::edge_features(a, data_of(2, true)); });
    expect_error<error>("rows of edges: A has no entry at (3, 4)",
                        [&] { graph::edge_features(a, edges, rows, 1); });
    expect_error<shape_error>("rows of 2 features for 2 edges cannot be made of 2 values",
                              [&] { graph::edge_features(a, edges, rows, 2); });
    io::dataset without = data_of(2, false);
    without.edge_features = {};
    expect_error<shape_error>("edges have features of shape 0 x 0",
                              [&] { graph::edge_features(a, without); });
  });
}

}  // namespace test_edge_features
