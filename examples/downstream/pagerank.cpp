// SPDX-License-Identifier: Apache-2.0
/// PageRank of a directed graph: pagerank EDGES [RANKS]
///   x = d A D^-1 x + (1 - d + d * what vertices without out-edges have) / n, A(v, u) = 1 for an edge u -> v
#include <cstdio>

#include <partita/compiled/algebra.hpp>
#include <partita/io/graph_text.hpp>
#include <partita/partita.hpp>
using namespace partita;

double quotient(double a, double b) { return b > 0 ? a / b : 0; }
int main(int argc, char** argv) {
  if (argc < 2) return std::puts("usage: pagerank EDGES [RANKS]"), 2;
  const io::edge_list graph = io::read_edge_list(argv[1]);
  const global_index n = graph.vertices();
  threads::run(argc > 2 ? std::stoi(argv[2]) : 4, [&](const communicator& world) {
    const mesh<host> m(world, default_mesh(grid_2d, world.size()));
    const interval share = comm::share_of(std::ssize(graph.edges), m.rank(), m.size());
    std::vector<triplet<double>> mine;
    for (const io::edge& e : std::span(graph.edges).subspan(share.begin, share.size()))
      mine.push_back({e.target, e.source, 1});
    const auto a = distribute(m, grid_2d, {n, n}, mine);  // (n/pr, n/pc)
    const auto column_of = [&](double value) {
      return generate<double>(m, grid_2d.dense, {n, 1}, [=](auto, auto) { return value; });  // (n/pr, 1/pc)
    };
    auto x = column_of(1.0 / static_cast<double>(n)), next = column_of(0), spread = column_of(0);
    const auto degree = spmm(transposed(a), column_of(1));  // out-degrees (n/pr, 1/pc)
    constexpr double damping = 0.85;
    spmm_plan multiply(a, x);
    int iterations = 0;
    for (double change = 1; change > 1e-12; ++iterations) {
      zip(x, degree, spread, quotient);  // D^-1 x
      fill(next, (1 - damping * dot(spread, degree)) / static_cast<double>(n));
      multiply(damping, spread, 1, next);
      axpy(-1, next, x);
      change = norm(x);
      std::swap(x, next);
    }
    const std::vector<double> ranks = collect(x);
    const auto first = static_cast<std::size_t>(std::max_element(ranks.begin(), ranks.end()) - ranks.begin());
    if (world.rank() == 0)
      std::printf("%d iterations; %d comes first with %.6f\n", iterations, int(graph.ids[first]),
                  ranks[first]);
  });
}
