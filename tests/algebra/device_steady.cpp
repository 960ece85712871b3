// SPDX-License-Identifier: Apache-2.0
// What products of distributed matrices ask of the device's runtime, counted by the emulator.

#include "emulator/control.hpp"
#include "partita/algebra/sddmm.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/matrices.hpp"

namespace test_algebra_device_steady {

using namespace partita;
using namespace test_support;

TEST_CASE("products with edge values over several tiles wait for nothing once they are planned") {
  on_threads(4, [](const communicator& world) {
    const mesh<cuda_device> m(world, {4, 1, 1});
    std::vector<triplet<double>> mine;
    if (world.rank() == 0)
      for (global_index v = 0; v < 30; ++v)
        for (global_index k = 1; k < 4; ++k) mine.push_back({v, (v * k + 5) % 30, 1});
    const auto pattern = distribute(m, row_1d.sparse, {30, 30}, mine);
    const auto x = generate<row_1d.dense, double>(
        m, {30, 6}, [](global_index i, global_index j) { return static_cast<double>(i - 3 * j); });
    dense<double, row_1d.dense, cuda_device> y(m, x.shape()), z(m, x.shape());
    edge_spmm_plan multiply(pattern, x, 2);
    sddmm_plan sample(multiply);
    algebra::transposed_edge_spmm_plan multiply_transposed(multiply);
    edge_matrix<double, cuda_device> e(pattern, 2);
    const auto all = [&] {
      sample(x, x, e);
      multiply(e, x, y);
      multiply_transposed(e, y, z);
    };
    all();
    m.queue().synchronize();
    std::array<std::int32_t, 1> nothing{};
    world.all_reduce(std::span<std::int32_t>(nothing));
    const emulator::counters before = emulator::count();
    world.all_reduce(std::span<std::int32_t>(nothing));
    all();
    world.all_reduce(std::span<std::int32_t>(nothing));
    CHECK((emulator::count() - before).stream_synchronisations == 0);
    world.all_reduce(std::span<std::int32_t>(nothing));
  });
}

}  // namespace test_algebra_device_steady
