// SPDX-License-Identifier: Apache-2.0
/// Ranks as processes of an MPI job: mpirun -n 4 12_mpi. The code of a rank depends only on its communicator,
/// so the same function runs on threads with the same results.

#include <cstdio>
#include <vector>

#include <partita/comm/mpi.hpp>
#include <partita/partita.hpp>

using namespace partita;

constexpr global_index n = 1000, f = 16;

struct outcome {
  double sum = 0;
  global_index words = 0, predicted = 0;

  friend bool operator==(const outcome&, const outcome&) = default;
};

/// The sum of all entries of A^T A X, and the words received in the two products, over all ranks. Collective.
outcome product(const communicator& world) {
  const policy p = grid_2d;
  const mesh<host> m(world, default_mesh(p, world.size()));
  std::vector<triplet<double>> mine;  // a directed graph: the edges out of this rank's vertices
  const interval vertices = comm::share_of(n, world.rank(), world.size());
  for (global_index i = vertices.begin; i < vertices.end; ++i)
    for (const global_index j : {i + 1, i + 30, 7 * i + 3}) mine.push_back({i, j % n, 0.1});
  const auto a = distribute(m, p, {n, n}, mine);  // (n/pr, n/pc)
  const auto x = generate<double>(m, p.dense, {n, f},
                                  [](auto i, auto j) { return 1.0 / double(1 + i + j); });  // (n/pr, f/pc)
  dense<double, dynamic_layout, host> y(m, p.dense, x.shape()), z(m, p.dense, x.shape());   // (n/pr, f/pc)
  spmm_plan forward(a, x), backward(transposed(a), x);

  m.ledger().clear();
  forward(x, y);
  backward(y, z);
  const global_index words = nn::summarize(world, m.ledger().total().words).total;
  const traffic predicted = forward.predicted() + backward.predicted();
  return {sum(z), words, nn::summarize(world, predicted.words).total};
}

int main(int argc, char** argv) {
  return mpi::run(argc, argv, [](const communicator& world) {
    const outcome by_processes = product(world);
    if (world.rank() != 0) return 0;

    outcome by_threads;
    threads::run(world.size(), [&](const communicator& others) {
      const outcome mine = product(others);
      if (others.rank() == 0) by_threads = mine;
    });
    for (const auto& [name, o] : {std::pair("processes", by_processes), std::pair("threads", by_threads)})
      std::printf("%d %-9s  sum %.15e  %6d words received, %6d predicted\n", world.size(), name, o.sum,
                  int(o.words), int(o.predicted));
    const bool right = by_processes == by_threads && by_processes.words == by_processes.predicted;
    std::printf("processes and threads give %s\n", right ? "the same" : "NOT the same");
    return right ? 0 : 1;
  });
}
