// SPDX-License-Identifier: Apache-2.0
// Views of a dense block: the names of std::mdspan, rows as ranges, and blocks within blocks.
#include "partita/local/view.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

namespace test_view {

using partita::local_index, partita::matrix_view;

/// 3 x 2 elements, 5 from one row to the next.
std::vector<double> elements() {
  std::vector<double> values(15);
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}

static_assert(std::is_trivially_copyable_v<matrix_view<double>>);
static_assert(std::is_convertible_v<matrix_view<float>, matrix_view<const float>>);
static_assert(!std::is_convertible_v<matrix_view<const float>, matrix_view<float>>);
static_assert(matrix_view<float>::rank() == 2);

TEST_CASE("matrix_view: extents, strides and elements as those of an mdspan") {
  std::vector<double> values = elements();
  const matrix_view<double> x{values.data(), 3, 2, 5};
  CHECK(x.extent(0) == 3);
  CHECK(x.extent(1) == 2);
  CHECK(x.stride(0) == 5);
  CHECK(x.stride(1) == 1);
  CHECK(x.data_handle() == values.data());
  for (local_index i = 0; i < x.extent(0); ++i)
    for (local_index j = 0; j < x.extent(1); ++j)
      CHECK(&x(i, j) == x.data_handle() + i * x.stride(0) + j * x.stride(1));
  x(2, 1) = -1;
  CHECK(values[11] == -1);
}

TEST_CASE("matrix_view: without a stride, rows lie one behind the other") {
  std::vector<double> values = elements();
  const matrix_view<double> x{values.data(), 3, 5};
  CHECK(x.stride(0) == 5);
  CHECK(x(2, 4) == 14);
  CHECK(matrix_view<double>{}.stride(0) == 0);
}

TEST_CASE("matrix_view: a row is a range") {
  std::vector<double> values = elements();
  const matrix_view<double> x{values.data(), 3, 2, 5};
  for (double& v : x.row(1)) v = 9;
  CHECK(std::count(values.begin(), values.end(), 9.0) == 2 + 1);
  const matrix_view<const double> read = x;
  CHECK(std::accumulate(read.row(1).begin(), read.row(1).end(), 0.0) == 18);
  CHECK(read.row(2).data() == read.row_data(2));
  CHECK(matrix_view<double>{values.data(), 3, 0, 5}.row(2).empty());
}

TEST_CASE("matrix_view: a block of a block has its strides") {
  std::vector<double> values = elements();
  const matrix_view<double> x = matrix_view<double>{values.data(), 3, 5, 5}.block(1, 2, 2, 3);
  CHECK(x.extent(0) == 2);
  CHECK(x.extent(1) == 3);
  CHECK(x.stride(0) == 5);
  CHECK(x(0, 0) == 7);
  CHECK(x(1, 2) == 14);
}

}  // namespace test_view
