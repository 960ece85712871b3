// SPDX-License-Identifier: Apache-2.0
// Subgraphs that random walks visit: the walks, what is between their vertices, and its normalisation.
#include "partita/sampling/walk_sampler.hpp"

#include <map>

#include "support/samples.hpp"

namespace test_walk_sampler {

using namespace test_support;
using sampling::graph, sampling::walk_options, sampling::walk_sampler;

constexpr global_index n = 67;

sample sampled(const graph<double>& g, const walk_options& o, const std::vector<global_index>& roots,
               std::uint64_t epoch = 3) {
  return sampled_by<walk_sampler<double>>(g, o, roots, epoch);
}

/// The vertices at which the walk from a root is after 0, 1, ..., length steps.
std::vector<global_index> walk(const graph<double>& g, const walk_options& o, global_index root,
                               std::uint64_t epoch = 3) {
  std::vector<global_index> path{root};
  for (int step = 0; step < o.length; ++step) {
    const std::uint64_t key = sampling::draw_key(o.seed, epoch, static_cast<std::uint64_t>(step));
    const sampling::graph_row row = g.row(path.back());
    std::vector<global_index> to;
    for (local_index i = 0; i < row.count; ++i)
      if (!o.keep_diagonal || i != row.diagonal)
        to.push_back(g.columns()[row.begin + static_cast<std::size_t>(i)]);
    const auto drawn = sampling::below(static_cast<local_index>(to.size()), base::random_bits(key, root, 0));
    path.push_back(to.empty() ? path.back() : to[static_cast<std::size_t>(drawn)]);
  }
  return path;
}

TEST_CASE("the block is A between the vertices that the walks visit, the same for all layers") {
  const auto a = by_rows(graph_entries(n));
  const graph<double> g = test_graph(n);
  const auto roots = roots_of(1, n);
  for (const bool keep_diagonal : {false, true})
    for (const int length : {0, 1, 4}) {
      const walk_options o{3, length, 42, keep_diagonal};
      const sample s = sampled(g, o, roots);
      CHECK(s.blocks.size() == 3);
      CHECK(s.weights.empty());
      CHECK(s.blocks[0].rows == s.blocks[0].cols);
      CHECK(static_cast<std::size_t>(s.blocks[0].rows) == s.vertices.size());
      CHECK(std::equal(roots.begin(), roots.end(), s.vertices.begin()));
      for (std::size_t l : {1, 2}) CHECK((s.blocks[l] == s.blocks[0]));
      CHECK(s.sampled_edges == s.blocks[0].columns.size());
      std::set<global_index> visited;
      for (const global_index root : roots) {
        const auto path = walk(g, o, root);
        visited.insert(path.begin(), path.end());
      }
      CHECK(std::set<global_index>(s.vertices.begin(), s.vertices.end()) == visited);
      CHECK(visited.size() == s.vertices.size());
      for (const auto& [v, row] : by_rows(s, 0)) {
        std::map<global_index, double> expected;
        if (a.contains(v))
          for (const auto& [u, value] : a.at(v))
            if (visited.contains(u)) expected[u] = value;
        CHECK(row == expected);
      }
      if (length > 0) CHECK(sampled(g, o, roots, 4) != s);
    }
}

TEST_CASE("what is certain to be seen is neither scaled nor weighted, nor is what was never seen") {
  const graph<double> g = test_graph(n);
  const std::vector<global_index> all = vertices_below(n);
  for (const walk_options& o :
       {walk_options{1, 1, 5, false, 1, 3, n}, walk_options{1, 0, 5, false, 1, 1, 1}}) {
    const sample s = sampled(g, o, all);
    CHECK(by_rows(s, 0) == by_rows(sampled(g, {1, 1, 5}, all), 0));
    CHECK(s.weights == std::vector<double>(n, 1.0));
  }
}

TEST_CASE(
    "normalised, a row's expectation given its target is A's, and the weighted loss' that of all vertices") {
  constexpr int subgraphs = 1500;
  constexpr local_index batch = 6;
  const auto a = by_rows(graph_entries(n));
  const graph<double> g = test_graph(n);
  std::vector<global_index> candidates;
  for (global_index v = 0; v < n; v += 2) candidates.push_back(v);
  const walk_options o{1, 2, 9, true, 1, subgraphs, batch, candidates};
  walk_sampler<double> sampler(g, o);
  std::map<global_index, double> times, weights;
  global_rows sums, shares;
  sample s;
  for (std::uint64_t epoch = 0; epoch < subgraphs; ++epoch) {
    std::set<global_index> roots;
    for (global_index i = 0; roots.size() < batch; ++i)
      roots.insert(
          candidates[base::random_bits(77, static_cast<global_index>(epoch), i) % candidates.size()]);
    sampler(std::vector<global_index>(roots.begin(), roots.end()), epoch, s);
    REQUIRE(s.weights.size() == s.vertices.size());
    for (std::size_t i = 0; i < s.vertices.size(); ++i) {
      times[s.vertices[i]] += 1;
      weights[s.vertices[i]] = s.weights[i];
    }
    for (const auto& [v, row] : by_rows(s, 0))
      for (const auto& [u, value] : row) {
        sums[v][u] += value;
        shares[v][u] = a.at(v).at(u) / value;
      }
  }
  // Two estimates of a probability p from m and m' trials differ by a variance of p (1 - p) (1 / m + 1 / m').
  std::size_t outside = 0, compared = 0;
  for (const auto& [v, count] : times) {
    const double p = 1 / weights.at(v), seen = subgraphs * p;
    outside += std::abs(count / subgraphs / p - 1) > 5 * std::sqrt((1 - p) / p * 2 / subgraphs) + 1e-12;
    if (count < 100) continue;
    for (const auto& [u, sum] : sums[v]) {
      const double share = shares[v][u];
      if (share * seen < 30) continue;
      const double sigma = std::sqrt((1 - share) / share * (1 / count + 1 / seen));
      outside += std::abs(sum / count / a.at(v).at(u) - 1) > 5 * sigma + 1e-12;
      ++compared;
    }
  }
  CHECK(outside == 0);
  CHECK(compared > 100);
}

TEST_CASE("a cut graph gives the samples of a replicated one, and words by a closed form") {
  const graph<double> whole = test_graph(n);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    if (!sees(ranks)) continue;
    for (const int presampled : {0, 5}) {
      const walk_options o{2, 3, 7, presampled == 0, 2, presampled, 4};
      std::vector<sample> expected;
      for (int r = 0; r < ranks; ++r) expected.push_back(sampled(whole, o, roots_of(r, n)));
      with_mesh({ranks, 1, 1}, [&](const host_mesh& m) {
        const auto me = static_cast<std::size_t>(m.rank());
        const graph<double> cut = test_graph(m, row_1d, n);
        walk_sampler<double> sampler(cut, o);
        m.ledger().clear();
        sample s;
        for (int again = 0; again < 2; ++again) {
          m.ledger().clear();
          sampler(roots_of(m.rank(), n), 3, s);
          CHECK((s == expected[me]));
        }
        if (ranks == 1) return;
        global_index words = (o.length + 1) * (ranks - 1);
        for (std::size_t q = 0; q < expected.size(); ++q) {
          for (const global_index root : roots_of(static_cast<int>(q), n)) {
            const auto path = walk(whole, o, root);
            for (int step = 0; step < o.length; ++step) {
              const std::size_t owner = cut.owner(path[static_cast<std::size_t>(step)]);
              if (q != me && owner == me) words += 2;
              if (q == me && owner != me) words += 1;
            }
          }
          const auto& b = expected[q].blocks[0];
          if (q != me) words += b.rows;
          for (std::size_t i = 0; q == me && i < static_cast<std::size_t>(b.rows); ++i)
            if (cut.owner(expected[q].vertices[i]) != me) words += 1 + 2 * (b.offsets[i + 1] - b.offsets[i]);
        }
        CHECK(heard(m).words == words);
      });
    }
  }
}

