// SPDX-License-Identifier: Apache-2.0
// Element-wise verbs on variables against finite differences.
#include "partita/autodiff/elementwise.hpp"

#include "partita/autodiff/losses.hpp"
#include "partita/autodiff/products.hpp"
#include "partita/comm/threads.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_elementwise {

using namespace partita;
using namespace test_support;

TEST_CASE("gradients of element-wise verbs") {
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      const mesh<host> m(world, {ranks, 1, 1});
      auto x = generate<vertex_rows, double>(m, {5, 3}, [](auto i, auto j) { return element(i, j); });
      auto b = generate<replicated, double>(m, {1, 3}, [](auto i, auto j) { return element(i, j + 3); });
      host_tape t(m);
      const auto h = t.input(x), bias = t.parameter(b);
      const auto y = transform(h, [](auto v) {
        using std::exp;
        return exp(v) * v;
      });
      const auto u = zip(h, y, [](auto p, auto q) { return p * q - p; });
      const auto v = dropout(relu(add_row(bias, 0.5 * u + h)), 0.3, {.seed = 3});
      const auto z = v * h - u + add_row(bias, h);
      check_tape(t, sum(z * z), x, h, b, bias);
    });
}

TEST_CASE("dropout in evaluation changes nothing") {
  on_threads(1, [](const communicator& world) {
    const mesh<host> m(world, {1, 1, 1});
    auto x = generate<vertex_rows, double>(m, {5, 3}, [](auto i, auto j) { return element(i, j); });
    host_tape t(m);
    const auto y = t.keep(dropout(t.input(x), 0.5, {.seed = 1}));
    t.forward({.training = false});
    CHECK(collect(t.value(y)) == collect(x));
    t.forward({.epoch = 1});
    const auto first = collect(t.value(y));
    t.forward({.epoch = 2});
    CHECK(collect(t.value(y)) != first);
    expect_error<error>("a dropout probability must be in [0, 1), not 1.0", [&] { dropout(y, 1); });
  });
}

}  // namespace test_autodiff_elementwise
