// SPDX-License-Identifier: Apache-2.0
// Layers one after another: what is fused, and what may follow what.
#include "partita/nn/sequential.hpp"

#include <doctest/doctest.h>

#include "partita/nn/layer_norm.hpp"
#include "partita/nn/linear.hpp"
#include "support/layers.hpp"

namespace test_sequential {

using namespace partita;
using namespace test_support;

using matrix = rows_matrix;

TEST_CASE(
    "a chain gives what its layers give one by one, fused or not, dropout in front and at the end too") {
  on_threads(3, [](const communicator& world) {
    const mesh<host> m(world, {3, 1, 1});
    const matrix h = generate<vertex_rows, double>(m, {11, 5}, field(0));
    const host_builder b(m, h.row_blocking(), {.seed = 5}), same_b(m, h.row_blocking(), {.seed = 5});
    nn::sequential net(b);
    net.add(nn::dropout(0.5, b)).add(nn::linear(5, 4, b)).add(nn::relu{}).add(nn::dropout(0.25, b));
    net.add(nn::linear(4, 3, b)).add(nn::elu{});
    const nn::dropout in_front(0.5, same_b), between(0.25, same_b);
    nn::linear first(5, 4, same_b), second(4, 3, same_b);
    matrix z = b.rows(3), x = b.rows(5), y = b.rows(4), expected = b.rows(3);
    for (const nn::pass& p : {nn::pass{.training = true, .epoch = 7}, nn::pass{}}) {
      net.forward(h, z, p);
      dropout(h, x, in_front.mask(p));
      first.forward(x, y, {});
      nn::relu::forward(y, between.mask(p));
      second.forward(y, expected, {});
      nn::elu::forward(expected, {});
      CHECK(largest_difference(values(z), values(expected)) < 1e-15);
    }
  });
}

TEST_CASE("gradients of chains agree with finite differences, activations in a row and at the end too") {
  matrix h = generate<vertex_rows, double>(alone(), {7, 3}, field(0));
  const host_builder b = in_the_middle(h);
  nn::sequential net(b);
  net.add(nn::linear(3, 4, b)).add(nn::elu{}).add(nn::elu{}).add(nn::layer_norm(4, b));
  net.add(nn::linear(4, 2, b)).add(nn::elu{});
  check_gradients(b, std::move(net), h);
}

TEST_CASE("an activation in front of all layers is refused") {
  const host_builder b(alone(), blocking::even(4, {1, 1, 1}, nesting::rows));
  expect_error<error>("an activation needs a preceding layer", [&] { nn::sequential(b).add(nn::relu{}); });
}

}  // namespace test_sequential
