// SPDX-License-Identifier: Apache-2.0
// Products of distributed matrices on a device, under every schedule; further runs allocate nothing.

#include "partita/algebra/gemm.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/self.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_device_gemm {

using namespace test_support;

TEST_CASE("gemm on a device: every schedule on a grid, in stages, with sums") {
  on_threads(6, [](const communicator& world) {
    const mesh<cuda_device> m(world, {2, 3, 1});
    const host_mesh on_host(world, {2, 3, 1});
    const layout grid{axis::row, axis::col};
    const auto result = [&](const auto& on, const gemm_options& options, bool twice) {
      const auto a = generate<double>(on, grid, {11, 13}, field(1)),
                 b = generate<double>(on, grid, {7, 11}, field(2));
      auto c = generate<double>(on, {axis::col, axis::row}, {13, 7}, field(3));
      gemm_plan multiply(transposed(a), transposed(b), c, options);
      multiply(2, transposed(a), transposed(b), -1, c);
      const auto allocations = on.queue().meter()->allocations();
      if (twice) multiply(2, transposed(a), transposed(b), -1, c);
      CHECK(on.queue().meter()->allocations() == allocations);
      CHECK((!options.memory || multiply.stages().count > 1));
      return collect(c);
    };
    for (const axis_set row_index : {axis_set{}, axis_set{axis::row}})
      for (int of_col = 0; of_col < 4; ++of_col) {
        const auto along = [&](int index) { return of_col == index ? axis_set{axis::col} : axis_set{}; };
        const partition::gemm_schedule s{row_index | along(0), along(1), along(2)};
        CHECK(largest_difference(result(m, {s}, of_col == 2), result(on_host, {s}, of_col == 2)) < 1e-14);
      }
    const gemm_options few_bytes{partition::gemm_schedule{axis::row, axis::col, {}}, 1300};
    CHECK(largest_difference(result(m, few_bytes, true), result(on_host, few_bytes, true)) < 1e-14);
  });
}

}  // namespace test_device_gemm
