// SPDX-License-Identifier: Apache-2.0
// Sums of rows, columns and all, and row-wise softmax, on every layout, with what travels.
#include "partita/algebra/reductions.hpp"

#include "support/matrices.hpp"

namespace test_reductions {

using namespace test_support;

constexpr auto shapes = {matrix_shape{23, 10}, matrix_shape{2, 3}, matrix_shape{1, 1}, matrix_shape{5, 0},
                         matrix_shape{0, 4}};

/// What this rank receives in an all-reduce of `count` elements over the ranks along `group`.
traffic reduced_along(const host_mesh& m, axis_set group, global_index count) {
  return all_reduced(count, partition::rank_in_group(m.shape(), group, m.at()), m.shape().size(group));
}

double row_sum(global_index i, global_index cols) {
  double total = 0;
  for (global_index j = 0; j < cols; ++j) total += element(i, j, 1);
  return total;
}
double column_sum(global_index j, global_index rows) {
  double total = 0;
  for (global_index i = 0; i < rows; ++i) total += element(i, j, 1);
  return total;
}

/// Rows of ordinary numbers, of numbers whose exponentials overflow or vanish, of both, and of equal ones.
double logit(global_index i, global_index j) {
  switch (i % 5) {
    case 0:
      return 4 * element(i, j, 3);
    case 1:
      return 1e4 + element(i, j, 3);
    case 2:
      return -1e4 + 3 * element(i, j, 3);
    case 3:
      return j == (7 * i) % 10 ? 750 : -800 * element(i, j, 3);
    default:
      return -1e300;
  }
}
double probability(global_index i, global_index j, global_index cols) {
  long double total = 0;  // exp(x(i, j)) / sum over k of exp(x(i, k))
  for (global_index k = 0; k < cols; ++k)
    total += std::exp(static_cast<long double>(logit(i, k)) - logit(i, j));
  return static_cast<double>(1 / total);
}

TEST_CASE("sum") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    const auto x = generate<double>(m, l, size, field(1));
    double expected = 0;
    for (global_index i = 0; i < size.rows; ++i) expected += row_sum(i, size.cols);
    const double total = sum(x);
    CHECK(std::abs(total - expected) <= 1e-13);
    same(heard(m), reduced_along(m, l.used(), 1), "sum");
    double least_and_most[] = {-total, total};
    m.world().all_reduce(std::span<double>(least_and_most), reduction::max);
    CHECK(-least_and_most[0] == least_and_most[1]);  // the same bits on every rank
  });
}

TEST_CASE("column_sums") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    const auto x = generate<double>(m, l, size, field(1));
    auto sums = generate<replicated, double>(m, {1, size.cols}, [](auto, auto) { return 77.0; });
    column_sums(x, sums);
    check_equals(
        sums, [&](global_index, global_index j) { return column_sum(j, size.rows); }, 1e-13, "column_sums");
    same(heard(m), reduced_along(m, l.used(), size.cols), "column_sums");
    check_equals(x, field(1), 0, "X of column_sums");
  });
}

TEST_CASE("row_sums") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    const auto x = generate<double>(m, l, size, field(1));
    auto sums = generate<double>(m, partition::rows_of(l), {size.rows, 1}, [](auto, auto) { return 77.0; });
    row_sums(x, sums);
    check_equals(
        sums, [&](global_index i, global_index) { return row_sum(i, size.cols); }, 1e-13, "row_sums");
    same(heard(m), reduced_along(m, l.cols, x.row_range().size()), "row_sums");
  });
}

