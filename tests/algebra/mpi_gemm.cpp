// SPDX-License-Identifier: Apache-2.0
// Products over MPI: values, and bytes as MPI's profiling interface sees them.

#include "partita/comm/mpi.hpp"
#include "support/mpi_byte_counter.hpp"
#include "support/mpi_world.hpp"
#include "support/products.hpp"

using namespace test_support;

TEST_CASE("gemm over MPI: pairs of layouts on every mesh, and the bytes of the ledger") {
  for (const mesh_shape shape : every_small_mesh()) {
    if (shape.size() != mpi_world().size()) continue;
    const host_mesh m(mpi_world(), shape);
    std::int64_t before = mpi_bytes_received();
    const global_index received = every_pair(m, [](std::size_t i, std::size_t j, std::size_t l) {
      return (i + 3 * j) % 27 == l && (!sanitized || (i + j) % 5 == 0);
    });
    CHECK(received > 0);
    CHECK(mpi_bytes_received() - before == 8 * received);
    const auto a = generate<double>(m, {axis::row, axis::col}, {13, 7}, field(1)),
               b = generate<double>(m, {axis::row, axis::col}, {7, 11}, field(2));
    for (const layout l : every_layout()) {
      auto c = generate<double>(m, l, {13, 11}, field(3));
      gemm_plan multiply(a, b, c);
      before = mpi_bytes_received();
      multiply(a, b, c);
      CHECK(mpi_bytes_received() - before == 8 * multiply.predicted().words);
      check_equals(c, dense_product{{13, 11, 7}}.expected(), 1e-13, "gemm");
    }
  }
}
