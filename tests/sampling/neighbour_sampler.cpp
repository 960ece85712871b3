// SPDX-License-Identifier: Apache-2.0
// Sampled neighbours: what is kept, how it is scaled, and that it depends on nothing else.
#include "partita/sampling/neighbour_sampler.hpp"

#include <map>

#include "support/samples.hpp"

namespace test_neighbour_sampler {

using namespace test_support;
using sampling::fanout, sampling::graph, sampling::neighbour_options, sampling::neighbour_sampler;

constexpr global_index n = 67;

/// Ways to draw: with and without replacement, by weight or not, diagonals kept or not.
std::vector<neighbour_options> every_way(std::vector<fanout> fanouts, int threads = 1) {
  std::vector<neighbour_options> ways;
  for (const bool replace : {false, true})
    for (const bool weighted : {false, true})
      for (const bool keep_diagonal : {false, true})
        ways.push_back({fanouts, 42, replace, weighted, keep_diagonal, threads});
  return ways;
}

std::vector<global_index> all_vertices() { return vertices_below(n); }

sample sampled(const graph<double>& g, const neighbour_options& o, const std::vector<global_index>& roots,
               std::uint64_t epoch = 3) {
  return sampled_by<neighbour_sampler<double>>(g, o, roots, epoch);
}

TEST_CASE("fan-out -1, or one that no row exceeds, gives the rows of A") {
  const auto a = by_rows(graph_entries(n));
  const auto roots = roots_of(0, n);
  for (const bool keep_diagonal : {false, true})
    for (const std::vector<fanout>& fanouts : {std::vector<fanout>{-1, -1}, {100, -1, 100}}) {
      const sample s = sampled(test_graph(n), {fanouts, 1, false, false, keep_diagonal}, roots);
      check_sample(s, roots);
      std::size_t edges = 0;
      for (std::size_t l = 0; l < fanouts.size(); ++l) {
        for (const auto& [v, row] : by_rows(s, l)) {
          const auto expected = a.find(v);
          CHECK(row == (expected == a.end() ? std::map<global_index, double>{} : expected->second));
        }
        edges += s.blocks[l].values.size();
      }
      CHECK(s.sampled_edges == edges);
    }
}

TEST_CASE("a row keeps as many entries as were drawn, with the factors of their number") {
  const auto a = by_rows(graph_entries(n));
  const graph<double> g = test_graph(n, true);
  for (const local_index k : {1, 2, 5, 40})
    for (const neighbour_options& o : every_way({3, k})) {
      const sample s = sampled(g, o, all_vertices());
      check_sample(s, all_vertices());
      for (const auto& [v, row] : by_rows(s, 1)) {
        const auto of_a = a.find(v) == a.end() ? std::map<global_index, double>{} : a.at(v);
        const bool kept = o.keep_diagonal && of_a.contains(v);
        const std::size_t degree = of_a.size() - kept, drawn = row.size() - kept;
        if (kept) CHECK(row.at(v) == of_a.at(v));
        if (!o.replace) CHECK(drawn == std::min(degree, static_cast<std::size_t>(k)));
        CHECK((degree == 0 ? drawn == 0 : 1 <= drawn && drawn <= static_cast<std::size_t>(k)));
        const double d = static_cast<double>(degree);
        double times = 0;
        for (const auto& [u, value] : row) {
          REQUIRE(of_a.contains(u));
          const double factor = value / of_a.at(u);
          if (kept && u == v) continue;
          if (!o.replace && degree <= static_cast<std::size_t>(k)) CHECK(value == of_a.at(u));
          if (!o.replace) CHECK(factor >= 1 - 1e-15);
          times += factor;
          if (!o.weighted && !o.replace && degree > static_cast<std::size_t>(k))
            CHECK(factor == doctest::Approx(d / k));
        }
        if (!o.weighted) CHECK(times == doctest::Approx(d));
      }
    }
}

TEST_CASE("alike, each block has the first rows of the one before it") {
  neighbour_options o{.fanouts = {3, 3, 3}, .seed = 5, .keep_diagonal = true, .alike = true};
  const sample s = sampled(test_graph(n), o, roots_of(0, n));
  check_sample(s, roots_of(0, n));
  for (std::size_t l = 0; l + 1 < s.blocks.size(); ++l) {
    const auto &all = s.blocks[l], &first = s.blocks[l + 1];
    CHECK(first.rows < all.rows);
    CHECK(std::ranges::equal(first.offsets, std::span(all.offsets).first(first.offsets.size())));
    CHECK(std::ranges::equal(first.columns, std::span(all.columns).first(first.columns.size())));
    CHECK(std::ranges::equal(first.values, std::span(all.values).first(first.values.size())));
  }
  o.fanouts = {3, 2, 3};
  expect_error<shape_error>("have one fan-out", [&] { neighbour_sampler<double>(test_graph(n), o); });
}

TEST_CASE("the expectation of a sampled row is the row") {
  constexpr int epochs = 600;
  const auto a = by_rows(graph_entries(n)), w = by_rows(graph_weights(n));
  const graph<double> g = test_graph(n, true);
  constexpr local_index k = 3;
  for (const neighbour_options& o : every_way({k})) {
    neighbour_sampler<double> sampler(g, o);
    global_rows mean;
    sample s;
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      sampler(all_vertices(), epoch, s);
      for (const auto& [v, row] : by_rows(s, 0))
        for (const auto& [u, value] : row) mean[v][u] += value / epochs;
    }
    std::size_t outside = 0;
    for (const auto& [v, row] : a) {
      double degree = 0, weight = 0;
      for (const auto& [u, value] : row)
        if (!o.keep_diagonal || u != v) degree += 1, weight += w.at(v).at(u);
      for (const auto& [u, value] : row) {
        // The variance of one epoch's value over that of A, squared. Without replacement d / k - 1. With it,
        // of m ~ B(k, p) over k p: less than 1 / (k p). Priority sampling: E max(0, t - w) / w, t being the
        // k-th priority of the others; P(t > x) <= (W / x)^k / k!, so E t <= W + W / (k! (k - 1)) <= 1.1 W
        // for k = 3.
        const double p = o.weighted ? w.at(v).at(u) / weight : 1 / degree;
        double variance = 1 / (k * p);
        if (!o.replace) variance = o.weighted ? 1.1 / p : std::max(0.0, degree / k - 1);
        if ((o.keep_diagonal && u == v) || (!o.replace && degree <= k)) variance = 0;
        const double sigma = std::abs(value) * std::sqrt(variance / epochs);
        outside += !(std::abs(mean[v][u] - value) <= 5 * sigma + 1e-12);
      }
    }
    CHECK(outside == 0);
  }
}

