// SPDX-License-Identifier: Apache-2.0
// Attention as a composition against finite differences and against the layer with a backward of its own.
#include "partita/autodiff/edge_products.hpp"

#include "support/edge_tapes.hpp"

namespace test_autodiff_edge_products {

using namespace partita;
using namespace test_support;

constexpr global_index n = 9, f = 4;

TEST_CASE("dot products on edges, their softmax, and sums weighted with it") {
  on_patterns(n, [](const host_pattern& a) {
    const auto& m = a.mesh();
    auto x = generate<vertex_rows, double>(m, {n, f}, [](auto i, auto j) { return element(i, j) / 3; });
    auto w = generate<replicated, double>(m, {f, f}, [](auto i, auto j) { return element(i, j + 3) / 3; });
    host_edges given(a, 2);
    fill_edges(given, edge_entry);
    host_tape t(m);
    const auto h = t.input(x), weight = t.parameter(w);
    const auto keys = redistribute(gemm(h, weight), *a.operand_layout()),
               queries = redistribute(h, *a.operand_layout());
    const auto e = t.input(given);
    const auto s = sddmm(a, keys, queries, 2) + 0.3 * e;
    const auto y = spmm(dropout(edge_softmax(s), 0.25, {.seed = 4}), keys);
    const auto loss = sum(redistribute(y * queries, vertex_rows)) + sum(edge_softmax(s) * e);
    check_tape(t, loss, x, h, w, weight);
    check_edge_gradient(t, loss, given, e, sparse_entries({n, n}, 3));
  });
}

}  // namespace test_autodiff_edge_products
