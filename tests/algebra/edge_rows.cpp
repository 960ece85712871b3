// SPDX-License-Identifier: Apache-2.0
// Rows of vertices on edges and their sums at vertices, everywhere, as each other's adjoints.
#include "partita/algebra/edge_rows.hpp"

#include "support/edge_matrices.hpp"

namespace test_edge_rows {

using namespace test_support;
using algebra::edge_end;

constexpr matrix_shape shape{31, 31};

/// The sum of the rows of the edges at every source, or target, by the definition.
std::vector<double> by_definition(const std::vector<triplet<double>>& entries, edge_end end,
                                  global_index width) {
  std::vector<double> x(static_cast<std::size_t>(shape.rows * width), 0);
  for (const auto& e : entries)
    for (global_index j = 0; j < width; ++j)
      x[static_cast<std::size_t>((end == edge_end::source ? e.col : e.row) * width + j)] +=
          edge_entry(e.row, e.col, j);
  return x;
}

TEST_CASE("rows come to edges and sums go back from them, in any layout, with words as predicted") {
  const auto entries = sparse_entries(shape, 4);
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index width, row_exchange rows) {
    const auto a = distribute(m, p.sparse, shape, share(entries, m));
    for (const layout l : {p.dense, vertex_rows, replicated})
      for (const edge_end end : {edge_end::source, edge_end::target}) {
        const auto x = generate<double>(m, l, {shape.rows, width}, field(0));
        algebra::edge_gather_plan gather(a, end, x, rows);
        algebra::edge_scatter_plan scatter(a, end, x);
        host_edges e(a, width);
        m.ledger().clear();
        gather(x, e);
        same(heard(m), gather.predicted(), "rows to edges");
        CHECK_MESSAGE(
            largest_error(
                e, [&](auto v, auto u, auto h) { return element(end == edge_end::source ? u : v, h); }) == 0,
            std::string(p.name), " on ", to_string(m.shape()), " in ", to_string(l));

        fill_edges(e, edge_entry);
        host_dense<> sums(m, l, x.row_blocking(), x.col_blocking());
        fill(m.queue(), -1.0, sums.local());
        m.ledger().clear();
        scatter(e, sums);
        same(heard(m), scatter.predicted(), "sums of edges");
        check_equals(sums, by_definition(entries, end, width), 1e-12, "sums of edges");
      }
  });
}

}  // namespace test_edge_rows
