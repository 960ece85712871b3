// SPDX-License-Identifier: Apache-2.0
// Losses and scores by hand.
#include "partita/algebra/loss.hpp"

#include "support/layers.hpp"

namespace test_loss {

using namespace test_support;

using namespace nn;
using matrix = rows_matrix;

TEST_CASE("cross-entropy of two counted vertices of three") {
  const auto m = alone();
  const matrix z = from(m, {3, 2}, {0, 0, 5, 7, std::log(3.0), 0});
  const std::vector<global_index> label{0, -1, 1};
  const algebra::vertex_labels<host> labels(
      m, z.row_blocking(), [&](global_index v) { return label[static_cast<std::size_t>(v)]; });
  matrix g(m, z.shape());
  CHECK(labels.counted() == 2);
  CHECK(algebra::cross_entropy(z, labels, g) ==
        doctest::Approx((std::log(2.0) + std::log(4.0)) / 2).epsilon(1e-14));
  CHECK(largest_difference(values(g), {-0.25, 0.25, 0, 0, 0.375, -0.375}) < 1e-15);
  CHECK(algebra::accuracy(z, labels) == 0.5);
}

TEST_CASE("logistic loss of one counted vertex of two") {
  const auto m = alone();
  const matrix z = from(m, {2, 2}, {0, std::log(3.0), 9, 9}), t = from(m, {2, 2}, {1, 0, -1, -1});
  matrix g(m, z.shape());
  CHECK(algebra::logistic_loss(z, t, 1, g) ==
        doctest::Approx((std::log(2.0) + std::log(4.0)) / 2).epsilon(1e-14));
  CHECK(largest_difference(values(g), {-0.25, 0.375, 0, 0}) < 1e-15);
  const matrix huge = from(m, {1, 2}, {800, -800}), wrong = from(m, {1, 2}, {0, 1});
  matrix gradient(m, huge.shape());
  CHECK(algebra::logistic_loss(huge, wrong, 1, gradient) == 800);
}

TEST_CASE("a loss without counted vertices is refused") {
  expect_error<error>({2, 1, 1}, "logits of 5 x 3 have none", [](const host_mesh& m) {
    const auto z = generate<vertex_rows, double>(m, {5, 3}, field(0));
    matrix g(m, {5, 3});
    (void)algebra::cross_entropy(
        z, algebra::vertex_labels<host>(m, z.row_blocking(), [](global_index) { return -1; }), g);
  });
}

}  // namespace test_loss
