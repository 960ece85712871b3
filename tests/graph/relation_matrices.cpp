// SPDX-License-Identifier: Apache-2.0
// Relations of a graph with types of edges: each by itself, stacked, weighted, both ways, on every policy.
#include "partita/graph/relation_matrices.hpp"

#include "partita/algebra/spmm.hpp"
#include "support/matrices.hpp"

namespace test_relation_matrices {

using namespace test_support;
using graph::relation_edges;

constexpr global_index n = 29, relations = 3;

/// About two edges per vertex and type, some of them with the same ends as one of another type or of the
/// same.
io::dataset typed_graph(bool weighted) {
  io::dataset data;
  data.name = "typed", data.vertices = n, data.relations = relations;
  std::vector<io::edge> edges;
  std::vector<std::int64_t> types;
  std::vector<double> weights;
  const auto add = [&](global_index u, global_index v, std::int64_t r) {
    edges.push_back({u, v}), types.push_back(r),
        weights.push_back(1 + static_cast<double>((u + 2 * v + r) % 5));
  };
  for (global_index v = 0; v < n; ++v)
    for (global_index r = 0; r < relations; ++r)
      if ((v + r) % 4 != 0) add((3 * v + r + 1) % n, v, r), add((5 * v + 2) % n, v, r);
  add(1, 2, 0), add(1, 2, 0), add(1, 2, 1);
  data.edges = std::move(edges), data.edge_types = std::move(types);
  if (weighted) data.edge_weights = std::move(weights);
  return data;
}

/// A_r (n x n) row-major, by the definition.
std::vector<double> by_hand(const io::dataset& data, global_index r, bool inverse) {
  std::vector<double> a(n * n, 0), sums(n, 0);
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t e = 0; e < data.edges.size(); ++e) {
      if (data.edge_types[e] != r) continue;
      io::edge ends = data.edges[e];
      if (inverse) std::swap(ends.source, ends.target);
      const double w = data.edge_weights.empty() ? 1 : data.edge_weights[e];
      if (pass == 0) sums[static_cast<std::size_t>(ends.target)] += w;
      if (pass == 1)
        a[static_cast<std::size_t>(ends.target * n + ends.source)] +=
            w / sums[static_cast<std::size_t>(ends.target)];
    }
  return a;
}

auto identity(const host_mesh& m, const blocking& rows, global_index size) {
  return generate<double>(m, vertex_rows, rows, blocking::even(size, m.shape(), nesting::cols),
                          [](auto i, auto j) { return i == j ? 1.0 : 0.0; });
}

TEST_CASE("relations by themselves, above each other and side by side, on every policy") {
  for (const bool weighted : {false, true}) {
    const io::dataset data = typed_graph(weighted);
    on_usual_meshes(std::array{1, 2, 3, 6, 9}, [&](const host_mesh& m, const policy& p) {
      const auto like = distribute(m, p, {n, n}, std::vector<triplet<double>>{});
      const graph::relation_matrices<double, host> a(like, data, relation_edges::both_ways);
      REQUIRE(a.size() == 2 * relations);
      const auto above = collect(spmm(a.above_each_other(), identity(m, like.col_blocking(), n)));
      const auto wide = a.side_by_side();
      const auto beside = collect(spmm(wide, identity(m, wide.col_blocking(), a.size() * n)));
      for (global_index r = 0; r < a.size(); ++r) {
        const auto expected = by_hand(data, r % relations, r >= relations);
        CHECK(largest_difference(collect(spmm(a.relation(r), identity(m, like.col_blocking(), n))),
                                 expected) < 1e-15);
        double off = 0;
        for (global_index v = 0; v < n; ++v)
          for (global_index u = 0; u < n; ++u) {
            const double is = expected[static_cast<std::size_t>(v * n + u)];
            off = std::max(off, std::abs(above[static_cast<std::size_t>((v * a.size() + r) * n + u)] - is));
            off = std::max(
                off, std::abs(beside[static_cast<std::size_t>(v * a.size() * n + u * a.size() + r)] - is));
          }
        CHECK(off < 1e-15);
      }
    });
  }
}

TEST_CASE("data without types is refused by name") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    io::dataset data = typed_graph(false);
    data.relations = 0;
    const auto like = distribute(m, row_1d, {n, n}, std::vector<triplet<double>>{});
    expect_error<input_error>("typed: relations need the type of each edge, edge_type.npy",
                              [&] { graph::relation_matrices<double, host>(like, data); });
  });
}

}  // namespace test_relation_matrices
