// SPDX-License-Identifier: Apache-2.0
// Losses of variables, weighted sums of them, and losses of one's own.
#include "partita/autodiff/losses.hpp"

#include "partita/autodiff/products.hpp"
#include "partita/comm/threads.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_losses {

using namespace partita;
using namespace test_support;

TEST_CASE("gradients of a weighted sum of losses") {
  for (const int ranks : {1, 4})
    on_threads(ranks, [&](const communicator& world) {
      const mesh<host> m(world, {ranks, 1, 1});
      auto x = generate<vertex_rows, double>(m, {9, 3}, [](auto i, auto j) { return element(i, j); });
      auto w = generate<replicated, double>(m, {3, 4}, [](auto i, auto j) { return element(i, j + 3); });
      const auto targets =
          generate<vertex_rows, double>(m, {9, 4}, [](auto i, auto) { return double(i % 2); });
      const algebra::vertex_labels<host> labels(m, x.row_blocking(), [](auto v) { return v % 5 - 1; });
      host_tape t(m);
      const auto h = t.input(x), v = t.parameter(w);
      const auto z = gemm(h, v);
      const auto logistic = loss(
          z, [&](const auto& of, auto& d) { return algebra::logistic_loss(of, targets, 9, d); },
          algebra::predicted_sum<double>(m, 1));
      const auto all = cross_entropy(z, labels) + 0.5 * logistic + 2 * sum(z);
      check_tape(t, all, x, h, w, v);
    });
}

TEST_CASE("a loss is one of whole rows") {
  on_threads(2, [&](const communicator& world) {
    const mesh<host> m(world, {1, 2, 1});
    dense<double, layout{{}, axis::col}, host> x(m, {4, 3});
    host_tape t(m);
    expect_error<shape_error>("redistribute it to vertex_rows", [&] { sum(t.input(x)); });
  });
}

}  // namespace test_autodiff_losses