TEST_CASE("a sample does not depend on the number of threads, and keeps its memory") {
  std::vector<global_index> roots;
  for (global_index v = 0; v < 400; v += 2) roots.push_back(v);
  check_threads<walk_sampler<double>>(test_graph(400), walk_options{2, 2, 3, false, 1, 4, 50}, roots);
}

TEST_CASE("errors name what they refuse") {
  const graph<double> g = test_graph(n);
  const auto refuse = [&](const char* what, const walk_options& o) {
    expect_error<shape_error>(what, [&] { walk_sampler<double>(g, o); });
  };
  refuse("at least 1 layer, not 0", {0});
  refuse("0 steps or more, not -1", {1, -1});
  refuse("0 subgraphs or more can be presampled, not -3", {1, 1, 0, false, 1, -3});
  refuse("have 1 to 67 roots, not 0", {1, 1, 0, false, 1, 2, 0});
  refuse("have 1 to 67 roots, not 68", {1, 1, 0, false, 1, 2, 68});
  refuse("have 1 to 2 roots, not 3", {1, 1, 0, false, 1, 2, 3, {4, 5}});
  refuse("root 70 is not a vertex", {1, 1, 0, false, 1, 2, 2, {4, 70}});
  expect_error<shape_error>("root 4 is given twice", [&] { sampled(g, {}, {4, 4}); });
}

}  // namespace test_walk_sampler
