// SPDX-License-Identifier: Apache-2.0
/// A user-defined partition policy: a name, a layout for the sparse operand and one for the dense operands.
/// The communication of a product follows from the layouts. Pairs of layouts that cannot be multiplied are
/// refused; partita/partition/policies.hpp says beside `struct policy` which can.

#include <cstdio>
#include <vector>

#include <partita/partita.hpp>

using namespace partita;

/// 1.5D without replicating X: its rows are partitioned by row, then by depth; A's columns at depth d are the
/// d-th pieces of all row blocks. On a 2x1x2 mesh, the ranks (row, depth) own
///
///   X, Y   (0,0)     A   (0,0) (0,1) (0,0) (0,1)
///          (0,1)         (0,0) (0,1) (0,0) (0,1)
///          (1,0)         (1,0) (1,1) (1,0) (1,1)
///          (1,1)         (1,0) (1,1) (1,0) (1,1)
constexpr policy scattered_1_5d{"scattered_1_5d", {axis::row, axis::depth}, {axis::row | axis::depth, {}}};

constexpr int ranks = 6;
constexpr global_index n = 600, f = 32;

/// The edges out of `vertices`, near and far.
std::vector<triplet<double>> edges(interval vertices) {
  std::vector<triplet<double>> list;
  for (global_index i = vertices.begin; i < vertices.end; ++i)
    for (const global_index j : {i + 1, i + 30, 7 * i, 13 * i + 5}) list.push_back({i, j % n, 1.0});
  return list;
}

/// Small integers, so that sums are exact in any order.
double feature(global_index i, global_index j) { return static_cast<double>(i * j % 11); }

/// Y = A X under a policy, (n, f); prints its communication.
std::vector<double> product(const policy& p) {
  std::vector<double> result;  // (n, f)
  threads::run(ranks, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(p, ranks));
    const auto mine = edges(comm::share_of(n, m.rank(), ranks));
    const auto a = distribute(m, p, {n, n}, mine);                 // (n, n)
    const auto x = generate<double>(m, p.dense, {n, f}, feature);  // (n, f)
    dense<double, dynamic_layout, host> y(m, p.dense, x.shape());  // (n, f)
    spmm_plan multiply(a, x);

    m.ledger().clear();
    multiply(x, y);
    const nn::max_and_total words = nn::summarize(world, m.ledger().total().words);
    const std::vector<double> whole = collect(y);  // (n, f) on every rank
    if (m.rank() != 0) return;
    result = whole;
    std::printf("%-16s %-6s %12d %15d %8d\n", std::string(p.name).c_str(), to_string(m.shape()).c_str(),
                int(x.values().size()), int(words.max_rank), int(words.total));
  });
  return result;
}

int main() {
  std::printf("policy           mesh   X on a rank  words received   in all\n");
  const std::vector<double> expected = product(scattered_1_5d);  // (n, f)
  bool right = true;
  for (const policy& named : named_policies) right = product(named) == expected && right;
  std::printf("all seven products are %s\n", right ? "the same" : "NOT the same");
  return right ? 0 : 1;
}
