// SPDX-License-Identifier: Apache-2.0
// Matrices of a tape that are in the same memory one after the other.
#include "partita/autodiff/shared_memory.hpp"

#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/losses.hpp"
#include "partita/autodiff/products.hpp"
#include "partita/comm/threads.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_shared_memory {

using namespace partita;
using namespace test_support;

using host_matrix = partita::sparse<double, dynamic_layout, host>;

const auto square = [](auto x) { return x * x; };

host_matrix ring(const mesh<host>& m, global_index n) {
  std::vector<triplet<double>> mine;
  if (m.rank() == 0)
    for (global_index v = 0; v < n; ++v)
      mine.push_back({v, (v * 3 + 1) % n, 0.5}), mine.push_back({v, v, 0.3});
  return distribute(m, row_1d, {n, n}, mine);
}

TEST_CASE("what is kept for backward is not in memory of anything else") {
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      const mesh<host> m(world, {ranks, 1, 1});
      const host_matrix a = ring(m, 7);
      auto x = generate<vertex_rows, double>(m, {7, 3}, [](auto i, auto j) { return element(i, j); });
      auto w = generate<replicated, double>(m, {3, 3}, [](auto i, auto j) { return element(i + 1, j) / 2; });
      host_tape t(m);
      const auto h = t.input(x), v = t.parameter(w);
      auto z = spmm(a, gemm(h, v)), early = z;
      for (int k = 0; k < 4; ++k) {
        const auto next = spmm(a, z);
        const auto gate = transform(next, [](auto y) { return y / (1.0 + y * y); });
        z = 0.5 * spmm(a, spmm(a, next)) - 0.25 * h + relu(gemm(spmm(a, gate), v)) + 0.1 * early;
        if (k == 1) early = z;
      }
      check_tape(t, sum(transform(z, square)) + 0.5 * sum(early * early), x, h, w, v);
    });
}

TEST_CASE("many products in a row take the memory of a few") {
  on_threads(1, [](const communicator& world) {
    const mesh<host> m(world, {1, 1, 1});
    constexpr global_index n = 200, columns = 8;
    const host_matrix a = ring(m, n);
    auto x = generate<vertex_rows, double>(m, {n, columns}, [](auto i, auto j) { return element(i, j); });
    const auto bytes_of = [&](int hops) {
      const std::size_t before = m.queue().meter()->current();
      host_tape t(m);
      const auto start = t.input(x);
      auto z = start;
      for (int k = 0; k < hops; ++k) z = 0.9 * spmm(a, z) + 0.1 * start;
      const auto loss = sum(z);
      t.forward();
      t.backward(loss);
      return m.queue().meter()->current() - before;
    };
    const std::size_t few = bytes_of(4), one = static_cast<std::size_t>(n * columns) * sizeof(double);
    CHECK(bytes_of(20) < few + one);
    CHECK(few < 8 * one);
  });
}

}  // namespace test_autodiff_shared_memory
