// SPDX-License-Identifier: Apache-2.0
// Losses of links and negatives against slow sums, and their slopes against finite differences.
#include "partita/algebra/pair_loss.hpp"

#include "support/edge_matrices.hpp"

namespace test_pair_loss {

using namespace test_support;

constexpr matrix_shape shape{17, 17};

/// Links that count once or twice, and negatives.
std::vector<triplet<double>> signed_pairs() {
  std::vector<triplet<double>> pairs = sparse_entries(shape, 3);
  for (auto& e : pairs) e.value = (e.row + e.col) % 3 == 0 ? 1 : (e.row + 2 * e.col) % 5 == 0 ? -2 : -1;
  return pairs;
}

template <class Loss>
void check_loss(const Loss& loss) {
  const auto score = [](auto v, auto u, auto) { return edge_entry(v, u, 0); };
  double total = 0, weight = 0;
  for (const auto& e : signed_pairs()) {
    const double m = e.value > 0 ? edge_entry(e.row, e.col, 0) : -edge_entry(e.row, e.col, 0);
    total += std::abs(e.value) * loss(m), weight += std::abs(e.value);
  }
  for_each_usual_mesh(std::array{1, 2, 3, 6}, [&](const policy& p, mesh_shape on) {
    with_mesh(on, [&](const host_mesh& m) {
      const auto a = distribute(m, p.sparse, shape, share(signed_pairs(), m));
      host_edges scores(a, 1), gradient(a, 1);
      fill_edges(scores, score);
      const algebra::pair_signs<double, host> signs(a);
      CHECK(signs.weight() == weight);
      CHECK(algebra::pair_loss(scores, signs, gradient, loss) ==
            doctest::Approx(total / weight).epsilon(1e-13));
      host_edges sign(a, 1);
      transform(signs.values(), sign, [](double t) { return t; });
      for_each_value(sign, [&](auto v, auto u, auto, double t) {
        const double s = edge_entry(v, u, 0), y = t > 0 ? 1 : -1, step = 1e-6;
        const double slope = (loss(y * (s + step)) - loss(y * (s - step))) / (2 * step);
        const double expected = std::abs(t) * slope / weight;
        for_each_value(gradient, [&](auto row, auto col, auto, double g) {
          if (row == v && col == u) CHECK(std::abs(g - expected) < 1e-9);
        });
      });
    });
  });
}

TEST_CASE("the logistic loss of pairs") {
  check_loss(algebra::logistic_pair_loss{});
  CHECK(algebra::logistic_pair_loss{}(0.0) == doctest::Approx(std::log(2.0)));
  CHECK(algebra::logistic_pair_loss{}(-800.0) == 800);
  CHECK(algebra::logistic_pair_loss{}(800.0) == 0);
}
TEST_CASE("the margin loss of pairs") {
  check_loss(algebra::margin_pair_loss{});
  check_loss(algebra::margin_pair_loss{.margin = 2.5});
  CHECK(algebra::margin_pair_loss{}(0.25) == 0.75);
}
TEST_CASE("a loss of one's own") {
  struct squared {
    double operator()(double m) const { return (1 - m) * (1 - m); }
    double slope(double m) const { return 2 * (m - 1); }
  };
  check_loss(squared{});
}

}  // namespace test_pair_loss
