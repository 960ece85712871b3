// SPDX-License-Identifier: Apache-2.0
// Relational convolutions: by the definition, in every order, by finite differences, with words as predicted,
// and with the same bits on any number of ranks.
#include "partita/nn/conv/rgcn.hpp"

#include <set>

#include "partita/compiled/host.hpp"
#include "support/layers.hpp"

namespace test_rgcn {

using namespace test_support;
using nn::relation_order;

constexpr global_index n = 23, relations = 3, in = 4, out = 6;
constexpr std::array every_order{relation_order::aggregate_first, relation_order::transform_first,
                                 relation_order::transform_with_bases};

io::dataset typed_graph() {
  io::dataset data;
  data.name = "typed", data.vertices = n, data.relations = relations;
  std::vector<io::edge> edges;
  std::vector<std::int64_t> types;
  for (global_index v = 0; v < n; ++v)
    for (global_index r = 0; r < relations; ++r)
      for (global_index k = 0; k < (v + 2 * r) % 4; ++k)
        edges.push_back({(7 * v + 3 * k + r) % n, v}), types.push_back(r);
  data.edges = std::move(edges), data.edge_types = std::move(types);
  return data;
}

graph::relation_matrices<double, host> relations_of(const host_mesh& m, const policy& p,
                                                    const io::dataset& data) {
  return {distribute(m, p, {n, n}, std::vector<triplet<double>>{}), data};
}

TEST_CASE("every order gives the same, with gradients, on every policy") {
  const io::dataset data = typed_graph();
  for (const nn::relation_weights& how : {nn::relation_weights{}, {.bases = 2}, {.blocks = 2}})
    on_usual_meshes(std::array{1, 6}, [&](const host_mesh& m, const policy& p) {
      const auto a = relations_of(m, p, data);
      std::vector<double> first;
      for (const relation_order order : every_order) {
        if (order == relation_order::transform_with_bases && how.bases == 0) continue;
        rows_matrix h = generate<vertex_rows, double>(m, {n, in}, field(0));
        const host_builder b = in_the_middle(h);
        auto layer = nn::rgcn_conv(a, in, out, b, how, order);
        rows_matrix z = b.rows(out);
        layer.forward(h, z, {});
        const auto found = collect(z);
        if (first.empty()) first = found;
        CHECK(largest_difference(found, first) < 1e-14);
        if (m.size() == 1 || order == relation_order::aggregate_first || p.name == "grid_2d")
          check_gradients(b, std::move(layer), h);
      }
    });
}

/// Rows of X that ranks other than their owner read under relation r, and under any (-1), the most of a rank.
global_index most_needed(const host_mesh& m, const io::dataset& data, global_index r, bool backward) {
  const blocking rows = blocking::even(n, m.shape(), nesting::rows);
  const interval mine = rows.block(partition::every_axis, m.at());
  std::set<global_index> needed;
  for (std::size_t e = 0; e < data.edges.size(); ++e) {
    const auto [source, target] = data.edges[e];
    const global_index reads = backward ? source : target, from = backward ? target : source;
    if ((r < 0 || data.edge_types[e] == r) && mine.contains(reads) && !mine.contains(from)) needed.insert(from);
  }
  return m.world().all_reduce(std::ssize(needed), reduction::max);
}

TEST_CASE("by rows, what travels of H travels once for all relations; of H W_r, once for each") {
  const io::dataset data = typed_graph();
  for (const int ranks : {2, 3, 4, 5, 7, 8, 11, 13, 16})
    with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
      const auto a = relations_of(m, row_1d, data);
      const host_builder b(m, a.like().row_blocking());
      CHECK(nn::relation_words(a, relation_order::aggregate_first, in, out, b) == 0);  // H is constant
      b.filled("before", {1, 1});
      const auto words = [&](const auto& plan) { return plan.predicted().words; };
      const auto of = [&](const auto& matrix, global_index width) {
        return words(spmm_plan<double, host>(matrix, vertex_rows, b.columns(width)));
      };
      const auto union_rows = most_needed(m, data, -1, false);
      const auto above = a.above_each_other();
      CHECK(m.world().all_reduce(of(above, in), reduction::max) <= union_rows * in);
      const auto every = nn::relation_words(a, nn::cheapest_order(a, in, out, b, {}), in, out, b);
      for (const relation_order order : {relation_order::aggregate_first, relation_order::transform_first})
        CHECK(every <= nn::relation_words(a, order, in, out, b));
    });
}

}  // namespace test_rgcn
