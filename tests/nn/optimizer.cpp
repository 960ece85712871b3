// SPDX-License-Identifier: Apache-2.0
// Steps of optimisers by hand.
#include "partita/nn/optimizer.hpp"

#include "partita/algebra/reproducible.hpp"
#include "support/layers.hpp"

namespace test_optimizer {

using namespace test_support;

TEST_CASE("one step of SGD and two of Adam, by hand") {
  nn::parameters<double, host> set(alone());
  auto &w = set.add("W", {1, 1}, 0.25), &b = set.add("b", {1, 1});
  const double& bias = b.value().values()[0];
  const auto reset = [&] {
    fill(set.values(), 2);
    fill(set.gradients(), 1);
  };
  reset();
  nn::sgd<double, host>(0.5).step(set);
  CHECK(w.value().values()[0] == 2 - 0.5 * 1.5);
  CHECK(bias == 1.5);
  reset();
  nn::adam<double, host> optimizer(0.1);
  optimizer.step(set);
  CHECK(bias == doctest::Approx(2 - 0.1 / (1 + 1e-8)).epsilon(1e-15));
  fill(b.gradient(), -2);
  optimizer.step(set);
  const double first = (0.9 * 0.1 - 0.1 * 2) / (1 - 0.81),
               second = (0.999 * 0.001 + 0.001 * 4) / (1 - 0.999 * 0.999);
  CHECK(bias ==
        doctest::Approx(2 - 0.1 / (1 + 1e-8) - 0.1 * first / (std::sqrt(second) + 1e-8)).epsilon(1e-13));
}

TEST_CASE("SGD with momentum and AdamW, by hand") {
  nn::parameters<double, host> set(alone());
  auto &w = set.add("W", {1, 1}, 0.25), &b = set.add("b", {1, 1});
  const double &weight = w.value().values()[0], &bias = b.value().values()[0];
  const auto with_gradient = [&](double g) -> nn::parameters<double, host>& {
    return fill(set.gradients(), g), set;
  };
  fill(set.values(), 2);
  nn::sgd<double, host> momentum(0.5, 0.9);
  momentum.step(with_gradient(1));
  CHECK(weight == 2 - 0.5 * 1.5);
  CHECK(bias == 1.5);
  momentum.set_rate(0.25);
  momentum.step(with_gradient(-1));
  CHECK(weight == doctest::Approx(1.25 - 0.25 * (0.9 * 1.5 - 1 + 0.25 * 1.25)).epsilon(1e-15));
  CHECK(bias == doctest::Approx(1.5 - 0.25 * (0.9 - 1)).epsilon(1e-15));
  CHECK(momentum.state_of(set).steps == 2);
  CHECK(momentum.state_of(set).second_moment.values().empty());

  fill(set.values(), 2);
  nn::adamw<double, host> decoupled(0.1);
  decoupled.step(with_gradient(1));
  CHECK(bias == doctest::Approx(2 - 0.1 / (1 + 1e-8)).epsilon(1e-15));
  CHECK(weight == doctest::Approx(2 * (1 - 0.1 * 0.25) - 0.1 / (1 + 1e-8)).epsilon(1e-15));
}

TEST_CASE("gradients are clipped to a norm, over all parameters together") {
  nn::parameters<double, host> set(alone());
  set.add("W", {1, 2}), set.add("b", {1, 1});
  const auto g = set.gradients().values();
  g[0] = 1, g[1] = -2, g[2] = 2;
  CHECK(nn::clip_gradients(set, 4) == 3);
  CHECK(g[1] == -2);
  CHECK(nn::clip_gradients(set, 1.5) == 3);
  CHECK(g[1] == doctest::Approx(-2 * 1.5 / (3 + 1e-6)).epsilon(1e-15));
  CHECK_THROWS_WITH_AS(nn::clip_gradients(set, 0), doctest::Contains("not to 0"), error);
}

TEST_CASE("gradients are clipped on a reproducible mesh, too") {
  nn::parameters<double, host> set(
      host_mesh(partita::self::world(), {1, 1, 1}, partita::reproducible(partita::device_queue<host>())));
  set.add("W", {1, 2});
  set.gradients().values()[0] = 3, set.gradients().values()[1] = 4;
  CHECK(nn::clip_gradients(set, 1) == 5);
  CHECK(set.gradients().values()[0] == doctest::Approx(0.6).epsilon(1e-6));
}

TEST_CASE("optimisers refuse rates and momenta without a meaning") {
  using optimizer = nn::optimizer<double, host>;
  CHECK_THROWS_WITH_AS(optimizer({.rate = -1}), doctest::Contains("a learning rate of -1"), error);
  CHECK_THROWS_WITH_AS(optimizer({.rule = nn::update_rule::sgd, .momentum = 1}),
                       doctest::Contains("a momentum of 1"), error);
  CHECK_THROWS_WITH_AS(optimizer({.momentum = 0.5}), doctest::Contains("is for sgd"), error);
}

TEST_CASE_TEMPLATE("Adam in one pass has the bits of Adam in seven", T, float, double) {
  nn::parameters<T, host> set(alone());
  set.add("W", {3, 5}, 0.25), set.add("b", {1, 5}, 0.25), set.add("V", {5, 2}), set.add("c", {1, 2}, 0.5);
  const auto random = [&](int salt) {
    std::vector<T> x(set.values().values().size());
    for (std::size_t k = 0; k < x.size(); ++k)
      x[k] = static_cast<T>(base::random_uniform(7, static_cast<std::int64_t>(k), salt) - 0.5);
    return x;
  };
  std::vector<T> w = random(0), m(w.size()), v(w.size());
  std::copy(w.begin(), w.end(), set.values().values().begin());
  nn::adam<T, host> optimizer(0.1);
  for (int t = 1; t <= 3; ++t) {
    const std::vector<T> g = random(t);
    std::copy(g.begin(), g.end(), set.gradients().values().begin());
    optimizer.step(set);
    CHECK(std::equal(g.begin(), g.end(), set.gradients().values().begin()));
    std::size_t k = 0;
    for (auto& p : set.list())
      for (const T value : p.value().values()) {
        const T slope = T(1) * g[k] + static_cast<T>(p.decay()) * w[k];
        const T b1 = T(0.9), b2 = T(0.999);
        m[k] = b1 * m[k] + (1 - b1) * slope;
        v[k] = b2 * v[k] + (1 - b2) * slope * slope;
        const T first = static_cast<T>(1 / (1 - std::pow(0.9, t))),
                second = static_cast<T>(1 / (1 - std::pow(0.999, t)));
        w[k] -= T(0.1) * (m[k] * first) / (std::sqrt(v[k] * second) + T(1e-8));
        CHECK(value == w[k++]);
      }
  }
}

}  // namespace test_optimizer
