// SPDX-License-Identifier: Apache-2.0
// Vertices sampled by importance: probabilities, what is kept, and that it depends on nothing else.
#include "partita/sampling/layer_sampler.hpp"

#include "support/samples.hpp"

namespace test_layer_sampler {

using namespace test_support;
using sampling::graph, sampling::layer_options, sampling::layer_sampler;

constexpr global_index n = 67;

sample sampled(const graph<double>& g, const layer_options& o, const std::vector<global_index>& roots,
               std::uint64_t epoch = 3) {
  return sampled_by<layer_sampler<double>>(g, o, roots, epoch);
}

std::vector<global_index> all_vertices() { return vertices_below(n); }

TEST_CASE("importance is the squared norm of columns, whatever the scale of A and however its rows are cut") {
  std::vector<double> norms(n, 0);
  double sum = 0;
  for (const auto& e : graph_entries(n)) {
    norms[static_cast<std::size_t>(e.col)] += e.value * e.value;
    sum += e.value * e.value;
  }
  const std::vector<double> q = sampling::column_importance(test_graph(n));
  REQUIRE(q.size() == norms.size());
  for (std::size_t u = 0; u < q.size(); ++u) CHECK(q[u] == doctest::Approx(norms[u] / sum).epsilon(1e-12));
  const host_mesh m(self::world(), {1, 1, 1});
  for (const double scale : {0x1p-600, 0x1p+600}) {
    auto entries = graph_entries(n);
    for (auto& e : entries) e.value *= scale;
    CHECK(sampling::column_importance(graph<double>(distribute(m, row_1d, {n, n}, entries))) == q);
  }
  std::vector<triplet<double>> uneven{{0, 1, 1.}, {1, 2, 1e-200}};
  const std::vector<double> small =
      sampling::column_importance(graph<double>(distribute(m, row_1d, {3, 3}, uneven)));
  CHECK((small[0] == 0 && small[1] > 0.99 && 0 < small[2] && small[2] < 1e-15));
  const graph<double> empty(distribute(m, row_1d, {3, 3}, std::vector<triplet<double>>{}));
  CHECK(sampling::column_importance(empty) == std::vector<double>{0, 0, 0});
}

TEST_CASE("the sources of a hop are one random set, and as many as the budget says on average") {
  const auto a = by_rows(graph_entries(n));
  const graph<double> g = test_graph(n);
  const std::vector<double> q = sampling::column_importance(g);
  for (const bool keep_diagonal : {false, true}) {
    constexpr local_index budget = 6;
    constexpr int epochs = 600;
    layer_sampler<double> sampler(g, {{budget}, 42, keep_diagonal});
    global_rows mean;
    double members = 0;
    sample s;
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      sampler(all_vertices(), epoch, s);
      check_sample(s, all_vertices());
      std::set<global_index> sources;
      const global_rows rows = by_rows(s, 0);
      for (const auto& [v, row] : rows)
        for (const auto& [u, value] : row) {
          mean[v][u] += value / epochs;
          if (!keep_diagonal || u != v) sources.insert(u);
        }
      std::size_t faults = 0;
      for (const auto& [v, row] : a)
        for (const auto& [u, value] : row) {
          const bool kept = keep_diagonal && u == v;
          const double p = kept ? 1 : std::min(1.0, budget * q[static_cast<std::size_t>(u)]);
          const bool is_in = rows.at(v).contains(u);
          if (!kept) faults += is_in != sources.contains(u);
          if (is_in) faults += std::abs(rows.at(v).at(u) * p / value - 1) > 1e-14;
        }
      CHECK(faults == 0);
      members += static_cast<double>(sources.size()) / epochs;
    }
    // Bernoulli variables: the variance of the number of members is at most its mean, that of 1{u} / p is
    // 1 / p - 1.
    CHECK(members <= budget + 5 * std::sqrt(budget / static_cast<double>(epochs)));
    CHECK(members >= budget / 2);
    std::size_t outside = 0;
    for (const auto& [v, row] : a)
      for (const auto& [u, value] : row) {
        const double p = std::min(1.0, budget * q[static_cast<std::size_t>(u)]);
        const double sigma = keep_diagonal && u == v ? 0 : std::abs(value) * std::sqrt((1 / p - 1) / epochs);
        outside += !(std::abs(mean[v][u] - value) <= 5 * sigma + 1e-12);
      }
    CHECK(outside == 0);
  }
}

TEST_CASE("a budget beyond all importance gives the rows of A") {
  const sample s = sampled(test_graph(n), {{2000000000, 2000000000}, 1}, all_vertices());
  auto a = by_rows(graph_entries(n));
  for (const auto& [v, row] : by_rows(s, 0)) CHECK(row == a[v]);
}

TEST_CASE("the sample of several roots is the union of the samples of each, on any number of threads") {
  const graph<double> g = test_graph(n);
  const auto roots = roots_of(1, n);
  for (const bool keep_diagonal : {false, true}) {
    const layer_options o{{9, 20, 9}, 7, keep_diagonal};
    const sample together = sampled(g, o, roots);
    check_sample(together, roots);
    CHECK(is_union_of_roots(together, roots, 3, [&](const auto& one) { return sampled(g, o, one); }));
    CHECK(sampled(g, o, roots, 4) != together);
  }
  check_threads<layer_sampler<double>>(test_graph(400), layer_options{{50, 90}, 7}, vertices_below(400));
}

TEST_CASE("a cut graph gives the samples of a replicated one, and words by a closed form") {
  const graph<double> whole = test_graph(n);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    if (!sees(ranks)) continue;
    for (const bool keep_diagonal : {false, true}) {
      const layer_options o{{20, 10}, 7, keep_diagonal, 2};
      std::vector<sample> expected;
      for (int r = 0; r < ranks; ++r) expected.push_back(sampled(whole, o, roots_of(r, n)));
      with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const auto me = static_cast<std::size_t>(m.rank());
        const graph<double> cut = test_graph(m, row_1d, n);
        m.ledger().clear();
        layer_sampler<double> sampler(cut, o);
        CHECK(heard(m).words ==
              all_reduced(1, m.rank(), ranks).words + all_reduced(n, m.rank(), ranks).words);
        m.ledger().clear();
        sample s;
        sampler(roots_of(m.rank(), n), 3, s);
        CHECK((s == expected[me]));
        CHECK(heard(m).words == hop_words(cut, expected, me));
      });
    }
  }
}

TEST_CASE("errors name what they refuse") {
  const graph<double> g = test_graph(n);
  expect_error<shape_error>("at least 1 vertex, not 0", [&] { layer_sampler<double>(g, {{3, 0}}); });
  expect_error<shape_error>("given 0 of them", [&] { layer_sampler<double>(g, {}); });
  expect_error<shape_error>("root 70 is not a vertex of a graph of 67", [&] { sampled(g, {{3}}, {70}); });
}

}  // namespace test_layer_sampler
