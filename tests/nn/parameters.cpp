// SPDX-License-Identifier: Apache-2.0
// Parameter sets and the builder that makes them.
#include "partita/nn/parameters.hpp"

#include "support/layers.hpp"

namespace test_parameters {

using namespace test_support;

TEST_CASE("Glorot fills the interval and does not depend on ranks") {
  const auto made = [](const host_mesh& m) {
    const host_builder b(m, blocking::even(7, m.shape(), nesting::rows), {.seed = 5});
    return collect(b.glorot("W", {30, 20}).value());
  };
  const std::vector<double> weights = made(alone());
  const double bound = std::sqrt(6.0 / 50);
  for (double w : weights) CHECK(std::abs(w) <= bound);
  CHECK(*std::max_element(weights.begin(), weights.end()) > 0.9 * bound);
  on_threads(6, [&](const communicator& world) { CHECK(made(host_mesh(world, {3, 2, 1})) == weights); });
}

TEST_CASE("parameters keep their values and their place when others are added, and are named one by one") {
  const host_builder b(alone(), blocking::even(7, {1, 1, 1}, nesting::rows));
  CHECK(b.layer().input() == nn::layer_input::constant);
  b.vary_input();
  CHECK(b.layer().input() == nn::layer_input::no_gradient);
  auto& first = b.filled("W", {2, 2}, 3);
  CHECK(b.layer().input() == nn::layer_input::varying);
  auto& second = b.decaying(0.5).filled("W", {1, 3}, 4);
  auto& last = b.named("last").filled("W", {1, 1}, 5);
  CHECK(first.name() == "W0");
  CHECK(second.name() == "W1");
  CHECK(last.name() == "Wlast");
  CHECK(first.decay() == 0);
  CHECK(second.decay() == 0.5);
  auto& set = *b.parameters();
  CHECK(collect(set.values()) == std::vector<double>{3, 3, 3, 3, 4, 4, 4, 5});
  fill(second.value(), 7);
  fill(first.gradient(), 1);
  CHECK(collect(set.values()) == std::vector<double>{3, 3, 3, 3, 7, 7, 7, 5});
  CHECK(collect(set.gradients()) == std::vector<double>{1, 1, 1, 1, 0, 0, 0, 0});
  CHECK(&set.list()[1] == &second);
}

TEST_CASE("gradients of all ranks are added up in one all-reduce, as predicted") {
  on_mesh({2, 2, 1}, [](const host_mesh& m) {
    nn::parameters<double, host> set(m);
    auto& p = set.add("p", {2, 3});
    fill(p.gradient(), m.rank() + 1);
    m.ledger().clear();
    set.sum_gradients();
    same(heard(m), set.predicted(), "the sum of gradients");
    CHECK(collect(p.gradient()) == std::vector<double>(6, 10));
  });
}

}  // namespace test_parameters
