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

TEST_CASE("gradients of 2^16 bytes are summed on their own, from the last matrix on") {
  on_mesh({3, 1, 1}, [](const host_mesh& m) {
    nn::parameters<double, host> set(m);
    std::vector<nn::parameter<double, host>*> all;
    // Of the last two there are 2^16 bytes, of the two before more, of the first less.
    for (const matrix_shape shape : {matrix_shape{10, 10}, {200, 100}, {10, 10}, {90, 91}, {1, 2}})
      all.push_back(&set.add("p", shape));
    for (auto* const p : all) fill(p->gradient(), m.rank() + 1);
    traffic expected;
    for (const global_index elements : {8192, 20'100, 100})
      expected += algebra::predicted_sum<double>(m, elements);
    CHECK(set.predicted() == expected);
    m.ledger().clear();
    set.start_sums(4);
    CHECK(m.ledger().total() == traffic{});
    set.start_sums(2);  // the last two, not without number 1 that before them
    fill(all[0]->gradient(), 10 * m.rank());
    set.sum_gradients();
    same(heard(m), expected, "the sums of gradients");
    for (std::size_t k = 0; k < all.size(); ++k)
      for (const double g : collect(all[k]->gradient())) CHECK(g == (k == 0 ? 30 : 6));
  });
}

}  // namespace test_parameters
