/// A partition policy of your own is a struct with a layout of the sparse operand, one of the dense operands
/// and a name. What must travel follows from the layouts: the product needs no further word.

#include <cstdio>
#include <vector>

#include <partita/partita.hpp>

using namespace partita;

/// 1.5D without copies of X: its rows are cut by row and again by depth, and A's columns at depth d are the
/// d-th pieces of all row blocks. The ranks (row, depth) of a mesh of 2x1x2 hold
///
///   X, Y   (0,0)     A   (0,0) (0,1) (0,0) (0,1)
///          (0,1)         (0,0) (0,1) (0,0) (0,1)
///          (1,0)         (1,0) (1,1) (1,0) (1,1)
///          (1,1)         (1,0) (1,1) (1,0) (1,1)
struct scattered_1_5d
    : policy<layout<axes<axis::row>, axes<axis::depth>>, layout<axes<axis::row, axis::depth>, axes<>>> {
  static constexpr const char* name = "scattered_1_5d";
};

constexpr int ranks = 6;
constexpr global_index n = 600, f = 32;

/// The edges that leave `vertices`, near and far.
std::vector<triplet<double>> edges(interval vertices) {
  std::vector<triplet<double>> list;
  for (global_index i = vertices.begin; i < vertices.end; ++i)
    for (const global_index j : {i + 1, i + 30, 7 * i, 13 * i + 5}) list.push_back({i, j % n, 1.0});
  return list;
}

/// Small whole numbers, so that sums are exact in any order.
double feature(global_index i, global_index j) { return static_cast<double>(i * j % 11); }

/// Y = A X under a policy, (n, f); prints what it took.
template <class Policy>
std::vector<double> product(Policy) {
  using sparse_layout = typename Policy::sparse_layout;
  using dense_layout = typename Policy::dense_layout;
  std::vector<double> result;  // (n, f)
  threads::run(ranks, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh<Policy>(ranks));
    const auto mine = edges(share_of(n, m.rank(), ranks));
    const auto a = distribute<sparse_layout>(m, {n, n}, std::span(mine));  // (n, n)
    const auto x = generate<dense_layout, double>(m, {n, f}, feature);     // (n, f)
    dense<double, dense_layout, host> y(m, x.shape());                     // (n, f)
    spmm_plan<double, sparse_layout, dense_layout, host> multiply(a, x.col_blocking());

    m.ledger().clear();
    multiply(x, y);
    const over_ranks words = summarize(world, m.ledger().total().elements);
    const std::vector<double> whole = collect(y);  // (n, f) on every rank
    if (m.rank() != 0) return;
    result = whole;
    std::printf("%-16s %-6s %12d %15d %8d\n", Policy::name, to_string(m.shape()).c_str(),
                int(x.values().size()), int(words.max_rank), int(words.total));
  });
  return result;
}

int main() {
  std::printf("policy           mesh   X on a rank  words received   in all\n");
  const std::vector<double> expected = product(scattered_1_5d{});  // (n, f)
  bool right = true;
  for_each_policy([&](auto named) { right = product(named) == expected && right; });
  std::printf("all seven products are %s\n", right ? "the same" : "NOT the same");
  return right ? 0 : 1;
}
