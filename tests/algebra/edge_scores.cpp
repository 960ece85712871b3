// SPDX-License-Identifier: Apache-2.0
// Coefficients of edges from scalars of vertices, and their gradients, by the definition, everywhere.
#include "partita/algebra/edge_scores.hpp"

#include <map>

#include "partita/algebra/edge_scores_gradient.hpp"
#include "partita/algebra/edge_spmm.hpp"
#include "support/edge_matrices.hpp"

namespace test_edge_scores {

using namespace test_support;

constexpr global_index n = 31;

double score_entry(global_index v, global_index h) {
  return 2 * std::cos(static_cast<double>(5 * v + 3 * h));
}

/// All that is computed from the scalars, by plain loops.
struct definition {
  const std::vector<triplet<double>>& entries;
  algebra::score_shape shape;
  dropout_mask mask;
  std::map<std::pair<global_index, global_index>, double> sums{}, means{};

  double score(global_index v, global_index u, global_index h) const {
    return score_entry(u, h) + score_entry(v, shape.heads + h);
  }
  double power(global_index v, global_index u, global_index h) const {
    const double z = score(v, u, h);
    return std::exp(z > 0 ? z : shape.slope * z);
  }
  double softmax(global_index v, global_index u, global_index h) const {
    return power(v, u, h) / sums.at({v, h});
  }
  double kept(global_index v, global_index u, global_index h, double x) const {
    return mask.probability > 0 ? mask.function<double>()(v, u * shape.heads + h, x) : x;
  }
  double coefficient(global_index v, global_index u, global_index h) const {
    if (!shape.averaged) return kept(v, u, h, softmax(v, u, h));
    double sum = 0;
    for (int k = 0; k < shape.heads; ++k) sum += kept(v, u, k, softmax(v, u, k));
    return sum / shape.heads;
  }
  double gradient(global_index v, global_index u, global_index h) const {  // of the softmax
    return kept(v, u, h, shape.averaged ? edge_entry(v, u, 0) / shape.heads : edge_entry(v, u, h));
  }
  std::vector<double> score_gradient() const {  // (n, 2 heads)
    std::vector<double> d(static_cast<std::size_t>(n * 2 * shape.heads), 0);
    for (const auto& e : entries)
      for (int h = 0; h < shape.heads; ++h) {
        const double g = softmax(e.row, e.col, h) * (gradient(e.row, e.col, h) - means.at({e.row, h})) *
                         (score(e.row, e.col, h) > 0 ? 1 : shape.slope);
        d[static_cast<std::size_t>(e.col * 2 * shape.heads + h)] += g;
        d[static_cast<std::size_t>(e.row * 2 * shape.heads + shape.heads + h)] += g;
      }
    return d;
  }

