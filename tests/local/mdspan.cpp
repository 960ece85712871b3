// SPDX-License-Identifier: Apache-2.0
// A view of a dense block becomes an mdspan, here that of CUDA's standard library, which needs no C++23.
#include <cuda/std/mdspan>
#include <doctest/doctest.h>
#include <vector>

#include "partita/local/view.hpp"

namespace test_mdspan {

using partita::matrix_view;

template <class T, class Layout>
using mdspan = cuda::std::mdspan<T, cuda::std::dextents<int, 2>, Layout>;
using strided = cuda::std::layout_stride;

static_assert(std::is_convertible_v<matrix_view<double>, mdspan<const double, strided>>);
static_assert(!std::is_convertible_v<matrix_view<const double>, mdspan<double, strided>>);

TEST_CASE("matrix_view: an mdspan has its elements, extents and strides") {
  std::vector<double> values(15);
  const matrix_view<double> x{values.data(), 3, 2, 5};
  const mdspan<double, strided> y = x;
  CHECK(y.extent(0) == x.extent(0));
  CHECK(y.extent(1) == x.extent(1));
  CHECK(y.stride(0) == x.stride(0));
  CHECK(y.stride(1) == x.stride(1));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j) CHECK(&y(i, j) == &x(i, j));
}

}  // namespace test_mdspan
