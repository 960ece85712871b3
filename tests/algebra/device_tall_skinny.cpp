// SPDX-License-Identifier: Apache-2.0
// Orthonormal columns on a device: what the same call gives on the host.
#include <cmath>
#include <doctest/doctest.h>

#include "partita/algebra/tall_skinny.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "support/matrices.hpp"

namespace test_device_tall_skinny {

using namespace partita;
using namespace test_support;

namespace {

/// Two columns that differ by `distance` in places, and three others.
struct alike_columns {
  double distance;

  double operator()(global_index i, global_index j) const {
    return j != 1 ? element(i, j, 1) : element(i, 0, 1) + distance * element(i, 1, 1);
  }
};

}  // namespace

TEST_CASE("qr on a device: by Cholesky factorisations, refined or not, and by Householder reflections") {
  on_threads(4, [&](const communicator& world) {
    const mesh<cuda_device> m(world, {2, 2, 1});
    const host_mesh on_host(world, {2, 2, 1});
    for (const layout l : {vertex_rows, grid_2d.dense})
      for (const double distance : {1.0, 1e-5, 1e-12}) {
        const alike_columns columns{distance};
        const auto expected = qr(generate<double>(on_host, l, {13, 5}, columns));
        on_host.ledger().clear();
        const auto [q, r] = qr(generate<double>(m, l, {13, 5}, columns));
        const double tolerance = 1e-14 / distance;
        CHECK(largest_difference(collect(r), collect(expected.r)) < 1e-13);
        CHECK(largest_difference(collect(q), collect(expected.q)) < tolerance);
      }
  });
}

}  // namespace test_device_tall_skinny
