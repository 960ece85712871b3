// SPDX-License-Identifier: Apache-2.0
// Layer normalisation of edges against finite differences, under every policy, with words as predicted.
#include "partita/autodiff/edge_norm.hpp"

#include "support/edge_tapes.hpp"

namespace test_autodiff_edge_norm {

using namespace partita;
using namespace test_support;

constexpr global_index n = 9, f = 3;

TEST_CASE("gradients of the normalised rows, of gamma and of beta") {
  on_patterns(n, [](const host_pattern& a) {
    const auto& m = a.mesh();
    auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
    auto gamma = generate<replicated, double>(m, {1, f}, [](auto i, auto j) { return element(i, j + 3); });
    auto beta = generate<replicated, double>(m, {1, f}, [](auto i, auto j) { return element(i, j + 7); });
    host_edges given(a, f);
    fill_edges(given, edge_entry);
    host_tape t(m);
    const auto h = t.input(x), scale = t.parameter(gamma), shift = t.parameter(beta);
    const auto e = t.input(given);
    const auto y = layer_norm(e + gather_sources(a, h), scale, shift, 0.1);
    const auto loss = sum(y * e);
    check_tape(t, loss, x, h, gamma, scale);
    check_tape(t, loss, x, h, beta, shift);
    check_edge_gradient(t, loss, given, e, sparse_entries({n, n}, 3));
  });
}

TEST_CASE("rows have mean 0 and variance 1") {
  on_patterns(n, [](const host_pattern& a) {
    const auto& m = a.mesh();
    auto gamma = generate<replicated, double>(m, {1, f}, [](auto, auto) { return 1; });
    auto beta = generate<replicated, double>(m, {1, f}, [](auto, auto) { return 0; });
    host_edges given(a, f);
    fill_edges(given, edge_entry);
    host_tape t(m);
    const auto y = t.keep(layer_norm(t.constant(given), t.parameter(gamma), t.parameter(beta), 0));
    t.forward();
    const auto values = t.value(y).values();
    for (std::size_t e = 0; e < values.size(); e += f) {
      double sum = 0, squares = 0;
      for (std::size_t j = 0; j < f; ++j) sum += values[e + j], squares += values[e + j] * values[e + j];
      CHECK(sum == doctest::Approx(0));
      CHECK(squares == doctest::Approx(f));
    }
  });
}

TEST_CASE("a gamma of another width is refused") {
  on_patterns(n, [](const host_pattern& a) {
    auto gamma = generate<replicated, double>(a.mesh(), {1, f + 1}, [](auto, auto) { return 1; });
    host_edges given(a, f);
    host_tape t(a.mesh());
    const auto scale = t.parameter(gamma);
    expect_error<shape_error>("need a gamma of 1 x 3, replicated, not 1 x 4",
                              [&] { layer_norm(t.constant(given), scale, scale); });
  });
}

}  // namespace test_autodiff_edge_norm
