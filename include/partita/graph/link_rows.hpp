// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The links of a dataset in whole rows, to look them up.

#include <vector>

#include "partita/io/dataset_type.hpp"
#include "partita/partition/policies.hpp"
#include "partita/sampling/graph.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::graph {

/// Which links: those that messages take, or the held-out ones, too; and whether row v has the sources or the
/// targets of its links.
struct link_rows_options {
  bool held_out = false;
  bool of_sources = false;  ///< row u has the v of links u -> v; otherwise row v has the u
};

/// The links of the data (n x n), each once, with the rows of this rank as the policy cuts them, which has
/// those of its vertices. Collective over the mesh, with the same data on every rank. What travels: each
/// link, to the ranks that hold its row. Throws what distribute throws.
template <class T, class Device>
sampling::graph<T> link_rows(const mesh<Device>& m, const policy& p, const blocking& rows,
                             const io::dataset& data, link_rows_options options = {}) {
  std::vector<triplet<T>> entries;
  const auto add = [&](const io::array<io::edge>& edges) {
    const interval mine = comm::share_of(static_cast<global_index>(edges.size()), m.rank(), m.size());
    for (global_index i = mine.begin; i < mine.end; ++i) {
      const auto [source, target] = edges[static_cast<std::size_t>(i)];
      entries.push_back(options.of_sources ? triplet<T>{source, target, 1} : triplet<T>{target, source, 1});
    }
    edges.forget();
  };
  add(data.edges);
  if (options.held_out) add(data.validation_links), add(data.test_links);
  return sampling::graph<T>(distribute(m, partition::rows_of(p.sparse), rows, rows, entries,
                                       symmetry::one_way, {}, transfer::sharing::trusted));
}

}  // namespace partita::graph
