// SPDX-License-Identifier: Apache-2.0
/// C = A B of dense matrices, where the shapes decide everything: the grid of ranks, the layouts, and what
/// travels. For three shapes the best is a 1D, a 2D and a 3D algorithm.

#include <algorithm>
#include <array>
#include <cstdio>

#include <partita/compiled/host.hpp>
#include <partita/partita.hpp>

using namespace partita;

constexpr int ranks = 8;

/// A of m x k, B of k x n.
struct sizes {
  global_index m, n, k;
};

double entry_of_a(global_index i, global_index k) { return static_cast<double>(i - 2 * k); }

/// Multiplies on the grid chosen for the sizes, and prints what the plan says. Returns whether C is right and
/// every rank received what was predicted.
bool multiplies(sizes s) {
  const partition::gemm_grid best = partition::choose_grid(s.m, s.n, s.k, ranks);
  const partition::gemm_problem& p = best.problem;
  std::array<bool, ranks> right{};  // one place for each rank
  threads::run(ranks, [&](const communicator& world) {
    const mesh<host> m(world, p.mesh);
    const auto a = generate<double>(m, p.a.axes, p.a.shape(), entry_of_a);  // (m, k)
    const auto b =
        generate<double>(m, p.b.axes, p.b.shape(), [&](auto k, auto j) { return k == j % s.k; });  // (k, n)
    dense<double, dynamic_layout, host> c(m, p.c.axes, p.c.shape());                               // (m, n)

    gemm_plan multiply(a, b, c);
    m.ledger().clear();
    multiply(a, b, c);
    const traffic received = m.ledger().total();
    if (m.rank() == 0) std::printf("%s:\n  %s\n", to_string(p.mesh).c_str(), multiply.explain().c_str());

    const auto expected = generate<double>(m, p.c.axes, p.c.shape(),
                                           [&](auto i, auto j) { return entry_of_a(i, j % s.k); });  // (m, n)
    right[static_cast<std::size_t>(m.rank())] = std::ranges::equal(c.values(), expected.values()) &&
                                                received == multiply.predicted() &&
                                                received.words <= best.choice.words;
  });
  return std::ranges::all_of(right, [](bool ok) { return ok; });
}

int main() {
  bool right = multiplies({40, 40, 4000});       // a long sum: each rank has a part of k, C is summed
  right = multiplies({600, 400, 60}) && right;   // a short sum: C stays, A and B are gathered
  right = multiplies({240, 240, 240}) && right;  // all alike: each index is partitioned
  std::printf("the products and their traffic are %s\n", right ? "as predicted" : "NOT as predicted");
  return right ? 0 : 1;
}
