// SPDX-License-Identifier: Apache-2.0
// What the host kernels throw, and that it reaches the caller from any thread.

#include "laws/kernel_laws.hpp"

namespace test_local_errors {

using namespace test_support;
using host_queue = partita::device_queue<host>;

TEST_CASE("cpu kernels refuse shapes that do not fit, and name them") { refuse_shapes(host_queue(3)); }
TEST_CASE("cross_entropy refuses a label that is no column") { refuse_labels(host_queue(2)); }
TEST_CASE("logits that are not numbers are never right") { nan_is_never_right(host_queue(2)); }

TEST_CASE("an exception of a mapped function reaches the caller, whatever thread threw it") {
  std::vector<double> memory(5000 * 16);
  const matrix_view<double> x{memory.data(), 5000, 16, 16};
  const auto fail = [](local_index i, local_index, double v) {
    return i == 4999 ? throw std::out_of_range("last row") : v;
  };
  for (const int threads : {1, 2, 3})
    CHECK_THROWS_AS(transform_indexed(host_queue(threads), fail, x, x), std::out_of_range);
}

}  // namespace test_local_errors
