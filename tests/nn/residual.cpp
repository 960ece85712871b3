// SPDX-License-Identifier: Apache-2.0
// Residual layers by hand.
#include "partita/nn/residual.hpp"

#include "partita/nn/linear.hpp"
#include "support/layers.hpp"

namespace test_residual {

using namespace test_support;

using matrix = rows_matrix;

TEST_CASE("a residual dense layer, by hand") {
  const auto m = alone();
  const matrix h = from(m, {1, 2}, {1, 2}), dz = from(m, {1, 2}, {1, 1});
  const host_builder b(m, h.row_blocking());
  nn::residual layer(nn::linear(2, 2, b));
  assign(b, 0, {1, 2, 3, 4});
  assign(b, 1, {10, 20});
  matrix z(m, h.shape()), dh(m, h.shape());
  layer.forward(h, z, {});
  CHECK(values(z) == std::vector<double>{18, 32});
  layer.backward(h, dz, &dh);
  CHECK(values(dh) == std::vector<double>{4, 8});
  CHECK(collect(b.parameters()->gradients()) == std::vector<double>{1, 1, 2, 2, 1, 1});
}

TEST_CASE("a residual layer that changes the width is refused") {
  matrix three(alone(), {4, 3}), two(alone(), {4, 2});
  const host_builder b(alone(), three.row_blocking());
  nn::residual layer(nn::linear(3, 2, b));
  expect_error<shape_error>("a residual layer needs equal input and output widths, not 3 and 2",
                            [&] { layer.forward(three, two, {}); });
}

}  // namespace test_residual
