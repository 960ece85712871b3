// SPDX-License-Identifier: Apache-2.0
// Y = A X on four threads, where A is a ring of 7 vertices and X(i, j) = 10 i + j.
#include <vector>

#include "partita/algebra/spmm.hpp"
#include "partita/comm/threads.hpp"
#include "partita/memory/host.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"

using namespace partita;

bool product_is_right();

bool product_is_right() {
  constexpr global_index n = 7, f = 3;
  bool right = true;
  threads::run(4, [&](communicator world) {
    const mesh<host> m(world, default_mesh(grid_2d, 4));
    std::vector<triplet<double>> mine;
    for (global_index v = world.rank(); v < n; v += world.size()) mine.push_back({v, (v + 1) % n, 2.0});

    const auto a = distribute(m, grid_2d, {n, n}, mine);
    const auto x = generate<grid_2d.dense, double>(
        m, {n, f}, [](global_index i, global_index j) { return static_cast<double>(10 * i + j); });
    const std::vector<double> y = collect(spmm(a, x));  // (n, f)

    if (world.rank() != 0) return;
    for (global_index i = 0; i < n; ++i)
      for (global_index j = 0; j < f; ++j)
        right = right &&
                y[static_cast<std::size_t>(i * f + j)] == 2.0 * static_cast<double>(10 * ((i + 1) % n) + j);
  });
  return right;
}
