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

TEST_CASE("labels of other rows are refused") {
  const auto says = [](const char* text, global_index rows, bool apart) {
    expect_error<shape_error>({2, 1, 1}, text, [=](const host_mesh& m) {
      const auto z = generate<vertex_rows, double>(m, {6, 4}, test_support::field(0));
      const blocking of_labels = apart ? blocking::given({5, 1}, m.shape(), nesting::rows)
                                       : blocking::even(rows, m.shape(), nesting::rows);
      (void)algebra::accuracy(z, algebra::vertex_labels<host>(m, of_labels, [](global_index) { return 1; }));
    });
  };
  says("labels of 4 rows were given for logits of 6 x 4", 4, false);
  says("labels of 6 rows were given for logits of 6 x 4, whose rows are in other blocks", 6, true);
}

TEST_CASE("a label that is no class is refused alike by loss and accuracy") {
  const auto m = alone();
  const matrix z = from(m, {2, 2}, {1, 0, 0, 1});
  matrix g(m, z.shape());
  const auto labels = [&](global_index last) {
    return algebra::vertex_labels<host>(m, z.row_blocking(), [=](global_index v) { return v * last; });
  };
  constexpr const char* wrong = "vertex 1 has label 2 of 2 classes";
  CHECK_THROWS_WITH_AS(algebra::cross_entropy(z, labels(2), g), wrong, error);
  CHECK_THROWS_WITH_AS((void)algebra::accuracy(z, labels(2)), wrong, error);
  CHECK_THROWS_WITH_AS(labels(-2), "vertex 1 has label -2; one that is not counted has label -1", error);
}

TEST_CASE("logits that are not numbers are never right") {
  const auto m = alone();
  const double none = std::numeric_limits<double>::quiet_NaN();
  const matrix z = from(m, {4, 2}, {none, none, none, 1, 1, none, 2, 2});
  const algebra::vertex_labels<host> labels(m, z.row_blocking(), [](global_index) { return 0; });
  CHECK(algebra::accuracy(z, labels) == 0.25);
}

TEST_CASE("a logistic loss names its operands") {
  const auto m = alone();
  const matrix z = from(m, {2, 2}, {1, 0, 0, 1}), t = from(m, {2, 1}, {1, 0});
  matrix g(m, z.shape());
  CHECK_THROWS_WITH_AS(algebra::logistic_loss(z, t, 1, g),
                       doctest::Contains("logistic_loss of logits and targets needs operands"), shape_error);
}

TEST_CASE("a loss without counted vertices is refused") {
  expect_error<error>({2, 1, 1}, "logits of 5 x 3 have none", [](const host_mesh& m) {
    const auto z = generate<vertex_rows, double>(m, {5, 3}, test_support::field(0));
    matrix g(m, {5, 3});
    (void)algebra::cross_entropy(
        z, algebra::vertex_labels<host>(m, z.row_blocking(), [](global_index) { return -1; }), g);
  });
}

}  // namespace test_loss
