// SPDX-License-Identifier: Apache-2.0
// Products with an edge matrix, its transpose, and values computed where they are used, everywhere.
#include "partita/algebra/edge_spmm.hpp"

#include "partita/algebra/elementwise.hpp"
#include "support/edge_matrices.hpp"

namespace test_edge_spmm {

using namespace test_support;

constexpr matrix_shape shape{31, 31};
constexpr global_index width = 6;

/// E X, or E^T X, by the definition.
std::vector<double> by_definition(const std::vector<triplet<double>>& entries, int heads, bool transposed) {
  std::vector<double> y(shape.rows * width, 0);
  for (const auto& e : entries) {
    const global_index to = transposed ? e.col : e.row, from = transposed ? e.row : e.col;
    for (global_index j = 0; j < width; ++j)
      y[static_cast<std::size_t>(to * width + j)] +=
          edge_entry(e.row, e.col, j * heads / width) * element(from, j);
  }
  return y;
}

/// edge_entry as edge_spmm_plan::compute takes it.
auto computed(const host_edges& e) {
  return [&e](std::size_t t, const local::csr_slice<double>& part) {
    const auto& a = e.pattern();
    const global_index row = a.row_range().begin + part.first_row, column = a.tile_columns(t).begin;
    const local_index* const columns = a.local()->columns_of(part);
    return [=, first = e.first_head()](local_index i, local_index entry, local_index h) {
      return edge_entry(row + i, column + columns[entry], first + h);
    };
  };
}

TEST_CASE("products with an edge matrix and its transpose, with words as predicted") {
  const auto entries = sparse_entries(shape, 4);
  for_each_edge_case([&](const host_mesh& m, const policy& p, local_index heads, row_exchange rows) {
    const auto a = distribute(m, p.sparse, shape, share(entries, m));
    const auto x = generate<double>(m, p.dense, {shape.cols, width}, field(0));
    const auto product = by_definition(entries, heads, false), adjoint = by_definition(entries, heads, true);
    edge_spmm_plan multiply(a, x, heads, rows), multiply_stored(transposed(a), x, heads, rows);
    algebra::transposed_edge_spmm_plan multiply_transposed(multiply);
    host_dense<> y(m, p.dense, x.row_blocking(), x.col_blocking());
    const auto run = [&](const auto& plan, auto act, const std::vector<double>& expected, const char* what) {
      fill(y, -1);
      m.ledger().clear();
      act();
      same(heard(m), plan.predicted(), what);
      check_equals(y, expected, 1e-12, what);
    };
    host_edges e(a, heads), transposed_e(transposed(a), heads);
    fill_edges(e, edge_entry);
    fill_edges(transposed_e, [](auto u, auto v, auto h) { return edge_entry(v, u, h); });
    run(
        multiply, [&] { multiply(e, x, y); }, product, "E X");
    run(
        multiply_transposed, [&] { multiply_transposed(e, x, y); }, adjoint, "E^T X");
    run(
        multiply_stored, [&] { multiply_stored(transposed_e, x, y); }, adjoint, "E^T X with A^T stored");

    host_edges some(a, multiply.heads_here());
    run(
        multiply, [&] { multiply.compute(some, computed(some), x, y); }, product, "E X with computed E");
    run(
        multiply, [&] { multiply(some, x, y); }, product, "E X with what that stored");
  });
}

TEST_CASE("heads that do not divide the width, and layouts that do not fit, are refused") {
  const auto plan = [](layout l, local_index heads) {
    on_mesh({2, 1, 1}, [&](const host_mesh& m) {
      const auto a = distribute(m, row_1d.sparse, shape, std::vector<triplet<double>>{});
      const edge_spmm_plan multiply(a, l, blocking::even(width, m.shape(), nesting::cols), heads);
    });
  };
  expect_error<shape_error>("4 heads do not divide a width of 6", [&] { plan(row_1d.dense, 4); });
  expect_error<shape_error>("cannot be multiplied", [&] { plan(feature_column.dense, 1); });
}

}  // namespace test_edge_spmm
