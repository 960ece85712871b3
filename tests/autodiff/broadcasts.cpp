// SPDX-License-Identifier: Apache-2.0
// Functions of a matrix and of a number for each row or column, against finite differences.
#include "partita/autodiff/broadcasts.hpp"

#include "partita/autodiff/losses.hpp"
#include "partita/autodiff/products.hpp"
#include "partita/comm/threads.hpp"
#include "partita/nn/layer_norm.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/layers.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_broadcasts {

using namespace partita;
using namespace test_support;

TEST_CASE("gradients of functions of a matrix and a number for each row or column") {
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      const mesh<host> m(world, {ranks, 1, 1});
      auto x = generate<vertex_rows, double>(m, {7, 3}, [](auto i, auto j) { return element(i, j) + 2; });
      auto w = generate<replicated, double>(m, {1, 3}, [](auto i, auto j) { return element(i, j + 3); });
      host_tape t(m);
      const auto h = t.input(x), v = t.parameter(w);
      const auto norms = row_norms(h);                            // (7, 1)
      const auto scaled = scale_rows(gemm(h, transposed(v)), h);  // (7, 3)
      const auto quotients = transform_rows(scaled, norms, [](auto a, auto b) { return a / b + b; });
      const auto y = transform_columns(quotients, v, [](auto a, auto b) { return a * b * b - b; });
      check_tape(t, sum(y * y) + sum(layer_norm(y, v, v) * h), x, h, w, v);
    });
}

TEST_CASE("layer normalisation as a composition is that of the layer") {
  const host_mesh m = alone();
  const auto x = generate<vertex_rows, double>(m, {7, 3}, [](auto i, auto j) { return element(i, j); });
  const host_builder b(m, x.row_blocking());
  nn::layer_norm<double, host> layer(3, b);
  assign(b, 0, {2, 3, 4});
  assign(b, 1, {5, 6, 7});
  rows_matrix expected = b.rows(3);
  layer.forward(x, expected, {});
  host_tape t(m);
  const auto z = t.keep(layer_norm(t.constant(x), t.parameter(b.parameters()->list()[0].value()),
                                   t.parameter(b.parameters()->list()[1].value())));
  t.forward();
  CHECK(largest_difference(collect(t.value(z)), values(expected)) < 1e-14);
}

TEST_CASE("a number for each row or column is refused in another shape or layout") {
  const host_mesh m = alone();
  dense<double, vertex_rows, host> x(m, {4, 3}), r(m, {4, 2});
  dense<double, replicated, host> c(m, {1, 2});
  host_tape t(m);
  const auto h = t.input(x);
  expect_error<shape_error>("4 x 3 needs one number for each row, in its blocks, not 4 x 2",
                            [&] { scale_rows(t.input(r), h); });
  expect_error<shape_error>("4 x 3 needs one number for each column, replicated, not 1 x 2",
                            [&] { transform_columns(h, t.parameter(c), std::plus<>{}); });
}

}  // namespace test_autodiff_broadcasts
