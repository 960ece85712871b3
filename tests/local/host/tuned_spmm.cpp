// SPDX-License-Identifier: Apache-2.0
// Products with rows in another order have the same bits.
#include "partita/local/host/tuned_spmm.hpp"

#include <doctest/doctest.h>

#include "partita/algebra/dropout.hpp"
#include "partita/local/kernels.hpp"
#include "support/row_graphs.hpp"

namespace test_tuned_spmm {

using namespace partita;
using namespace test_support;
using local::row_order;

template <class T>
std::vector<T> numbers(std::size_t count, std::int64_t seed) {
  std::vector<T> v(count);
  for (std::size_t i = 0; i < count; ++i)
    v[i] = static_cast<T>(base::random_uniform(9, seed, static_cast<std::int64_t>(i)) - 0.5);
  return v;
}

/// y = a x + beta y by the product, beside the kernel; with the first entries of the arrays in other rows.
template <class T>
void check_same_bits(const row_graph& g, local_index f, int threads, T beta,
                     local::tuned_spmm<T, host>& product, const std::vector<T>& values, local_index skipped) {
  const device_queue<host> q(threads);
  const local::csr_view<T> a{g.rows() - skipped, g.cols, g.offsets.data() + skipped, g.columns.data(),
                             values.data()};
  const std::vector<T> x = numbers<T>(static_cast<std::size_t>(g.cols * f), 2);
  std::vector<T> y = numbers<T>(static_cast<std::size_t>(a.rows * (f + 1)), 3), expected = y;
  const auto view = [&](std::vector<T>& of) { return matrix_view<T>{of.data(), a.rows, f, f + 1}; };
  const matrix_view<const T> rows{x.data(), g.cols, f};
  spmm(q, a, rows, beta, view(expected));
  product(q, a, rows, {.beta = beta}, view(y));
  CHECK(y == expected);
}

std::vector<row_graph> graphs() {
  return {grid_graph(40, true),
          grid_graph(9, false),
          random_graph(300, 300, 4),
          skewed_graph(9, 6),
          without_rows(grid_graph(20, true), 3),
          star_graph(500),
          random_graph(200, 900, 5),
          random_graph(900, 200, 5),
          without_rows(random_graph(900, 70, 3), 2),
          random_graph(1, 1, 1),
          random_graph(40, 40, 0)};
}

TEST_CASE_TEMPLATE("another order of rows leaves every bit as it is", T, float, double) {
  for (const row_graph& g : graphs())
    for (const int threads : {1, 3})
      for (const local_index f : {1, 5, 16, 33, 150}) {
        local::tuned_spmm<T, host> product(row_order::clustered);
        for (int run = 0; run < 3; ++run)
          check_same_bits<T>(g, f, threads, T(run) / 2, product, numbers<T>(g.columns.size(), run), 0);
        CHECK(product.reorders() == (g.columns.size() > 0));
      }
}

TEST_CASE("factors and the parts of an epilogue follow their rows") {
  const row_graph g = grid_graph(40, true);
  const auto rows = static_cast<std::size_t>(g.rows());
  const std::vector<float> of_rows = numbers<float>(rows, 4), of_cols = numbers<float>(rows, 5),
                           bias = numbers<float>(20, 6), x = numbers<float>(rows * 20, 7);
  local::csr_view<float> a{g.rows(), g.cols, g.offsets.data(), g.columns.data()};
  const device_queue<host> q(2);
  multiply_factors(q, float());
  local::spmm_epilogue<float> fusion{.alpha = 0.5F, .beta = 2, .bias = bias.data(), .relu = true};
  fusion.drop = {dropout_mask{0.5, {1, 2, 3}}.function<float>(), 7, 3};
  for (const bool by_rows : {false, true})
    for (const bool by_cols : {false, true}) {
      a.row_factors = by_rows ? of_rows.data() : nullptr;
      a.column_factors = by_cols ? of_cols.data() : nullptr;
      std::vector<float> y = numbers<float>(rows * 20, 8), expected = y;
      local::tuned_spmm<float, host> product(row_order::clustered);
      spmm_fused(q, a, {x.data(), g.cols, 20}, fusion, matrix_view<float>{expected.data(), g.rows(), 20});
      product(q, a, {x.data(), g.cols, 20}, fusion, {y.data(), g.rows(), 20});
      CHECK(product.reorders());
      CHECK(y == expected);
    }
}

TEST_CASE("blocks without values are refused in programs that have not asked for their products") {
  const row_graph g = grid_graph(3, true);
  const std::vector<double> x(static_cast<std::size_t>(g.rows()), 1);
  std::vector<double> y(x);
  const local::csr_view<double> a{g.rows(), g.cols, g.offsets.data(), g.columns.data()};
  const matrix_view<double> to{y.data(), g.rows(), 1};
  CHECK_THROWS_WITH_AS(spmm(device_queue<host>(), a, {x.data(), g.cols, 1}, 0, to),
                       "spmm: a block without values needs a call of multiply_factors before", error);
  multiply_factors(device_queue<host>(), double());
  spmm(device_queue<host>(), a, {x.data(), g.cols, 1}, 0, to);
  CHECK(y[0] == g.offsets[1]);
}

TEST_CASE("a part of a block, whose offsets do not begin with 0") {
  const row_graph g = grid_graph(40, true);
  local::tuned_spmm<float, host> product(row_order::clustered);
  for (int run = 0; run < 2; ++run)
    for (const local_index skipped : {0, 1, 700})
      check_same_bits<float>(g, 20, 2, 0, product, numbers<float>(g.columns.size(), run), skipped);
}

TEST_CASE("the second product decides, and only for an X that exceeds the caches") {
  const row_graph g = grid_graph(363, true);  // 363^2 rows of 64 floats are 32.2 MiB
  const std::vector<float> values = numbers<float>(g.columns.size(), 0);
  local::tuned_spmm<float, host> large, small, natural(row_order::natural);
  check_same_bits<float>(g, 64, 1, 0, large, values, 0);
  CHECK_FALSE(large.reorders());
  for (int run = 0; run < 3; ++run) {
    check_same_bits<float>(g, 64, 1, 0, large, numbers<float>(g.columns.size(), run), 0);
    CHECK(large.reorders());
    check_same_bits<float>(g, 8, 1, 0, small, values, 0);
    check_same_bits<float>(g, 64, 1, 0, natural, values, 0);
  }
  CHECK_FALSE(small.reorders());
  CHECK_FALSE(natural.reorders());
}

TEST_CASE("no order is made that exceeds the budget") {
  const row_graph g = grid_graph(40, true);
  const std::vector<float> values = numbers<float>(g.columns.size(), 0), x = numbers<float>(1600 * 4, 1);
  std::vector<float> y(x.size());
  for (const bool fits : {false, true}) {
    const device_queue<host> q;
    const on_host::order_problem p{1600, 1600, g.offsets.data(), g.columns.data(), 16};
    q.meter()->limit(on_host::ordered_rows::bytes(p) - (fits ? 0 : 1));
    local::tuned_spmm<float, host> product(row_order::clustered);
    product(q, {1600, 1600, g.offsets.data(), g.columns.data(), values.data()}, {x.data(), 1600, 4}, {},
            {y.data(), 1600, 4});
    CHECK(product.reorders() == fits);
  }
}

TEST_CASE("shapes that do not match") {
  local::tuned_spmm<float, host> product(row_order::clustered);
  const row_graph g = grid_graph(3, true);
  const std::vector<float> values(g.columns.size()), x(100);
  std::vector<float> y(100);
  const device_queue<host> q;
  CHECK_THROWS_AS(product(q, {9, 9, g.offsets.data(), g.columns.data(), values.data()}, {x.data(), 8, 2}, {},
                          {y.data(), 9, 2}),
                  shape_error);
}

}  // namespace test_tuned_spmm