  definition(const std::vector<triplet<double>>& graph, algebra::score_shape s, dropout_mask m)
      : entries(graph), shape(s), mask(m) {
    for (const auto& e : entries)
      for (int h = 0; h < s.heads; ++h) sums[{e.row, h}] += power(e.row, e.col, h);
    for (const auto& e : entries)
      for (int h = 0; h < s.heads; ++h)
        means[{e.row, h}] += softmax(e.row, e.col, h) * gradient(e.row, e.col, h);
  }
};

TEST_CASE("coefficients of a pattern and of its transpose, and the gradient of their scalars") {
  const auto entries = sparse_entries({n, n}, 4);
  for (const bool averaged : {false, true})
    for (const double probability : {0.0, 0.4}) {
      if (sanitized && averaged != (probability > 0)) continue;
      for_each_edge_case([&](const host_mesh& m, const policy& p, local_index heads, row_exchange rows) {
        const definition expected(entries, {heads, averaged, 0.3}, {probability, {1, 2, 3}});
        const auto a = distribute(m, p.sparse, {n, n}, share(entries, m));
        const transfer::in_edges<double, host> own(a);
        algebra::edge_scores<double, host> scores(a, own, expected.shape);
        algebra::edge_scores_gradient<double, host> backward(own, expected.shape);
        const auto scalars = generate<vertex_rows, double>(m, {n, 2 * heads}, score_entry);
        const auto x = generate<double>(m, p.dense, {n, 3}, field(0));
        host_dense<> y(m, p.dense, {n, 3});
        const auto multiply = [&](const auto& pattern, auto of, auto value) {
          edge_spmm_plan product(pattern, x, averaged ? 1 : heads, rows);
          host_edges e(pattern, product.heads_here());
          product.compute(e, of(e), x, y);
          CHECK_MESSAGE(largest_error(e, value) < 1e-12, std::string(p.name), " on ", to_string(m.shape()));
        };

        m.ledger().clear();
        scores.forward(scalars, expected.mask);
        traffic words = heard(m);
        multiply(
            a, [&](const host_edges& e) { return scores.by_targets(e); },
            [&](auto v, auto u, auto h) { return expected.coefficient(v, u, h); });
        m.ledger().clear();
        scores.transpose();
        same(words + heard(m), scores.predicted(), "scalars and logarithms of sums");
        multiply(
            transposed(a), [&](const host_edges& e) { return scores.by_sources(e); },
            [&](auto u, auto v, auto h) { return expected.coefficient(v, u, h); });

        std::vector<double> d, alpha(backward.values_here());
        for (const auto& e : entries)  // in the order of rows and columns
          for (int h = 0; own.own().contains(e.row) && h < (averaged ? 1 : heads); ++h)
            d.push_back(edge_entry(e.row, e.col, h));
        dense<double, vertex_rows, host> gradient(m, scalars.shape());
        m.ledger().clear();
        backward(scores, d, alpha, gradient);
        same(heard(m), backward.predicted(), "the gradient of scalars");
        check_equals(gradient, expected.score_gradient(), 1e-12, "the gradient of scalars");
      });
    }
}

TEST_CASE("a rank's normalisers are those of its products' heads, and of all heads of its own vertices") {
  const auto entries = sparse_entries({n, n}, 4);
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index heads, row_exchange rows) {
    const algebra::score_shape shape{.heads = heads};
    const dropout_mask mask{0.4, {1, 2, 3}};
    const auto a = distribute(m, p.sparse, {n, n}, share(entries, m));
    const transfer::in_edges<double, host> own(a);
    const auto scalars = generate<vertex_rows, double>(m, {n, 2 * heads}, score_entry);
    const auto x = generate<double>(m, p.dense, {n, 3}, field(0));
    host_dense<> y(m, p.dense, {n, 3}), same_y(m, p.dense, {n, 3});
    edge_spmm_plan product(a, x, heads, rows), back(transposed(a), x, heads, rows);
    const interval here = product.heads_here();
    algebra::edge_scores<double, host> all(a, own, shape), some(a, own, shape, here);
    algebra::edge_scores_gradient<double, host> backward(own, shape);

    const auto sums = some.log_sums(own.range());
    for (local_index i = 0; i < sums.rows; ++i)
      for (local_index h = 0; h < heads; ++h) const_cast<double&>(sums(i, h)) = -12345;
    m.ledger().clear();
    all.forward(scalars, mask);
    all.transpose();
    const traffic words = heard(m);
    m.ledger().clear();
    some.forward(scalars, mask);
    int wrong = 0;
    for (local_index i = 0; i < sums.rows; ++i)
      for (local_index h = 0; h < heads; ++h) {
        const bool needed = here.contains(h) || own.own().contains(own.range().begin + i);
        wrong += sums(i, h) != (needed ? all.log_sums(own.range())(i, h) : -12345);
      }
    CHECK_MESSAGE(wrong == 0, std::string(p.name), " on ", to_string(m.shape()));
    some.transpose();
    same(words, heard(m), "the same travels");

    const auto multiply = [&](auto& plan, const auto& pattern, auto of) {
      host_edges e(pattern, here), expected(pattern, here);
      plan.compute(expected, of(all, expected), x, y);
      plan.compute(e, of(some, e), x, same_y);
      CHECK(std::ranges::equal(e.values(), expected.values()));
    };
    multiply(product, a, [](const auto& scores, const auto& e) { return scores.by_targets(e); });
    multiply(back, transposed(a), [](const auto& scores, const auto& e) { return scores.by_sources(e); });
    const auto gradient_with = [&](const auto& scores) {
      std::vector<double> d(backward.values_here(), 1), alpha(backward.values_here());
      for (std::size_t e = 0; e < d.size(); ++e) d[e] = std::cos(static_cast<double>(e));
      dense<double, vertex_rows, host> gradient(m, scalars.shape());
      backward(scores, d, alpha, gradient);
      return collect(gradient);
    };
    CHECK(gradient_with(some) == gradient_with(all));
  });
}

}  // namespace test_edge_scores