TEST_CASE("the sample of several roots is the union of the samples of each") {
  const graph<double> g = test_graph(n, true);
  const auto roots = roots_of(1, n);
  for (const neighbour_options& o : every_way({2, 3, 2})) {
    const sample together = sampled(g, o, roots);
    check_sample(together, roots);
    CHECK(is_union_of_roots(together, roots, 3, [&](const auto& one) { return sampled(g, o, one); }));
    CHECK(sampled(g, o, roots, 4) != together);
    neighbour_options other = o;
    other.seed = 43;
    CHECK(sampled(g, other, roots) != together);
  }
}

TEST_CASE("a cut graph gives the samples of a replicated one, and words by a closed form") {
  const graph<double> whole = test_graph(n, true);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    if (!sees(ranks)) continue;
    for (const neighbour_options& o : every_way({3, -1, 2}, 2)) {
      std::vector<sample> expected;
      for (int r = 0; r < ranks; ++r) expected.push_back(sampled(whole, o, roots_of(r, n)));
      on_threads(ranks, [&](const communicator& world) {
        const host_mesh rows(world, {ranks, 1, 1}), columns(world, {1, ranks, 1});
        const graph<double> cut = test_graph(rows, row_1d, n, true);
        const graph<double> replicated = test_graph(columns, feature_column, n, true);
        const auto me = static_cast<std::size_t>(world.rank());
        rows.ledger().clear();
        CHECK((sampled(replicated, o, roots_of(world.rank(), n)) == expected[me]));
        CHECK(heard(rows) == traffic{});
        CHECK((sampled(cut, o, roots_of(world.rank(), n)) == expected[me]));

        CHECK(heard(rows).words == hop_words(cut, expected, me));
      });
    }
  }
}

TEST_CASE(
    "every relation has the fan-out or one of its own, entries keep their vectors, on whole graphs and cut "
    "ones") {
  constexpr global_index relations = 3;
  std::vector<triplet<double>> entries;
  for (const auto& e : graph_entries(n))
    entries.push_back({e.row * relations + e.col % relations, e.col, 1.0});
  const auto whole = by_rows(entries);
  const auto sample_on = [&](const host_mesh& m, int r, const std::vector<fanout>& fanouts) {
    const blocking cols = blocking::even(n, m.shape(), nesting::rows);
    const auto a = distribute(m, row_1d.sparse, cols.stacked(relations), cols, share(entries, m),
                              symmetry::one_way, row_1d.dense);
    const auto stored = a.local()->entries(m.queue());
    std::vector<double> vectors;  // in the order in which a rank stores its tiles
    for (std::size_t t = 0; t < a.local()->count(); ++t)
      for (std::size_t i = 0; i < std::size_t(a.row_range().size()); ++i)
        for (std::size_t e = stored.begin(t, i); e < stored.end(t, i); ++e)
          vectors.insert(vectors.end(), {double(a.row_range().begin + global_index(i)),
                                         double(a.tile_columns(t).begin + stored.column(e))});
    sample s;
    neighbour_sampler<double>(graph<double>(a, vectors, 2), {.fanouts = fanouts, .seed = 5})(roots_of(r, n),
                                                                                             3, s);
    return s;
  };
  for (const std::vector<fanout>& fanouts : {std::vector<fanout>{-1, 2}, {{-1, 1, 0}, {2, 0, 3}}}) {
    std::map<int, sample> alone;
    for (const int r : {0, 1, 2, 3}) alone[r] = sample_on(host_mesh(self::world(), {1, 1, 1}), r, fanouts);
    for (const auto& [r, s] : alone) {
      CHECK(s.blocks[1].rows == relations * std::ssize(roots_of(r, n)));
      for (std::size_t l = 0; l < 2; ++l) {
        const auto& b = s.blocks[l];
        CHECK(b.rows == relations * (l == 0 ? s.blocks[1].cols : std::ssize(roots_of(r, n))));
        REQUIRE(b.vectors.size() == 2 * b.columns.size());
        for (local_index i = 0; i < b.rows; ++i) {
          const global_index row = s.vertices[std::size_t(i / relations)] * relations + i % relations;
          const auto begin = std::size_t(b.offsets[std::size_t(i)]),
                     end = std::size_t(b.offsets[std::size_t(i) + 1]);
          const std::size_t degree = whole.contains(row) ? whole.at(row).size() : 0;
          const local_index k = fanouts[l][std::size_t(i % relations)];
          CHECK(end - begin == (k < 0 ? degree : std::min(std::size_t(k), degree)));
          for (std::size_t e = begin; e < end; ++e) {
            CHECK((e == begin || b.columns[e - 1] < b.columns[e]));
            CHECK(b.vectors[2 * e] == double(row));
            CHECK(b.vectors[2 * e + 1] == double(s.vertices[std::size_t(b.columns[e])]));
            CHECK(b.values[e] == doctest::Approx(double(degree) / double(end - begin)));
          }
        }
      }
    }
    for (const int ranks : {2, 4})
      on_mesh({ranks, 1, 1},
              [&](const host_mesh& m) { CHECK(sample_on(m, m.rank(), fanouts) == alone.at(m.rank())); });
  }
}

