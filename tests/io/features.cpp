// SPDX-License-Identifier: Apache-2.0
// Features of vertices, dense and in compressed rows.
#include "partita/io/features.hpp"

#include <doctest/doctest.h>

#include "support/ranks.hpp"

namespace test_features {

using namespace test_support;

std::vector<float> row(const io::feature_table& x, global_index i) {
  std::vector<float> values(static_cast<std::size_t>(x.cols), -1);
  x.fill_row(i, values);
  return values;
}

TEST_CASE("features: the same rows, dense and sparse") {
  io::csr_array<float> compressed;
  compressed.rows = 3;
  compressed.cols = 4;
  compressed.offsets = {0, 3, 3, 4};
  compressed.columns = {3, 1, 3, 0};  // in any order, column 3 twice
  compressed.values = {1, 2, 4, 8};
  const io::feature_table sparse(compressed), dense(3, 4, {0, 2, 0, 5, 0, 0, 0, 0, 8, 0, 0, 0});
  CHECK(sparse.is_sparse());
  CHECK_FALSE(dense.is_sparse());
  for (global_index i = 0; i < 3; ++i) {
    CHECK(row(sparse, i) == row(dense, i));
    CHECK(sparse.row_sum(i) == dense.row_sum(i));
  }
  CHECK(dense.row_sum(0) == 7);
}

TEST_CASE("features: double stays double, dense and sparse, and float is what the caller asks for") {
  const double third = 1.0 / 3, more = 2.0 / 3;
  io::csr_array<> compressed;
  compressed.rows = 1, compressed.cols = 2, compressed.offsets = {0, 2}, compressed.columns = {1, 0};
  compressed.values = {more, third};
  for (const io::feature_table& x :
       {io::feature_table(compressed), io::feature_table(1, 2, std::vector<double>{third, more})}) {
    std::vector<double> values(2);
    x.fill_row(0, values);
    CHECK(values == std::vector<double>{third, more});
    CHECK(row(x, 0) == std::vector<float>{static_cast<float>(third), static_cast<float>(more)});
    CHECK(x.row_sum(0) == third + more);
  }
}

TEST_CASE("features: rows in any order, in the precision they have") {
  io::csr_array<> compressed{3, 4, {0, 3, 3, 4}, {3, 1, 3, 0}, {1, 2, 4, 1.0 / 3}};
  const std::vector<global_index> which{2, 0, 1, 2};
  for (const io::feature_table& x :
       {io::feature_table(compressed),
        io::feature_table(3, 4, std::vector<double>{0, 2, 0, 5, 0, 0, 0, 0, 1.0 / 3, 0, 0, 0})}) {
    const io::feature_table picked = x.rows_at(which);
    CHECK(picked.is_sparse() == x.is_sparse());
    CHECK((picked.rows == 4 && picked.cols == 4));
    for (global_index i = 0; i < 4; ++i) {
      const global_index from = which[static_cast<std::size_t>(i)];
      CHECK(row(picked, i) == row(x, from));
      CHECK(picked.row_sum(i) == x.row_sum(from));
    }
    CHECK(x.rows_at({}).rows == 0);
  }
  expect_error<shape_error>("features have 2 rows, there is no row 2", [&] {
    (void)io::feature_table(2, 1, std::vector<float>{1, 2}).rows_at(which);
  });
}

TEST_CASE("features: what does not fit is refused") {
  expect_error<shape_error>("features of shape 2 x 3 cannot be made of 5 values",
                            [] { io::feature_table(2, 3, std::vector<float>(5)); });
  const io::feature_table x(1, 2, {1, 2});
  std::vector<float> three(3);
  expect_error<shape_error>("a row of 2 features does not fit into a span of 3",
                            [&] { x.fill_row(0, three); });
  expect_error<shape_error>("features have 1 rows, there is no row 1", [&] { x.row_sum(1); });
  expect_error<shape_error>("there is no row -1", [&] { x.row_sum(-1); });
}

}  // namespace test_features
