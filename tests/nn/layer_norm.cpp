// SPDX-License-Identifier: Apache-2.0
// Layer normalisation by hand; its gradients are in nn/sequential.cpp too.
#include "partita/nn/layer_norm.hpp"

#include "support/layers.hpp"

namespace test_layer_norm {

using namespace test_support;

using matrix = rows_matrix;

TEST_CASE("a layer norm of two rows, by hand") {
  const auto m = alone();
  const matrix h = from(m, {2, 2}, {1, 3, 4, 4}), dz = from(m, {2, 2}, {1, 0, 0, 1});
  const host_builder b(m, h.row_blocking());
  nn::layer_norm layer(2, b);
  CHECK(collect(b.parameters()->values()) == std::vector<double>{1, 1, 0, 0});
  assign(b, 0, {2, 3});
  assign(b, 1, {0.5, -1});
  matrix z(m, h.shape()), dh(m, h.shape());
  layer.forward(h, z, {});
  const double r = 1 / std::sqrt(1 + 1e-5), r0 = 1 / std::sqrt(1e-5);
  CHECK(largest_difference(values(z), {0.5 - 2 * r, 3 * r - 1, 0.5, -1}) < 1e-15);
  layer.backward(h, dz, &dh);
  CHECK(largest_difference(collect(b.parameters()->gradients()), {-r, 0, 1, 1}) < 1e-15);
  CHECK(largest_difference(values(dh), {r * (1 - r * r), r * (r * r - 1), -1.5 * r0, 1.5 * r0}) < 1e-12);
}

TEST_CASE("gradients of a layer norm agree with finite differences, and a sparse input is like a dense one") {
  for_each_mesh(std::array{1, 6}, [](auto, mesh_shape shape) {
    on_mesh(shape, [&](const host_mesh& m) {
      matrix h = generate<vertex_rows, double>(m, {19, 3}, field(0));
      const host_builder b = in_the_middle(h);
      nn::layer_norm layer(3, b);
      assign(b, 1, {0.5, -2, 3});
      check_gradients(b, std::move(layer), h);
      const matrix few = generate<vertex_rows, double>(
          m, {19, 4}, [](auto i, auto j) { return (i + j) % 3 == 0 ? element(i, j) : 0; });
      const host_builder of_few(m, few.row_blocking());
      check_sparse_input(of_few, nn::layer_norm(4, of_few), few);
    });
  });
}

}  // namespace test_layer_norm
