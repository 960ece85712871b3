// SPDX-License-Identifier: Apache-2.0
// Max convolutions and chains of layers: by hand, by finite differences, at any number of ranks.

#include "partita/compiled/host.hpp"
#include "partita/nn/conv/sage_max.hpp"
#include "partita/nn/layer_norm.hpp"
#include "partita/nn/residual.hpp"
#include "support/datasets.hpp"
#include "support/layers.hpp"
#include "support/runs.hpp"

namespace test_conv {

using namespace test_support;

using matrix = rows_matrix;

using convolution = nn::sage_max_conv<double, host>;

/// The edges, of which every rank has a share, as sage_max takes them.
sparse<double, dynamic_layout, host> edges_of(const mesh<host>& m, const policy& p, global_index n,
                                              const std::vector<triplet<double>>& edges) {
  return distribute(m, partition::rows_of(p.sparse), {n, n}, share(edges, m), symmetry::one_way);
}

/// Edges to 0 from 1, 2 and 3, to 2 from 0 and 1; vertices 1 and 3 have no in-neighbours.
sparse<double, dynamic_layout, host> four_vertices(const mesh<host>& m) {
  return edges_of(m, row_1d, 4, {{0, 3, 9.}, {0, 1, -1.}, {2, 1, 1.}, {0, 2, 1.}, {2, 0, 1.}});
}
const std::vector<double> four_features{1, -5, 2, -4, -1, -3, 2, -9};

TEST_CASE("max convolution of four vertices, by hand") {
  const auto m = alone();
  const host_builder b(m, blocking::even(4, m.shape(), nesting::rows));
  b.filled("something before", {1, 1});
  convolution layer(four_vertices(m), 2, 1, b);
  assign(b, 1, {1, 10});
  assign(b, 2, {0.5});
  assign(b, 3, {100, 1000});
  const matrix h = from(m, {4, 2}, four_features), dz = from(m, {4, 1}, {1, 2, 3, 4});
  matrix z(m, {4, 1}), dh(m, {4, 2});
  layer.forward(h, z, {});
  CHECK(values(z) == std::vector<double>{-4927.5, -3799.5, -3137.5, -8799.5});
  layer.backward(h, dz, &dh);
  CHECK(collect(b.parameters()->gradients()) ==
        std::vector<double>{0, 2 + 3 * 2, -3 + 3 * -4, 10, 1 + 4 - 3 + 8, -5 - 8 - 9 - 36});
  CHECK(values(dh) == std::vector<double>{100, 1000, 204, 2030, 300, 3010, 400, 4000});
}

TEST_CASE("gradients on a directed graph agree with finite differences, on every policy") {
  constexpr global_index n = 19;
  const auto edges = sparse_entries({n, n}, 4);
  on_each_mesh(std::array{4, 6}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto graph = edges_of(m, policy, n, edges);
    matrix h = generate<vertex_rows, double>(m, {n, 3}, field(0));
    const host_builder of_convolution = in_the_middle(h), of_residual = in_the_middle(h),
                       of_chain = in_the_middle(h);
    check_gradients(of_convolution, convolution(graph, 3, 2, of_convolution), h);
    check_gradients(of_residual, nn::residual(convolution(graph, 3, 3, of_residual)), h);
    nn::sequential net(of_chain);
    net.add(nn::linear(3, 4, of_chain)).add(nn::elu{}).add(nn::identity{}).add(nn::layer_norm(4, of_chain));
    net.add(nn::residual(convolution(graph, 4, 4, of_chain))).add(nn::elu{});
    check_gradients(of_chain, std::move(net), h);
  });
}

TEST_CASE("a matrix and the same matrix in compressed rows are the same input") {
  constexpr global_index n = 19;
  const auto edges = sparse_entries({n, n}, 4);
  on_each_mesh(std::array{1, 6}, [&](const host_mesh& m, const partita::policy& policy) {
    const auto graph = edges_of(m, policy, n, edges);
    const matrix h = generate<vertex_rows, double>(
        m, {n, 4}, [](auto i, auto j) { return (i + j) % 3 == 0 ? element(i, j) : 0; });
    const host_builder of_convolution(m, h.row_blocking()), of_residual(m, h.row_blocking());
    check_sparse_input(of_convolution, convolution(graph, 4, 2, of_convolution), h);
    check_sparse_input(of_residual, nn::residual(convolution(graph, 4, 4, of_residual)), h);
  });
}

TEST_CASE("sage with max aggregation trains as one rank does, on every policy and mesh") {
  const io::dataset d = directed_graph();
  for (double dropout : {0.5, 0.0}) {
    nn::training_options o{.model = "sage",
                           .aggregation = nn::aggregation::max,
                           .hidden = {7},
                           .epochs = 6,
                           .dropout = dropout,
                           .seed = 42};
    const auto expected = nn::train_model<double>(alone(), d, o, row_1d);
    CHECK(expected.epochs.back().loss < expected.epochs.front().loss);
    on_each_mesh(std::array{1, 4, 6, 9}, [&](const host_mesh& m, const partita::policy& policy) {
      std::vector<std::uint64_t> allocations;
      const auto r = nn::train_model<double>(m, d, o, policy, [&](const nn::epoch_report&) {
        allocations.push_back(m.queue().meter()->allocations());
      });
      CHECK(allocations[1] == allocations.back());
      check_run(r, expected, 1e-9, where(policy, m.shape()));
    });
    o.aggregation = nn::aggregation::mean;
    const auto mean = nn::train_model<double>(alone(), d, o, row_1d);
    CHECK(mean.epochs.back().loss != expected.epochs.back().loss);
  }
}

TEST_CASE("forms that models do not have are errors of one sentence") {
  const auto m = alone();
  nn::training_options o;
  o.aggregation = nn::aggregation::max;
  const auto train = [&] { (void)nn::train_model<double>(m, directed_graph(), o, row_1d); };
  expect_error<error>("model gcn has no max aggregation", train);
  o.model = "sage";
  o.coupling = nn::coupling::decoupled;
  expect_error<error>("model sage has no decoupled form with max aggregation", train);
}

}  // namespace test_conv
