// SPDX-License-Identifier: Apache-2.0
// Relational convolutions: by the definition, in every order, by finite differences, with words as predicted,
// and with the same bits on any number of ranks.
#include "partita/nn/conv/rgcn.hpp"

#include <set>

#include "partita/algebra/reproducible.hpp"
#include "partita/compiled/host.hpp"
#include "partita/graph/features.hpp"
#include "support/layers.hpp"
#include "support/typed_vertices.hpp"

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

/// x_u W, with the rows of W (f x out) that u's type has, or the row of u where the type has no features.
std::vector<double> projected(const typed_vertices& types, global_index u, std::span<const double> w) {
  const auto [first, columns] = u < types.authors                  ? std::pair(0, 2)
                                : u < types.authors + types.papers ? std::pair(2, 3)
                                                                   : std::pair(0, 0);
  std::vector<double> sum(out, 0);
  const global_index look_up = 5 + u - types.authors - types.papers;
  for (global_index c = 0; c < out; ++c) {
    if (columns == 0) sum[c] = w[static_cast<std::size_t>(look_up * out + c)];
    for (global_index j = first; j < first + columns; ++j)
      sum[c] += static_cast<double>(types.feature(u, j)) * w[static_cast<std::size_t>(j * out + c)];
  }
  return sum;
}

TEST_CASE("blocks of features are a projection for each type, and an embedding where it has no features") {
  const typed_vertices types;
  const io::dataset data = types.graph();
  const auto block = static_cast<std::size_t>(data.features * out);
  for (const auto& [ranks, p] : {std::pair(1, row_1d), std::pair(3, row_1d), std::pair(4, grid_2d)})
    for (const relation_order order : {relation_order::aggregate_first, relation_order::transform_first})
      with_mesh(default_mesh(p, ranks), [&](const host_mesh& m) {
        const auto a = relations_of(m, p, data);
        const blocking& rows = a.like().row_blocking();
        const host_builder b(m, rows, {.seed = 5, .sparse_input = true});
        auto layer = nn::rgcn_conv(a, data.features, out, b, {}, order);
        const auto h = graph::sparse_features_of<double>(m, data, true, rows, graph::vertices_here(m, rows));
        rows_matrix z = b.rows(out);
        layer.forward(h, z, {});
        const std::vector<double> parameters = collect(b.parameters()->values());  // Wself, W, b
        const auto weights = [&](std::size_t k) { return std::span(parameters).subspan(k * block, block); };
        std::vector<double> expected;
        for (global_index v = 0; v < n; ++v)
          for (const double x : projected(types, v, weights(0))) expected.push_back(x);
        std::vector<double> in_edges(relations * n, 0);
        const auto count = [&](std::size_t e) -> double& {
          return in_edges[static_cast<std::size_t>(data.edge_types[e] * n + data.edges[e].target)];
        };
        for (std::size_t e = 0; e < data.edges.size(); ++e) ++count(e);
        for (std::size_t e = 0; e < data.edges.size(); ++e) {
          const auto message = projected(types, data.edges[e].source,
                                         weights(static_cast<std::size_t>(1 + data.edge_types[e])));
          for (std::size_t c = 0; c < out; ++c)
            expected[static_cast<std::size_t>(data.edges[e].target * out) + c] += message[c] / count(e);
        }
        CHECK(largest_difference(collect(z), expected) < 1e-14);
      });
}

/// Rows of H that are another rank's and that this one reads under relation r, or under any (-1).
global_index needed(const host_mesh& m, const io::dataset& data, global_index r) {
  const interval mine = blocking::even(n, m.shape(), nesting::rows).block(partition::every_axis, m.at());
  std::set<global_index> found;
  for (std::size_t e = 0; e < data.edges.size(); ++e)
    if ((r < 0 || data.edge_types[e] == r) && mine.contains(data.edges[e].target) &&
        !mine.contains(data.edges[e].source))
      found.insert(data.edges[e].source);
  return std::ssize(found);
}

