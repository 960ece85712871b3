// SPDX-License-Identifier: Apache-2.0
// Activations and dropout, forward and backward.
#include "partita/nn/activation.hpp"

#include "support/layers.hpp"

namespace test_activation {

using namespace test_support;

using matrix = rows_matrix;

TEST_CASE("relu and dropout, forward and backward from the output alone") {
  const auto m = alone();
  const matrix x = from(m, {1, 4}, {-1, 2, 0, 3}), dy = from(m, {1, 4}, {10, 20, 30, 40});
  matrix y(m, x.shape()), dx(m, x.shape());
  const auto run = [&](const dropout_mask& mask) {
    transform(x, y, [](double v) { return v; });
    transform(dy, dx, [](double v) { return v; });
    nn::relu::forward(y, mask);
    nn::relu::backward(y, dx, mask);
  };
  run({});
  CHECK(values(y) == std::vector<double>{0, 2, 0, 3});
  CHECK(values(dx) == std::vector<double>{0, 20, 0, 40});
  const dropout_mask mask{0.5, {9, 1, 1}};
  run(mask);
  for (std::size_t i = 0; i < 4; ++i) {
    const double keep = y.values()[i] > 0 ? 2 : 0;
    CHECK(y.values()[i] == keep * std::max(0.0, x.values()[i]));
    CHECK(dx.values()[i] == keep * dy.values()[i]);
  }
}

TEST_CASE("a probability that is none is refused") {
  const auto m = alone();
  const nn::builder<double, host> b(m, blocking::even(3, m.shape(), nesting::rows));
  for (const double p : {-0.5, 1.0, 1.5, std::nan("")})
    expect_error<error>("a dropout probability must be in [0, 1), not", [&] { nn::dropout(p, b); });
  nn::dropout(0.99, b);
}

}  // namespace test_activation
