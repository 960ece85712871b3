// What the host kernels throw, and that it reaches the caller from any thread.
#include <array>
#include <doctest/doctest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "partita/local/kernels.hpp"

using partita::local_index;
using partita::matrix_view;
using host_kernels = partita::kernels<partita::host>;
using host_queue = partita::queue<partita::host>;

TEST_CASE("cpu kernels refuse shapes that do not fit, and name them") {
  const host_queue q(3);
  std::vector<float> memory(12);
  const matrix_view<float> x{memory.data(), 4, 3, 3}, y{memory.data(), 3, 4, 4};
  const std::array<local_index, 5> offsets{};
  const partita::csr_view<float> a{4, 5, offsets.data(), nullptr, nullptr};
  CHECK_THROWS_AS(host_kernels::spmm(q, a, x, 0, x), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::spmm(q, a, matrix_view<float>{memory.data(), 5, 2, 2}, 0, x),
                  partita::shape_error);
  CHECK_THROWS_AS(host_kernels::gemm(q, false, false, 1, x, x, 0, y), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::gemm(q, false, false, 1, x, y, 0, y), partita::shape_error);
  CHECK_THROWS_AS(host_kernels::zip(
                      q, [](float v, float) { return v; }, x, y, x),
                  partita::shape_error);
  try {
    host_kernels::copy(q, x, y);
    FAIL("copy accepted different shapes");
  } catch (const partita::shape_error& failure) {
    CHECK(std::string(failure.what()) == "copy: from is 4 x 3 but to is 3 x 4");
  }
}

TEST_CASE("cross_entropy refuses a label that is no column") {
  std::vector<float> memory(12), gradient(12);
  const std::array<local_index, 4> labels{0, 2, 3, -1};
  CHECK_THROWS_AS(host_kernels::cross_entropy(host_queue(2), matrix_view<float>{memory.data(), 4, 3, 3},
                                              labels.data(), 1, matrix_view<float>{gradient.data(), 4, 3, 3}),
                  partita::shape_error);
}

TEST_CASE("an exception of a mapped function reaches the caller, whatever thread threw it") {
  std::vector<double> memory(5000 * 16);
  const matrix_view<double> x{memory.data(), 5000, 16, 16};
  const auto fail = [](local_index i, local_index, double v) {
    return i == 4999 ? throw std::out_of_range("last row") : v;
  };
  for (const int threads : {1, 2, 3})
    CHECK_THROWS_AS(host_kernels::map_indexed(host_queue(threads), fail, x, x), std::out_of_range);
}