TEST_CASE("by rows, H travels once for all relations, and H W_r once for each") {
  const io::dataset data = typed_graph();
  for (const int ranks : {2, 3, 4, 5, 7, 8, 11, 13, 16})
    on_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
      const auto a = relations_of(m, row_1d, data);
      const host_builder b(m, a.like().row_blocking());
      CHECK(nn::relation_words(a, relation_order::aggregate_first, in, out, b) == 0);  // H is constant
      b.filled("before", {1, 1});
      const interval mine = a.like().row_range();
      const global_index others = m.world().all_reduce(n - mine.size(), reduction::max);
      const auto received = [&](const auto& matrix, global_index width) {
        const spmm_plan<double, host> plan(matrix, vertex_rows, b.columns(width));
        return m.world().all_reduce(plan.predicted().words, reduction::max);
      };
      const global_index of_all = std::min(m.world().all_reduce(needed(m, data, -1), reduction::max), others);
      CHECK(received(a.above_each_other(), in) == of_all * in);
      global_index of_each = 0;
      for (global_index r = 0; r < relations; ++r) of_each += needed(m, data, r);
      of_each = m.world().all_reduce(of_each, reduction::max);
      CHECK(received(a.side_by_side(), out) == std::min(of_each, relations * others) * out);
    });
}

TEST_CASE("every rank receives what is predicted, and the order chosen is never above another") {
  const io::dataset data = typed_graph();
  const nn::relation_weights how{.bases = 2};
  for (int ranks = 2; ranks <= 16; ++ranks)
    for (const policy& p : named_policies)
      on_mesh(default_mesh(p, ranks), [&](const host_mesh& m) {
        const auto a = relations_of(m, p, data);
        const rows_matrix h = generate<vertex_rows, double>(m, {n, in}, field(0));
        rows_matrix dh(m, h.row_blocking(), h.col_blocking());
        const host_builder b = in_the_middle(h);
        const relation_order cheapest = nn::cheapest_order(a, in, out, b, how);
        for (const relation_order order : every_order) {
          CHECK(nn::relation_words(a, cheapest, in, out, b, how) <=
                nn::relation_words(a, order, in, out, b, how));
          auto layer = nn::rgcn_conv(a, in, out, b, how, order);
          rows_matrix z = b.rows(out);
          m.ledger().clear();
          layer.forward(h, z, {});
          layer.backward(h, z, &dh);
          CHECK(m.ledger().total() == layer.predicted());
        }
      });
}

TEST_CASE("a reproducible mesh gives the same bits with any number of ranks") {
  const io::dataset data = typed_graph();
  for (const nn::relation_weights& how : {nn::relation_weights{}, {.bases = 2}, {.blocks = 2}}) {
    std::vector<double> expected;
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 9})
      for (const policy& p : {row_1d, grid_2d})
        on_threads(ranks, [&](const communicator& world) {
          const device_queue<host> queue;
          const host_mesh m(world, default_mesh(p, ranks), reproducible(queue));
          const auto a = relations_of(m, p, data);
          const rows_matrix h = generate<vertex_rows, double>(m, {n, in}, field(0));
          rows_matrix dh(m, h.row_blocking(), h.col_blocking());
          const host_builder b = in_the_middle(h);
          auto layer = nn::rgcn_conv(a, in, out, b, how);
          rows_matrix z = b.rows(out);
          layer.forward(h, z, {});
          layer.backward(h, z, &dh);
          b.parameters()->sum_gradients();
          std::vector<double> found = collect(z);
          for (const auto& more : {collect(dh), collect(b.parameters()->gradients())})
            found.insert(found.end(), more.begin(), more.end());
          if (world.rank() != 0) return;
          if (expected.empty()) expected = found;
          CHECK(found == expected);
        });
  }
}

}  // namespace test_rgcn
