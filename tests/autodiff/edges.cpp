// SPDX-License-Identifier: Apache-2.0
// Verbs on edge variables against finite differences, under every policy, with words as predicted.
#include "partita/autodiff/edges.hpp"

#include "support/edge_tapes.hpp"

namespace test_autodiff_edges {

using namespace partita;
using namespace test_support;

constexpr global_index n = 9, f = 2, wide = 3;

TEST_CASE("an edge network: rows to edges, products, bias, relu, and sums at the vertices") {
  on_patterns(n, [](const host_pattern& a) {
    const auto& m = a.mesh();
    auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {f, wide}, [](auto i, auto j) { return element(i, j + 3); });
    auto b = generate<replicated, double>(m, {1, wide}, [](auto i, auto j) { return element(i, j + 7); });
    host_edges given(a, f);
    fill_edges(given, edge_entry);
    host_tape t(m);
    const auto h = t.input(x), weight = t.parameter(w), bias = t.parameter(b);
    const auto e = t.input(given);
    const auto ends = gather_sources(a, gemm(h, weight)) + gather_targets(a, gemm(h, weight));
    const auto y = relu(add_row(bias, gemm(e, weight) + ends));
    const auto loss = sum(scatter_targets(y) * scatter_sources(dropout(y, 0.25, {.seed = 2})));
    check_tape(t, loss, x, h, w, weight);
    check_tape(t, loss, x, h, b, bias);
    check_edge_gradient(t, loss, given, e, sparse_entries({n, n}, 3));
  });
}

TEST_CASE("functions of edge variables, and a loss of them") {
  on_patterns(n, [](const host_pattern& a) {
    const auto& m = a.mesh();
    auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {f, f}, [](auto i, auto j) { return element(i, j + 3); });
    host_edges given(a, f);
    fill_edges(given, edge_entry);
    host_tape t(m);
    const auto h = t.input(x), weight = t.parameter(w);
    const auto e = t.input(given);
    const auto y = transform(gather_targets(a, redistribute(h, *a.operand_layout())), [](auto v) {
      using std::exp;
      return exp(v) * v;
    });
    const auto z = zip(y, e, [](auto p, auto q) { return p * q - p; });
    const auto loss = sum(gemm(z, weight) * e - 0.5 * y);
    check_tape(t, loss, x, h, w, weight);
    check_edge_gradient(t, loss, given, e, sparse_entries({n, n}, 3));
  });
}

TEST_CASE("the entries of the first rows, those of a block of sampled neighbours") {
  on_threads(1, [](const communicator& world) {
    const host_mesh m(world, {1, 1, 1});
    const auto entries = sparse_entries({n, n}, 3);
    std::vector<triplet<double>> of_first;
    for (const auto& e : entries)
      if (e.row < 5) of_first.push_back(e);
    const auto cut = [&](global_index rows) { return blocking::even(rows, m.shape(), nesting::rows); };
    const host_pattern all = distribute(m, row_1d, {n, n}, entries),
                       first = distribute(m, row_1d.sparse, cut(5), cut(n), of_first, symmetry::general,
                                          row_1d.dense);
    host_edges given(all, f);
    fill_edges(given, edge_entry);
    host_tape t(m);
    const auto e = t.input(given), some = first_rows(e, first);
    CHECK(first_rows(e, all).pattern().local() == all.local());
    const auto of_some = transform(some, [](auto v) { return v * v; });
    const auto loss = sum(of_some) + sum(transform(e, [](auto v) { return v * v * v; }));
    t.forward();
    double expected = 0;
    for_each_value(given, [&](auto v, auto, auto, double x) { expected += x * x * (x + (v < 5 ? 1 : 0)); });
    CHECK(loss.value() == doctest::Approx(expected));
    check_edge_gradient(t, loss, given, e, entries);
    expect_error<shape_error>("is not the first rows of one of", [&] { first_rows(some, all); });
  });
}

TEST_CASE("the same edges are dropped on any number of ranks") {
  std::vector<double> one_rank;
  on_patterns(n, [&](const host_pattern& a) {
    const auto& m = a.mesh();
    host_edges ones(a, 2);
    fill(ones, 1);
    host_tape t(m);
    const auto kept = t.keep(scatter_targets(dropout(t.input(ones), 0.5, {.seed = 7})));
    t.forward({.training = true, .epoch = 3});
    const auto found = collect(t.value(kept));
    if (m.size() == 1 && one_rank.empty()) one_rank = found;
    CHECK(found == one_rank);
  });
}

TEST_CASE("what does not fit is refused") {
  on_threads(1, [](const communicator& world) {
    const host_mesh m(world, {1, 1, 1});
    const host_pattern a = distribute(m, row_1d, {n, n}, sparse_entries({n, n}, 3)),
                       b = distribute(m, row_1d, {n, n}, sparse_entries({n, n}, 4));
    host_edges of_a(a, 2), of_b(b, 2), wider(a, 3);
    host_dense<double, replicated> w(m, {3, 3});
    host_tape t(m);
    const auto e = t.constant(of_a);
    expect_error<shape_error>("the same pattern and columns", [&] { e + t.constant(of_b); });
    expect_error<shape_error>("the same pattern and columns", [&] { e* t.constant(wider); });
    expect_error<shape_error>("2 columns times W of 3 x 3", [&] { gemm(e, t.parameter(w)); });
    expect_error<error>("has no gradient", [&] { t.gradient(e); });
  });
}

}  // namespace test_autodiff_edges
