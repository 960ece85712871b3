// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Small matrices and graphs as pure functions of their sizes, and what ranks receive when they work on them.

#include <functional>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/compiled/algebra.hpp"

namespace bench {

using partita::global_index;
using host_mesh = partita::mesh<partita::host>;

/// A moves, where it is cut by col, and so do whole blocks of X.
inline constexpr partita::spmm_options whole_blocks{.stationary = partita::stationary::c,
                                                    .rows = partita::row_exchange::full};

/// What each rank received while `work`, given the mesh, ran on threads.
inline std::vector<global_index> words_of(partita::mesh_shape shape,
                                          const std::function<partita::traffic(const host_mesh&)>& work) {
  std::vector<global_index> words(static_cast<std::size_t>(shape.size()));
  partita::threads::run(shape.size(), [&](const partita::communicator& world) {
    words[static_cast<std::size_t>(world.rank())] = work(host_mesh(world, shape)).words;
  });
  return words;
}

/// What this rank receives in `work`, by its ledger.
template <class Work>
partita::traffic counted(const host_mesh& m, Work work) {
  m.world().ledger().clear();
  work();
  return m.world().ledger().total();
}

/// What this rank receives in A X, planned before.
template <partita::layout A>
partita::traffic counted_product(const partita::sparse<double, A, partita::host>& a,
                                 const partita::dense<double, partita::dynamic_layout, partita::host>& x,
                                 partita::spmm_options how = {}) {
  partita::spmm_plan<double, partita::host> multiply(a, x, how);
  partita::dense<double, partita::dynamic_layout, partita::host> y(x.mesh(), x.layout(), a.row_blocking(),
                                                                   x.col_blocking());
  const partita::traffic received = counted(x.mesh(), [&] { multiply(x, y); });
  if (!(received == multiply.predicted())) throw partita::error("the ledger is not as predicted");
  return received;
}

/// n x n, about `degree` entries in a row, of which this is the share of a rank; symmetric if asked for.
inline std::vector<partita::triplet<double>> random_entries(global_index n, global_index degree,
                                                            bool symmetric, int rank = 0, int ranks = 1) {
  std::vector<partita::triplet<double>> list;
  const partita::interval mine = partita::comm::share_of(n, rank, ranks);
  for (global_index v = mine.begin; v < mine.end; ++v)
    for (global_index u = 0; u < n; ++u) {
      const global_index a = symmetric ? std::min(u, v) : u, b = symmetric ? std::max(u, v) : v;
      if (static_cast<global_index>(partita::base::random_bits(11, a, b) % static_cast<std::uint64_t>(n)) <
          degree)
        list.push_back({v, u, 0.25 + partita::base::random_uniform(12, a, b)});
    }
  return list;
}

/// X (n x f), the same on every mesh.
inline partita::dense<double, partita::dynamic_layout, partita::host> random_rows(const host_mesh& m,
                                                                                  partita::layout l,
                                                                                  global_index n,
                                                                                  global_index f) {
  return partita::generate<double>(m, l, {n, f}, [](global_index i, global_index j) {
    return partita::base::random_uniform(13, i, j) - 0.5;
  });
}

}  // namespace bench
