// SPDX-License-Identifier: Apache-2.0
// Losses of variables, weighted sums of them, and losses of one's own.
#include "partita/autodiff/losses.hpp"

#include <limits>

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
      const auto own = loss(
          z, [&](const auto& of, auto& d) { return algebra::logistic_loss(of, targets, 9, d); },
          algebra::predicted_sum<double>(m, 1));
      const auto all = cross_entropy(z, labels) + 0.5 * own + 2 * sum(z);
      check_tape(t, all, x, h, w, v);
    });
}

TEST_CASE("gradients and values of every loss") {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      const mesh<host> m(world, {ranks, 1, 1});
      auto x = generate<vertex_rows, double>(m, {9, 3}, [](auto i, auto j) { return element(i, j); });
      auto w = generate<replicated, double>(m, {3, 4}, [](auto i, auto j) { return element(i, j + 3); });
      const auto made = [&](auto f) { return generate<vertex_rows, double>(m, {9, 4}, f); };
      const auto several = made([](auto i, auto j) { return i % 3 == 0 ? -1 : double((i + j) % 2); });
      const auto numbers = made([](auto i, auto j) { return (i + j) % 4 == 0 ? none : 0.3 * double(i - j); });
      const auto soft =
          algebra::soft_targets<double>(m, x.row_blocking(), 4, [](auto v) { return v % 5 - 1; },
                                        {.smoothing = 0.1, .class_weights = {1, 2, 0.5, 1}});
      const auto check = [&](auto record, auto value) {
        host_tape t(m);
        const auto h = t.input(x), v = t.parameter(w);
        const auto z = t.keep(gemm(h, v));
        const auto found = record(z);
        check_tape(t, found, x, h, w, v);
        t.forward();
        auto d = copy(t.rows(z));
        CHECK(found.value() == value(t.rows(z), d));
      };
      check([&](auto z) { return soft_cross_entropy(z, soft); },
            [&](auto& z, auto& d) { return algebra::soft_cross_entropy(z, soft, d); });
      check([&](auto z) { return logistic_loss(z, several, 6); },
            [&](auto& z, auto& d) { return algebra::logistic_loss(z, several, 6, d); });
      const auto of_values = [&](auto error) {
        check([&](auto z) { return value_loss(z, numbers, error, 27); },
              [&](auto& z, auto& d) { return algebra::value_loss(z, numbers, d, error); });
      };
      of_values(algebra::squared_error{});
      of_values(algebra::absolute_error{});
      of_values(algebra::huber_error(0.7));
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
