// SPDX-License-Identifier: Apache-2.0
// Steps of optimisers by hand.
#include "partita/nn/optimizer.hpp"

#include <doctest/doctest.h>

#include "support/layers.hpp"

namespace test_optimizer {

using namespace partita;
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

}  // namespace test_optimizer