TEST_CASE("a sample does not depend on the number of threads, and keeps its memory") {
  for (const bool replace : {false, true})
    check_threads<neighbour_sampler<double>>(test_graph(700, true), neighbour_options{{4, 40}, 5, replace},
                                             vertices_below(700));
}

TEST_CASE("single precision rounds the values of double") {
  const host_mesh m(self::world(), {1, 1, 1});
  std::vector<triplet<float>> entries;
  for (const auto& e : graph_entries(n)) entries.push_back({e.row, e.col, static_cast<float>(e.value)});
  neighbour_sampler<float> sampler(graph<float>(distribute(m, row_1d, {n, n}, entries)), {{3, 3}, 42});
  sampling::sample<float> s;
  sampler(roots_of(0, n), 3, s);
  const sample expected = sampled(test_graph(n), {{3, 3}, 42}, roots_of(0, n));
  CHECK(s.vertices == expected.vertices);
  for (std::size_t l = 0; l < 2; ++l) {
    CHECK(s.blocks[l].columns == expected.blocks[l].columns);
    for (std::size_t e = 0; e < s.blocks[l].values.size(); ++e)
      CHECK(s.blocks[l].values[e] == doctest::Approx(expected.blocks[l].values[e]).epsilon(1e-6));
  }
}

TEST_CASE("errors name what they refuse") {
  const graph<double> g = test_graph(n);
  const auto with = [&](std::vector<fanout> fanouts) { return neighbour_options{std::move(fanouts)}; };
  expect_error<shape_error>("-1 for all neighbours, not 0", [&] {
    neighbour_sampler<double>(g, with({2, 0}));
  });
  expect_error<shape_error>("not -2", [&] { neighbour_sampler<double>(g, with({-2})); });
  expect_error<shape_error>("not 0", [&] { neighbour_sampler<double>(g, with({{0, 0}})); });
  expect_error<shape_error>("a fan-out of 2 numbers cannot serve a graph of 1 relations", [&] {
    neighbour_sampler<double>(g, with({{2, 0}}));
  });
  expect_error<shape_error>("was given 0 of them", [&] { neighbour_sampler<double>(g, with({})); });
  expect_error<shape_error>("a sampler for 2 layers cannot serve a model of 3", [&] {
    neighbour_sampler<double>(g, with({2, 2})).require_layers(3);
  });
  expect_error<mesh_error>("at least one thread, not 0", [&] {
    neighbour_sampler<double>(g, {{2}, 0, false, false, false, 0});
  });
  expect_error<error>("without weights", [&] { neighbour_sampler<double>(g, {{2}, 0, false, true}); });
  expect_error<shape_error>("root 67 is not a vertex of a graph of 67", [&] {
    sampled(g, with({2}), {0, 67});
  });
  expect_error<shape_error>("root -1 is not", [&] { sampled(g, with({2}), {-1}); });
  expect_error<shape_error>("root 9 is given twice", [&] { sampled(g, with({2}), {9, 2, 9}); });
  neighbour_sampler<double> sampler(g, with({2, 2}));
  sampler.require_layers(2);
  sample s;
  expect_error<shape_error>("twice", [&] { sampler(std::vector<global_index>{1, 1}, 0, s); });
  sampler(std::vector<global_index>{1, 8}, 0, s);
  check_sample(s, {1, 8});
  sampler(std::vector<global_index>{}, 0, s);
  check_sample(s, {});
}

}  // namespace test_neighbour_sampler