TEST_CASE("row_softmax: numbers of any size, rows whole or spread") {
  on_some_layouts(shapes, [](const host_mesh& m, layout l, matrix_shape size) {
    auto x = generate<double>(m, l, size, logit);
    const auto expected = [&](global_index i, global_index j) { return probability(i, j, size.cols); };
    host_dense<> y(m, l, size);
    row_softmax(x, y);
    check_equals(y, expected, 1e-13, "row_softmax");
    const global_index rows = x.row_range().size();
    same(heard(m), 2 * reduced_along(m, l.cols, rows), "row_softmax");

    host_dense<> sums(m, partition::rows_of(l), matrix_shape{size.rows, 1});
    row_sums(y, sums);
    if (size.cols > 0)
      check_equals(
          sums, [](auto, auto) { return 1.0; }, 1e-13, "row sums of row_softmax");
    check_equals(x, logit, 0, "X of row_softmax");
    row_softmax(x, x);
    check_equals(x, expected, 1e-13, "row_softmax in place");
  });
}

TEST_CASE("reductions: blockings of one's own, floats") {
  for (const mesh_shape shape : {mesh_shape{2, 2, 1}, mesh_shape{3, 2, 2}})
    on_mesh(shape, [](const host_mesh& m) {
      const std::vector<global_index> weights = {0, 9, 1, 1, 0, 1, 12};
      const blocking rows = blocking::balanced(weights, m.shape(), nesting::rows);
      const blocking cols = blocking::given({0, 8}, m.shape(), nesting::cols);
      for_each_layout([&](layout l) {
        const auto x = generate<float>(m, l, rows, cols, field(1));
        double expected = 0;
        for (global_index i = 0; i < 7; ++i) expected += row_sum(i, 8);
        CHECK(std::abs(sum(x) - expected) <= 1e-5);
        host_dense<float, replicated> columns(m, matrix_shape{1, 8});
        column_sums(x, columns);
        check_equals(
            columns, [](global_index, global_index j) { return column_sum(j, 7); }, 1e-5,
            "column_sums of floats");
        host_dense<float> row_totals(m, partition::rows_of(l), rows,
                                     blocking::even(1, m.shape(), nesting::cols));
        row_sums(x, row_totals);
        check_equals(
            row_totals, [](global_index i, global_index) { return row_sum(i, 8); }, 1e-5,
            "row_sums of floats");
        const auto z = generate<double>(m, l, rows, cols, logit);
        host_dense<> y(m, l, rows, cols);
        row_softmax(z, y);
        check_equals(
            y, [](global_index i, global_index j) { return probability(i, j, 8); }, 1e-13, "row_softmax");
      });
    });
}

TEST_CASE("reductions: the sum of a matrix that was moved from is refused") {
  expect_error<error>({2, 1, 1}, "a matrix was used after it had been moved from", [](const host_mesh& m) {
    auto x = generate<row_1d.dense, double>(m, {5, 4}, field(1));
    const auto y = std::move(x);
    sum(x);
  });
}

TEST_CASE("reductions: results that do not fit are named") {
  const auto refused = [](const std::string& message, auto act) {
    expect_error<shape_error>({2, 2, 1}, message, [&](const host_mesh& m) {
      const auto x = generate<grid_2d.dense, double>(m, {5, 4}, field(1));
      act(m, x);
    });
  };
  for (const matrix_shape wrong : {matrix_shape{1, 5}, matrix_shape{2, 4}, matrix_shape{4, 1}})
    refused("column sums of 5 x 4 cannot be stored in " + to_string(wrong),
            [&](const host_mesh& m, const auto& x) {
              host_dense<double, replicated> sums(m, wrong);
              column_sums(x, sums);
            });
  for (const matrix_shape wrong : {matrix_shape{4, 1}, matrix_shape{5, 2}, matrix_shape{1, 5}})
    refused("row sums of 5 x 4 cannot be stored in " + to_string(wrong),
            [&](const host_mesh& m, const auto& x) {
              host_dense<double, row_1d.dense> sums(m, wrong);
              row_sums(x, sums);
            });
  for (const matrix_shape wrong : {matrix_shape{5, 3}, matrix_shape{6, 4}})
    refused("row_softmax needs operands of the same shape and blockings, not 5 x 4 and " + to_string(wrong),
            [&](const host_mesh& m, const auto& x) {
              host_dense<double, grid_2d.dense> y(m, wrong);
              row_softmax(x, y);
            });
}

}  // namespace test_reductions
