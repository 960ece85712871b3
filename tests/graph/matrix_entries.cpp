// SPDX-License-Identifier: Apache-2.0
// R (A + w I) C from a graph's edges, against dense matrices, and what is counted and summed over edges.
#include "partita/graph/matrix_entries.hpp"

#include "partita/graph/duplicate_edges.hpp"
#include "partita/graph/features.hpp"
#include "partita/graph/propagation_matrices.hpp"
#include "partita/sampling/graph.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"

namespace test_matrix_entries {

using namespace test_support;
using entries_of_graph = graph::matrix_entries<double>;

constexpr global_index n = 17;

/// A weighted graph with edges that repeat and loops, one of them repeated; with weights that do not add up
/// to the same in every order.
io::dataset repeated_graph(bool weighted) {
  io::dataset data = directed_graph(n);
  std::vector<io::edge>& edges = data.edges.edit();
  const auto once = edges.size();
  for (std::size_t e = 0; e < once; e += 2)
    for (int times = 0; times < 3; ++times) edges.push_back(edges[e]);
  for (const global_index v : {2, 5, 2, 11}) edges.push_back({v, v});
  std::vector<double>& weights = data.edge_weights.edit();
  for (std::size_t e = weights.size(); e < edges.size(); ++e)
    weights.push_back((e % 3 == 0 ? 1e9 : 1) * base::random_uniform(7, e, 0));
  if (!weighted) weights.clear();
  return data;
}

using dense_values = std::vector<double>;

std::size_t place(global_index row, global_index col) { return static_cast<std::size_t>(row * n + col); }

/// A + w I, row-major.
dense_values dense_sum(const io::dataset& data, bool weighted, double w) {
  dense_values a(static_cast<std::size_t>(n * n), 0);
  for (std::size_t e = 0; e < data.edges.size(); ++e)
    a[place(data.edges[e].target, data.edges[e].source)] +=
        weighted && !data.edge_weights.empty() ? data.edge_weights[e] : 1;
  for (global_index v = 0; v < n; ++v) a[place(v, v)] += w;
  return a;
}

/// What the entries of all ranks make, as distribute does: sums, then their final values.
dense_values made(const communicator& world, const entries_of_graph& entries) {
  dense_values a(static_cast<std::size_t>(n * n), 0);
  for (const triplet<double>& e : entries) a[place(e.row, e.col)] += e.value;
  world.all_reduce(a);
  for (global_index i = 0; i < n; ++i)
    for (global_index j = 0; j < n; ++j) a[place(i, j)] = entries.final_value(i, j, a[place(i, j)]);
  return a;
}

entries_of_graph::scale diagonal(double shift) {
  auto values = std::make_shared<std::vector<double>>();
  for (global_index v = 0; v < n; ++v) values->push_back(shift + static_cast<double>(v) / 8);
  return values;
}

dense_values scaled(dense_values a, const entries_of_graph::scale& r, const entries_of_graph::scale& c) {
  for (global_index i = 0; i < n; ++i)
    for (global_index j = 0; j < n; ++j)
      a[place(i, j)] *=
          (r ? (*r)[static_cast<std::size_t>(i)] : 1) * (c ? (*c)[static_cast<std::size_t>(j)] : 1);
  return a;
}

void check_near(const dense_values& got, const dense_values& expected) {
  double largest = 0;
  for (const double v : expected) largest = std::max(largest, std::abs(v));
  CHECK(largest_difference(got, expected) <= 1e-14 * largest);
}

constexpr auto rank_counts_tried = {1, 2, 3, 4, 6, 8, 9, 12};

TEST_CASE("matrix_entries: R (A + w I) C, on any number of ranks") {
  const auto r = diagonal(0.5), c = diagonal(-1);
  for (const bool weighted : {true, false}) {
    const io::dataset data = repeated_graph(weighted);
    for (const int ranks : {1, 2, 3, 20})
      on_threads(ranks, [&](const communicator& world) {
        const entries_of_graph a(world, data);
        check_near(made(world, a), dense_sum(data, true, 0));
        check_near(made(world, a.with_loops(1)), dense_sum(data, true, 1));
        check_near(made(world, a.with_loops(1.25)), dense_sum(data, true, 1.25));
        check_near(made(world, a.unweighted()), dense_sum(data, false, 0));
        check_near(made(world, a.with_loops(1).scaled(r, r)), scaled(dense_sum(data, true, 1), r, r));
        check_near(made(world, a.unweighted().scaled(r, nullptr)),
                   scaled(dense_sum(data, false, 0), r, nullptr));
        check_near(made(world, a.scaled(nullptr, c)), scaled(dense_sum(data, true, 0), nullptr, c));
        CHECK(a.has_ones() == !weighted);
        CHECK(a.with_loops(1).has_ones() == !weighted);
        CHECK_FALSE(a.with_loops(1.25).has_ones());
        CHECK(a.unweighted().with_loops(1).has_ones());
        a.forget();
        check_near(made(world, a), dense_sum(data, true, 0));
      });
  }
}

TEST_CASE("matrix_entries: another precision, and its range") {
  const io::dataset data = repeated_graph(true);
  on_threads(3, [&](const communicator& world) {
    const auto a = entries_of_graph(world, data).with_loops(0.1).scaled(diagonal(0.1), nullptr);
    const graph::matrix_entries<float> narrow(a);
    REQUIRE(std::distance(narrow.begin(), narrow.end()) == a.end() - a.begin());
    for (std::ptrdiff_t k = 0; k < a.end() - a.begin(); ++k) {
      const triplet<double> wide = a.begin()[k];
      CHECK(narrow.begin()[k] == triplet<float>{wide.row, wide.col, static_cast<float>(wide.value)});
      CHECK(*(a.begin() + k) == wide);
      CHECK(*(a.end() - (a.end() - a.begin() - k)) == wide);
    }
    CHECK(narrow.final_value(3, 4, 2) == static_cast<float>(a.final_value(3, 4, 2)));
    auto at = a.begin();
    CHECK(*at++ == a.begin()[0]);
    CHECK(*at-- == a.begin()[1]);
    CHECK(at == a.begin());
    CHECK(at < a.end());
  });
}

TEST_CASE(
    "weighted_degrees: row sums of the dense matrix; reproducible ones have the same bits on any number of "
    "ranks") {
  for (const bool weighted : {true, false}) {
    const io::dataset data = repeated_graph(weighted);
    for (const double w : {0.0, 1.0, 0.3}) {
      dense_values expected(static_cast<std::size_t>(n), 0), alone;
      const dense_values a = dense_sum(data, true, w);
      for (global_index i = 0; i < n; ++i)
        for (global_index j = 0; j < n; ++j) expected[static_cast<std::size_t>(i)] += a[place(i, j)];
      for (const int ranks : rank_counts_tried)
        on_threads(ranks, [&](const communicator& world) {
          const entries_of_graph entries =
              w == 0 ? entries_of_graph(world, data) : entries_of_graph(world, data).with_loops(w);
          check_near(graph::weighted_degrees(world, entries), expected);
          const std::vector<double> sums = graph::weighted_degrees(world, entries, {.reproducible = true});
          check_near(sums, expected);
          if (ranks == 1) alone = sums;
          CHECK(sums == alone);
        });
    }
  }
}

TEST_CASE("duplicate_edges: every edge but the first of its place") {
  io::dataset none = directed_graph(n), empty;
  empty.vertices = 3;
  io::dataset few = empty;
  few.edges = {{0, 1}, {1, 0}, {2, 2}, {0, 1}, {2, 2}, {0, 1}, {1, 2}};
  const io::dataset many = repeated_graph(true);
  global_index expected = 1;  // of the loops
  for (std::size_t e = 0; e < none.edges.size(); e += 2) expected += 3;
  for (const int ranks : rank_counts_tried)
    on_threads(ranks, [&](const communicator& world) {
      CHECK(graph::duplicate_edges(world, none) == 0);
      CHECK(graph::duplicate_edges(world, empty) == 0);
      CHECK(graph::duplicate_edges(world, few, {.threads = 2}) == 3);
      CHECK(graph::duplicate_edges(world, many, {.threads = 3}) == expected);
    });
}

TEST_CASE("features are divided by their row sums only where none of all rows is negative") {
  const auto scaled_features = [](io::feature_table table, bool raw) {
    io::dataset data;
    data.vertices = table.rows, data.features = table.cols;
    data.vertex_features = std::move(table);
    dense_values found, columns;
    on_mesh({1, 1, 1}, [&](const host_mesh& m) {
      const auto x = graph::local_features<double>(m, data, raw);
      found.assign(x.values().begin(), x.values().end());
      const auto y = graph::local_feature_columns<double>(m, data, raw);
      columns.assign(y.values().begin(), y.values().end());
    });
    CHECK(found == columns);
    return found;
  };
  const io::feature_table counts(2, 2, dense_values{1, 3, 0, 0}),
      signs(2, 2, dense_values{1, 3, -1, 1 + 1e-9});
  CHECK(scaled_features(counts, false) == dense_values{0.25, 0.75, 0, 0});
  CHECK(scaled_features(counts, true) == dense_values{1, 3, 0, 0});
  CHECK(scaled_features(signs, false) == scaled_features(signs, true));
  // Sums whose inverses are not finite in the precision divide nothing.
  CHECK(scaled_features(io::feature_table(1, 2, dense_values{1e-310, 0}), false) == dense_values{1e-310, 0});
  CHECK(scaled_features(io::feature_table(1, 2, dense_values{1e308, 1e308}), false) ==
        dense_values{1e308, 1e308});

  io::csr_array<double> sparse{2, 2, {0, 1, 2}, {0, 1}, {4, -2}};
  CHECK(scaled_features(io::feature_table(sparse), false) == dense_values{4, 0, 0, -2});
  sparse.values = {4, 2};
  CHECK(scaled_features(io::feature_table(std::move(sparse)), false) == dense_values{1, 0, 0, 1});
}

using propagation = graph::propagation_matrix;

/// Whether the matrix for `of` stores factors, on every mesh; its values are those with weights of 1.
bool stores_factors(const host_mesh& m, const policy& p, io::dataset data, propagation of,
                    const graph::matrix_options& options = {}) {
  const auto made_by = [&] {
    return graph::propagation_matrices<double, host>(m, data, options, p).matrix_for(of);
  };
  const auto a = made_by();
  data.edge_weights.edit().assign(data.edges.size(), 1.0);
  const auto b = made_by();
  CHECK(a.local()->form.factored == transposed(a).local()->form.factored);
  for (const auto& [found, expected] : {std::pair(a, b), std::pair(transposed(a), transposed(b))}) {
    const auto values = found.local()->values_of_entries(m.queue()),
               known = expected.local()->values_of_entries(m.queue());
    CHECK(largest_difference(values, known) < 1e-15);
  }
  return a.local()->form.factored;
}

/// A propagation matrix that is normalised, row-major, as its formula says.
dense_values normalised(const io::dataset& data, propagation of, graph::self_loops loops) {
  dense_values a = dense_sum(data, true, 0);
  const bool mean = of == propagation::mean_normalized;
  std::vector<bool> there(static_cast<std::size_t>(n), false);
  for (const io::edge& e : data.edges)
    if (e.source == e.target) there[static_cast<std::size_t>(e.source)] = true;
  for (global_index v = 0; v < n && !mean; ++v)
    if (loops == graph::self_loops::sum || !there[static_cast<std::size_t>(v)]) a[place(v, v)] += 1;
  const auto scale = std::make_shared<dense_values>();
  for (global_index i = 0; i < n; ++i) {
    double sum = 0;
    for (global_index j = 0; j < n; ++j) sum += a[place(i, j)];
    scale->push_back(sum > 0 ? mean ? 1 / sum : 1 / std::sqrt(sum) : 0);
  }
  return scaled(std::move(a), scale, mean ? nullptr : scale);
}

TEST_CASE("propagation matrices are those of the loops and weights that are asked for") {
  for (const bool weighted : {false, true}) {
    const io::dataset data = repeated_graph(weighted);
    for (const mesh_shape shape : {mesh_shape{1, 1, 1}, mesh_shape{3, 1, 1}})
      on_mesh(shape, [&](const host_mesh& m) {
        const auto check = [&](propagation of, graph::self_loops loops) {
          graph::matrix_options o;
          o.loops = loops;
          const auto a = graph::propagation_matrices<double, host>(m, data, o, row_1d).matrix_for(of);
          const sampling::graph<double> rows(a);
          dense_values found(static_cast<std::size_t>(n * n), 0);
          for (global_index v = rows.row_range().begin; v < rows.row_range().end; ++v)
            for (local_index k = 0; k < rows.row(v).count; ++k) {
              const std::size_t e = rows.row(v).begin + static_cast<std::size_t>(k);
              found[place(v, rows.columns()[e])] = rows.values()[e];
            }
          m.world().all_reduce(found);
          check_near(found, normalised(data, of, loops));
        };
        for (const auto loops : {graph::self_loops::sum, graph::self_loops::once})
          check(propagation::gcn_normalized, loops);
        check(propagation::mean_normalized, graph::self_loops::sum);
      });
  }
}

TEST_CASE("propagation matrices without weights and repeated edges store no values") {
  io::dataset once = directed_graph(n), repeated = repeated_graph(false), weighted = once;
  for (io::edge& e : once.edges.edit())
    if (e.source == e.target) e.target = (e.target + 1) % n;
  std::vector<io::edge>& edges = once.edges.edit();
  std::ranges::sort(edges, {}, [](const io::edge& e) { return std::pair(e.source, e.target); });
  edges.erase(std::ranges::unique(edges).begin(), edges.end());
  for (global_index v = 0; v < n; ++v)
    for (const global_index step : {1, 2, 5, 6, 7, 10, 12}) edges.push_back({v, (v + step) % n});
  std::ranges::sort(edges, {}, [](const io::edge& e) { return std::pair(e.source, e.target); });
  edges.erase(std::ranges::unique(edges).begin(), edges.end());
  once.edge_weights.edit().clear();
  weighted.edge_weights.edit().assign(weighted.edges.size(), 2.0);
  graph::matrix_options shifted;
  shifted.epsilon = 0.5;
  for (const mesh_shape shape : {mesh_shape{1, 1, 1}, mesh_shape{2, 2, 1}, mesh_shape{3, 1, 1}})
    on_mesh(shape, [&](const host_mesh& m) {
      const policy& p = shape.col > 1 ? grid_2d : row_1d;
      for (const propagation of : {propagation::gcn_normalized, propagation::mean_normalized,
                                   propagation::weighted_self, propagation::self_loops}) {
        CHECK(stores_factors(m, p, once, of));
        CHECK(!stores_factors(m, p, repeated, of));
      }
      CHECK(!stores_factors(m, p, once, propagation::weighted_self, shifted));
      const graph::propagation_matrices<double, host> of_weights(m, weighted, {}, p);
      CHECK(!of_weights.gcn_normalized().local()->form.factored);
      CHECK(!of_weights.matrix_for(propagation::mean_normalized).local()->form.factored);
    });
}

}  // namespace test_matrix_entries
