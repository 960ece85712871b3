// SPDX-License-Identifier: Apache-2.0
// Sums, differences and multiples of variables, in their own memory or in that of a term.
#include "partita/autodiff/sums.hpp"

#include "partita/autodiff/elementwise.hpp"
#include "partita/autodiff/losses.hpp"
#include "partita/autodiff/products.hpp"
#include "partita/comm/threads.hpp"
#include "partita/transfer/distribute.hpp"
#include "support/layers.hpp"
#include "support/tapes.hpp"

namespace test_autodiff_sums {

using namespace partita;
using namespace test_support;

TEST_CASE("gradients of sums, whoever else reads their terms") {
  for (const int ranks : {1, 3})
    on_threads(ranks, [&](const communicator& world) {
      const mesh<host> m(world, {ranks, 1, 1});
      auto x = generate<vertex_rows, double>(m, {5, 3}, [](auto i, auto j) { return element(i, j); });
      auto w = generate<replicated, double>(m, {3, 3}, [](auto i, auto j) { return element(i, j + 3); });
      host_tape t(m);
      const auto h = t.input(x), v = t.parameter(w);
      const auto product = [&] { return gemm(h, v); };
      const auto scaled = 0.5 * h, read_twice = product();
      const auto z = (0.25 * scaled + 2 * read_twice) * (read_twice - 3 * scaled);
      const auto alone = 0.5 * product() - 0.25 * product();
      const auto added = product() + product();
      check_tape(t, sum((z - added) * (alone + alone) + (h - h) + (0.5 * h + 0.5 * h)), x, h, w, v);
    });
}

TEST_CASE("a sum of terms that nobody else reads takes no memory of its own") {
  const host_mesh m = alone();
  auto x = generate<vertex_rows, double>(m, {50, 3}, [](auto i, auto j) { return element(i, j); });
  auto w = generate<replicated, double>(m, {3, 3}, [](auto i, auto j) { return element(i, j); });
  const auto allocations_of = [&](auto f) {
    host_tape t(m);
    const auto h = t.input(x), v = t.parameter(w);
    const auto z = t.keep(f(h, v));
    const auto before = m.queue().meter()->allocations();
    t.forward();
    (void)z;
    return m.queue().meter()->allocations() - before;
  };
  const auto gemm_alone = allocations_of([](auto h, auto v) { return gemm(h, v); });
  CHECK(allocations_of([](auto h, auto v) { return 0.9 * gemm(h, v) + 0.1 * h; }) == gemm_alone);
  CHECK(allocations_of([](auto h, auto v) { return gemm(h, v) + gemm(h, v); }) == gemm_alone);
  CHECK(allocations_of([](auto h, auto v) { return h - gemm(h, v); }) == gemm_alone);
}

}  // namespace test_autodiff_sums
