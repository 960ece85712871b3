// SPDX-License-Identifier: Apache-2.0
// Functions, products and sums of edge matrices: each entry counts once, on every policy and mesh.
#include "partita/algebra/edge_verbs.hpp"

#include "partita/algebra/gemm.hpp"
#include "support/edge_matrices.hpp"

namespace test_edge_verbs {

using namespace test_support;

constexpr matrix_shape shape{31, 31};
constexpr global_index wide = 4;

double weight_entry(global_index i, global_index j) { return element(i, j, 3); }
double gradient_entry(global_index v, global_index u, global_index h) { return edge_entry(u, v + 1, h); }

TEST_CASE("products with a replicated weight and their adjoints") {
  const auto entries = sparse_entries(shape, 4);
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index k, row_exchange) {
    const auto a = distribute(m, p.sparse, shape, share(entries, m));
    const auto w = generate<replicated, double>(m, {k, wide}, weight_entry);
    const auto bias = generate<replicated, double>(m, {1, wide}, field(5));
    host_edges x(a, k), y(a, wide), g(a, wide), dx(a, k);
    fill_edges(x, edge_entry);
    fill_edges(g, gradient_entry);
    m.ledger().clear();
    gemm(x, w, y, &bias, true);
    const auto product = [&](auto v, auto u, auto h) {
      double total = element(0, h, 5);
      for (local_index j = 0; j < k; ++j) total += edge_entry(v, u, j) * weight_entry(j, h);
      return std::max(total, 0.0);
    };
    CHECK(largest_error(y, product) < 1e-12);
    fill_edges(dx, edge_entry);
    gemm(g, transposed(w), dx, 1.0);
    const auto adjoint = [&](auto v, auto u, auto j) {
      double total = edge_entry(v, u, j);
      for (global_index h = 0; h < wide; ++h) total += gradient_entry(v, u, h) * weight_entry(j, h);
      return total;
    };
    CHECK(largest_error(dx, adjoint) < 1e-12);
    CHECK(heard(m).words == 0);

    std::vector<double> inner(static_cast<std::size_t>(k * wide), 0), columns(wide, 0);
    for (const auto& e : entries)
      for (global_index h = 0; h < wide; ++h) {
        columns[static_cast<std::size_t>(h)] += gradient_entry(e.row, e.col, h);
        for (local_index j = 0; j < k; ++j)
          inner[static_cast<std::size_t>(j * wide + h)] +=
              edge_entry(e.row, e.col, j) * gradient_entry(e.row, e.col, h);
      }
    host_dense<double, replicated> dw(m, {k, wide}), sums(m, {1, wide});
    algebra::weight_gradient(x, g, dw);
    check_equals(dw, inner, 1e-11, "the gradient of a weight");
    const axis_set axes = p.sparse.used();
    comm::collective op;
    op.kind = operation::all_reduce;
    op.count = k * wide;
    same(heard(m), received(op, partition::rank_in_group(m.shape(), axes, m.at()), m.shape().size(axes)),
         "the gradient of a weight");
    column_sums(g, sums);
    check_equals(sums, columns, 1e-11, "sums of columns");
  });
}

TEST_CASE("functions of values, and sums over all entries") {
  const auto entries = sparse_entries(shape, 4);
  double total = 0, squares = 0;
  for (const auto& e : entries)
    for (global_index h = 0; h < 3; ++h) {
      total += edge_entry(e.row, e.col, h);
      squares += edge_entry(e.row, e.col, h) * edge_entry(e.row, e.col, h);
    }
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index k, row_exchange) {
    if (k != 3) return;
    const auto a = distribute(m, p.sparse, shape, share(entries, m));
    host_edges x(a, k), y(a, k), z(a, k);
    fill_edges(x, edge_entry);
    CHECK(sum(x) == doctest::Approx(total));
    CHECK(norm(x) == doctest::Approx(std::sqrt(squares)));
    transform(x, y, [](double v) { return 2 * v; });
    zip(x, y, z, [](double v, double w) { return v * w; });
    algebra::update(
        x, [](double v, double& w, double& u) { w += v, u -= w; }, y, z);
    CHECK(largest_error(y, [](auto v, auto u, auto h) { return 3 * edge_entry(v, u, h); }) < 1e-14);
    CHECK(largest_error(z, [](auto v, auto u, auto h) {
            const double value = edge_entry(v, u, h);
            return 2 * value * value - 3 * value;
          }) < 1e-12);
  });
}

TEST_CASE("other patterns and widths are refused") {
  on_mesh({1, 1, 1}, [](const host_mesh& m) {
    const auto a = distribute(m, row_1d, shape, sparse_entries(shape, 4)),
               b = distribute(m, row_1d, shape, sparse_entries(shape, 5));
    host_edges x(a, 2), y(b, 2), z(a, 3);
    const auto same_value = [](double v) { return v; };
    expect_error<shape_error>("share one pattern", [&] { transform(x, y, same_value); });
    expect_error<shape_error>("2 and 3 columns", [&] { transform(x, z, same_value); });
    const auto w = generate<replicated, double>(m, {3, 3}, weight_entry);
    expect_error<shape_error>("2 columns times 3 x 3", [&] { gemm(x, w, z); });
  });
}

}  // namespace test_edge_verbs
