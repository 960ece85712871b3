// SPDX-License-Identifier: Apache-2.0
// Layers one after another: what is fused, and what may follow what.
#include "partita/nn/sequential.hpp"

#include "partita/nn/layer_norm.hpp"
#include "partita/nn/linear.hpp"
#include "partita/nn/skip_source.hpp"
#include "support/layers.hpp"

namespace test_sequential {

using namespace test_support;

using matrix = rows_matrix;

TEST_CASE(
    "a chain gives what its layers give one by one, fused or not, dropout in front and at the end too") {
  with_mesh({3, 1, 1}, [](const host_mesh& m) {
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

/// Six dense layers with activations and dropout, in front too, of which the last but one has no parameters.
nn::sequential<double, host> six_layers(const host_builder& b) {
  nn::sequential net(b);
  net.add(nn::dropout(0.5, b));
  for (const global_index in : {6, 8, 8, 8}) {
    net.add(nn::linear<double, host>(in, 8, b)).add(nn::elu{});
    if (in == 8) net.add(nn::dropout(0.25, b));
  }
  net.add(nn::elu{});
  net.add(nn::linear<double, host>(8, 3, b));
  return net;
}

TEST_CASE("outputs that are computed again give the bits of stored ones, in less memory") {
  on_threads(3, [](const communicator& world) {
    const auto run = [&](nn::activation_checkpointing how, std::size_t& peak) {
      const mesh<host> m(world, {3, 1, 1});
      const matrix h = generate<vertex_rows, double>(m, {300, 6}, field(0));
      const host_builder b(m, h.row_blocking(), {.seed = 5, .recompute = how});
      nn::sequential net = six_layers(b);
      matrix z = b.rows(3), dz = generate<vertex_rows, double>(m, {300, 3}, field(1)), dh = b.rows(6);
      std::vector<double> found;
      const auto add = [&](const std::vector<double>& some) {
        found.insert(found.end(), some.begin(), some.end());
      };
      m.queue().meter()->restart_peak();
      for (const std::uint64_t epoch : {1u, 2u}) {
        net.forward(h, z, {.training = true, .epoch = epoch});
        add(values(z));
        fill(b.parameters()->gradients(), 0);
        net.backward(h, dz, &dh);
        add(values(dh));
        add(collect(b.parameters()->gradients()));
        net.forward(h, z, {});
        add(values(z));
        add(values(*net.hidden()));
      }
      peak = m.queue().meter()->peak();
      return found;
    };
    std::size_t stored = 0, again = 0;
    const std::vector<double> expected = run(nn::activation_checkpointing::never, stored);
    CHECK(run(nn::activation_checkpointing::always, again) == expected);
    CHECK(again + 4 * 100 * 8 * sizeof(double) <= stored);  // at least four matrices (n/P, 8) less
  });
}

TEST_CASE(
    "outputs that are computed again are there for one backward after a training pass, and refused else") {
  const matrix h = generate<vertex_rows, double>(alone(), {7, 6}, field(0));
  const host_builder b(alone(), h.row_blocking(),
                       {.seed = 5, .recompute = nn::activation_checkpointing::always});
  nn::sequential net = six_layers(b);
  matrix z = b.rows(3), dh = b.rows(6);
  const auto again = [&] { net.backward(h, z, &dh); };
  constexpr auto what = "need a forward of a training pass";
  expect_error<error>(what, again);
  net.forward(h, z, {});
  expect_error<error>(what, again);
  net.forward(h, z, {.training = true});
  again();
  expect_error<error>(what, again);
  expect_error<error>("only after an evaluation", [&] { (void)net.hidden(); });
}

TEST_CASE("outputs of a model with skip connections are not computed again") {
  const matrix h = generate<vertex_rows, double>(alone(), {7, 6}, field(0));
  const host_builder b(alone(), h.row_blocking(), {.recompute = nn::activation_checkpointing::always});
  nn::sequential net(b);
  net.add(nn::linear(6, 4, b)).add(nn::skip_source(4, b));
  matrix z = b.rows(4);
  expect_error<error>("activation checkpointing cannot recompute the outputs",
                      [&] { net.forward(h, z, {}); });
}

TEST_CASE("an activation in front of all layers is refused") {
  const host_builder b(alone(), blocking::even(4, {1, 1, 1}, nesting::rows));
  expect_error<error>("an activation needs a preceding layer", [&] { nn::sequential(b).add(nn::relu{}); });
}

}  // namespace test_sequential
