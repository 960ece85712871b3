// SPDX-License-Identifier: Apache-2.0
// What products of distributed matrices ask of the device's runtime, counted by the emulator.

#include "emulator/control.hpp"
#include "partita/algebra/sddmm.hpp"
#include "partita/algebra/spmm.hpp"
#include "partita/comm/cuda_memory.hpp"
#include "partita/comm/threads.hpp"
#include "partita/local/cuda/kernels.hpp"
#include "partita/local/cusparse/spmm.hpp"
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

/// Of 24 rows and columns, whose rows 0 to 11 have 13 entries in columns 0 to 11.
std::vector<triplet<double>> small_entries() {
  std::vector<triplet<double>> entries{{0, 5, 7}};
  for (global_index v = 0; v < 24; ++v)
    for (const global_index u : {v, (v + 12) % 24, (v + 17) % 24})
      if (u == v || u / 12 != v / 12) entries.push_back({v, u, static_cast<double>(1 + (u + 2 * v) % 5)});
  return entries;
}

/// Calls of cuSPARSE that prepare a tile, and what waits in a second product, of all ranks; the product is
/// checked.
std::array<std::uint64_t, 2> calls_of_products(mesh_shape shape, const policy& p,
                                               const spmm_options& options) {
  std::array<std::uint64_t, 2> calls{};
  on_threads(shape.size(), [&](const communicator& world) {
    const mesh<cuda_device> m(world, shape, partita::device_queue<cuda_device>(0, cusparse_spmm()));
    const std::vector<triplet<double>> all = small_entries();
    const auto a = distribute(m, p, {24, 24}, share(all, m));
    const auto number = [](global_index i, global_index j) { return static_cast<double>(i - 3 * j); };
    const auto x = generate<double>(m, p.dense, {24, 8}, number);
    auto y = generate<double>(m, p.dense, {24, 8}, number);
    spmm_plan multiply(a, x, options);
    std::array<std::int32_t, 1> nothing{};
    const auto meet = [&] { world.all_reduce(std::span<std::int32_t>(nothing)); };
    m.queue().synchronize();
    meet();
    const auto made = emulator::calls("cusparseSpMM_preprocess");
    meet();
    multiply(x, y);
    m.queue().synchronize();
    meet();
    const emulator::counters before = emulator::count();
    const auto made_now = emulator::calls("cusparseSpMM_preprocess");
    meet();
    multiply(x, y);
    meet();
    const auto waits = (emulator::count() - before).stream_synchronisations;
    meet();
    if (world.rank() == 0) calls = {made_now - made, waits};
    std::vector<double> expected(24 * 8, 0);
    for (const triplet<double>& e : all)
      for (global_index j = 0; j < 8; ++j)
        expected[static_cast<std::size_t>(e.row * 8 + j)] += e.value * number(e.col, j);
    CHECK(collect(y) == expected);
  });
  return calls;
}

TEST_CASE("both tiles of every rank are given to cusparse, wherever the second one begins") {
  spmm_options needed{.rows = row_exchange::sparsity_aware};
  CHECK(calls_of_products({2, 1, 1}, row_1d, needed) == std::array<std::uint64_t, 2>{2 * 2, 0});
  needed.slices = 2;
  CHECK(calls_of_products({3, 1, 1}, row_1d, needed) == std::array<std::uint64_t, 2>{3 * 3, 0});
}

TEST_CASE("sums leave in parts beside products, which wait for nothing") {
  spmm_options parts;
  parts.slices = 3;
  for (const mesh_shape shape : {mesh_shape{1, 1, 2}, mesh_shape{2, 1, 2}})
    CHECK(calls_of_products(shape, replicated_1_5d, parts)[1] == 0);
}

}  // namespace test_algebra_device_steady
