// SPDX-License-Identifier: Apache-2.0
// Orthonormal columns on a device: what Q and R promise, and the R of the same call on the host.

#include "partita/algebra/tall_skinny.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "support/matrices.hpp"

namespace test_device_tall_skinny {

using namespace test_support;

/// Two columns that differ by `distance` in places, and three others.
struct alike_columns {
  double distance;

  double operator()(global_index i, global_index j) const {
    return j != 1 ? element(i, j, 1) : element(i, 0, 1) + distance * element(i, 1, 1);
  }
};

TEST_CASE("qr on a device: by Cholesky factorisations, refined or not, and by Householder reflections") {
  const std::vector<double> identity =
      whole({5, 5}, [](global_index i, global_index j) { return i == j ? 1.0 : 0.0; });
  on_threads(4, [&](const communicator& world) {
    const mesh<cuda_device> m(world, {2, 2, 1});
    const host_mesh on_host(world, {2, 2, 1});
    for (const layout l : {vertex_rows, grid_2d.dense})
      for (const double distance : {1.0, 1e-5, 1e-12}) {
        const alike_columns columns{distance};
        const auto x = generate<double>(m, l, {13, 5}, columns);
        const auto [q, r] = qr(x);
        CHECK(largest_difference(collect(gram(q)), identity) < 7e-15);
        CHECK(largest_difference(collect(gemm(q, r)), collect(x)) < 7e-15);
        const auto expected = qr(generate<double>(on_host, l, {13, 5}, columns));
        CHECK(largest_difference(collect(r), collect(expected.r)) < 1e-14 / distance);
      }
  });
}

}  // namespace test_device_tall_skinny
