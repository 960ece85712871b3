// SPDX-License-Identifier: Apache-2.0
// The softmax over the rows of an edge matrix, and its adjoint, on every policy and mesh.
#include "partita/algebra/edge_softmax.hpp"

#include <map>

#include "support/edge_matrices.hpp"

namespace test_edge_softmax {

using namespace test_support;

TEST_CASE("the softmax over rows and its gradient") {
  constexpr matrix_shape shape{31, 31};
  const auto entries = sparse_entries(shape, 4);
  const auto gradient_entry = [](auto v, auto u, auto h) { return edge_entry(u, v, h + 3); };
  std::map<std::pair<global_index, global_index>, double> sums, means;  // of row and head
  for (const auto& e : entries)
    for (int h = 0; h < 3; ++h) sums[{e.row, h}] += std::exp(edge_entry(e.row, e.col, h));
  const auto alpha = [&](auto v, auto u, auto h) { return std::exp(edge_entry(v, u, h)) / sums.at({v, h}); };
  for (const auto& e : entries)
    for (int h = 0; h < 3; ++h) means[{e.row, h}] += alpha(e.row, e.col, h) * gradient_entry(e.row, e.col, h);
  const auto gradient = [&](auto v, auto u, auto h) {
    return alpha(v, u, h) * (gradient_entry(v, u, h) - means.at({v, h}));
  };
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index heads, row_exchange) {
    const auto a = distribute(m, p.sparse, shape, share(entries, m));
    host_edges e(a, heads), d(a, heads);
    fill_edges(e, edge_entry);
    fill_edges(d, gradient_entry);
    const axis_set group = p.sparse.cols;
    const traffic fold =
        all_reduced(a.row_range().size() * heads, partition::rank_in_group(m.shape(), group, m.at()),
                    m.shape().size(group));
    m.ledger().clear();
    edge_softmax(e);
    same(heard(m), fold + fold, "a softmax");
    CHECK_MESSAGE(largest_error(e, alpha) < 1e-12, std::string(p.name), " on ", to_string(m.shape()));
    m.ledger().clear();
    edge_softmax_gradient(e, d);
    same(heard(m), fold, "its gradient");
    CHECK_MESSAGE(largest_error(d, gradient) < 1e-12, std::string(p.name), " on ", to_string(m.shape()));
  });
}

TEST_CASE("values that overflow exp have a finite softmax") {
  on_mesh({2, 1, 1}, [](const host_mesh& m) {
    std::vector<triplet<double>> mine;
    if (m.rank() == 0) mine = {{0, 0, 1}, {0, 3, 1}, {3, 1, 1}, {3, 2, 1}};
    host_edges e(distribute(m, row_1d.sparse, {4, 4}, mine), 1);
    e.values()[0] = 1e4;
    e.values()[1] = m.rank() == 0 ? 1e4 : -1e6;
    edge_softmax(e);
    CHECK(std::vector<double>(e.values().begin(), e.values().end()) ==
          (m.rank() == 0 ? std::vector{0.5, 0.5} : std::vector{1.0, 0.0}));
  });
}

}  // namespace test_edge_softmax
