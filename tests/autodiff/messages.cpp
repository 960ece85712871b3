// SPDX-License-Identifier: Apache-2.0
// Messages on variables against finite differences, under every policy, with words as predicted.
#include "partita/autodiff/messages.hpp"

#include "support/edge_tapes.hpp"

namespace test_autodiff_messages {

using namespace partita;
using namespace test_support;

constexpr global_index n = 9, f = 4;

TEST_CASE(
    "messages of both ends and the edges, with the sum, of sources alone, with the mean, and of others") {
  on_patterns(n, [](const host_pattern& a) {
    const auto& m = a.mesh();
    auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {f, f}, [](auto i, auto j) { return element(i, j + 3); });
    const auto fixed =
        generate<double>(m, *a.operand_layout(), {n, f}, [](auto i, auto j) { return element(i, j + 1); });
    host_edges given(a, 2), constant(a, 1);
    fill_edges(given, edge_entry);
    fill_edges(constant, edge_entry);
    host_tape t(m);
    const auto h = t.input(x), weight = t.parameter(w);
    const auto y = redistribute(gemm(h, weight), *a.operand_layout());
    const auto e = t.input(given);
    const auto both = messages(a, y, e, [](auto u, auto v, auto q) { return u * v * q + u; }, {.heads = 2});
    const auto alone = messages(a, y, [](auto u, auto q) { return u * u * q; },
                                {.reduction = algebra::message_reduction::mean});
    const auto others = messages(a, t.constant(fixed), {.targets = y, .edges = t.constant(constant)},
                                 [](auto u, auto v, auto q) { return u * v + q; });
    const auto loss = sum(redistribute(both * alone + others, vertex_rows));
    check_tape(t, loss, x, h, w, weight);
    check_edge_gradient(t, loss, given, e, sparse_entries({n, n}, 3));
  });
}

TEST_CASE("messages and scores with parameters, and maxima") {
  on_patterns(n, [](const host_pattern& a) {
    const auto& m = a.mesh();
    auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j); });
    auto w = generate<replicated, double>(m, {2, f}, [](auto i, auto j) { return element(i, j + 3); });
    host_edges given(a, 2);
    fill_edges(given, edge_entry);
    host_tape t(m);
    const auto h = t.input(x), weight = t.parameter(w);
    const auto y = redistribute(h, *a.operand_layout());
    const auto e = t.input(given);
    const auto largest = messages(a, y, {.edges = e, .parameters = weight},
                                  algebra::with_parameters<2>([](auto u, auto v, auto q, const auto& p) {
                                    return p[0] * u + p[1] * v * q;
                                  }),
                                  {.heads = 2, .reduction = algebra::message_reduction::max});
    const auto s = message_scores(a, y, {.targets = y, .edges = e, .parameters = weight},
                                  algebra::with_parameters<2>([](auto u, auto v, auto q, const auto& p) {
                                    return p[0] * u * v + p[1] * q;
                                  }),
                                  {.heads = 4});
    const auto loss = sum(redistribute(largest, vertex_rows) * scatter_targets(s));
    check_tape(t, loss, x, h, w, weight);
    check_edge_gradient(t, loss, given, e, sparse_entries({n, n}, 3));
  });
}

}  // namespace test_autodiff_messages
