// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which needed rows are sent between nodes, and to which ranks of a node they are handed on.
///
/// Sources: aggregation by nodes in SuperGCN (arXiv:2411.16025), SHIRO (arXiv:2512.20178).

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "partita/algebra/chunk_lists.hpp"

namespace partita::algebra::detail {

/// Whether rows are handed on inside nodes of `ranks_of_node` consecutive ranks of the mesh: some ranks
/// along row share a node, and not all do. Throws error for less than 1.
inline bool hands_on(mesh_shape m, int ranks_of_node) {
  if (ranks_of_node < 1)
    base::throw_error<error>({"needed rows are handed on inside nodes of ", ranks_of_node, " ranks"});
  return m.row > 1 && ranks_of_node > m.col * m.depth && ranks_of_node < m.places();
}

/// The ranks of a node on a mesh of the ranks along row alone, if rows are handed on. Throws error if nodes
/// would have different numbers of them.
inline int line_ranks_of_node(mesh_shape m, int ranks_of_node) {
  const int apart = m.col * m.depth;
  if (!hands_on(m, ranks_of_node)) return 1;
  if (ranks_of_node % apart != 0)
    base::throw_error<error>({"row_exchange::cover on mesh ", m, " is not for nodes of ", ranks_of_node,
                              " ranks, which is not a multiple of the ", apart, " ranks of a row"});
  return ranks_of_node / apart;
}

/// The ranks along row that are on a rank's node. Rows of each other rank, and sums for them, pass through
/// one of these.
struct row_node {
  int first, size;

  static row_node of(mesh_shape m, coordinates at, int ranks_of_node) {
    const int node = m.rank(at) / ranks_of_node;
    row_node found{at.row, 0};
    for (at.row = m.row - 1; at.row >= 0; --at.row)
      if (m.rank(at) / ranks_of_node == node) found = {at.row, found.size + 1};
    return found;
  }
  /// The rank that relays rows of rank r: r itself if it is on the node; if nodes have one size, the rank in
  /// the same place.
  std::size_t relay(std::size_t r) const {
    const int after = static_cast<int>(r) - first;
    return static_cast<std::size_t>(first + (after % size + size) % size);
  }
};

/// The exchange of needed rows in two. In `across` a rank receives, from each rank for which it is a relay,
/// the rows that any rank of the node needs, including its own rows for the other ranks of the node; in
/// `inside` it receives the rows that it needs itself. Sums go the other way.
template <class Device>
struct node_lists {
  std::shared_ptr<const chunk_lists<Device>> across, inside;

  explicit operator bool() const { return inside != nullptr; }
};

/// The rows that this rank requests from relays, and others from it, as numbers among the rows of all ranks.
struct relayed_rows {
  std::vector<global_index> firsts;         ///< of each rank's sub-block, and the end
  transfer::row_lists<global_index> asked;  ///< of each relay, in the order of the ranks whose rows they are
  std::vector<local_index> places;          ///< of the rows this rank asks for, in its table

  relayed_rows(const communicator& row, const row_node& node, const row_group& group,
               const local::needed_rows& needed)
      : firsts(1, 0) {
    const auto ranks = static_cast<std::size_t>(row.size());
    std::vector<std::size_t> by_relay(ranks), tables(1, 0);
    std::iota(by_relay.begin(), by_relay.end(), std::size_t{0});
    std::ranges::stable_sort(by_relay, {}, [&](std::size_t r) { return node.relay(r); });
    for (std::size_t r = 0; r < ranks; ++r) {
      firsts.push_back(firsts[r] + group.rows[r]);
      tables.push_back(tables[r] + needed.of_tile[r].size());
    }
    std::vector<global_index> wanted;
    asked.received.assign(ranks, 0);
    for (const std::size_t r : by_relay) {
      for (const local_index i : needed.of_tile[r]) wanted.push_back(firsts[r] + i);
      for (std::size_t i = tables[r]; i < tables[r + 1]; ++i) places.push_back(static_cast<local_index>(i));
      asked.received[node.relay(r)] += static_cast<global_index>(needed.of_tile[r].size());
    }
    asked.exchange(row, wanted);
  }

  /// All rows that others request, each once, in order.
  std::vector<global_index> passing() const {
    std::vector<global_index> rows = asked.rows;
    std::ranges::sort(rows);
    rows.erase(std::ranges::unique(rows).begin(), rows.end());
    return rows;
  }
};

/// needed[k].of_tile[r]: the rows of rank r's sub-block that this rank needs for block k. Collective along
/// row. What travels: the number of each needed row to its relay, and from there once to its owner.
template <class Device>
node_lists<Device> lists_by_node(const mesh<Device>& m, const std::vector<row_group>& groups,
                                 const std::vector<local::needed_rows>& needed, int ranks_of_node,
                                 local_index width) {
  const communicator& row = m.control(axis::row);
  const auto ranks = static_cast<std::size_t>(row.size());
  const row_node node = row_node::of(m.shape(), m.at(), ranks_of_node);
  const auto across = std::make_shared<chunk_lists<Device>>(ranks, width, false),
             inside = std::make_shared<chunk_lists<Device>>(ranks, width, true);
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const relayed_rows rows(row, node, groups[k], needed[k]);
    const std::vector<global_index> passing = rows.passing();
    transfer::row_lists<> crossing, handed{rows.asked.received, rows.asked.sent, {}};
    std::vector<local_index> of_owners;
    crossing.received.assign(ranks, 0);
    std::size_t r = 0;
    for (const global_index row_number : passing) {
      while (row_number >= rows.firsts[r + 1]) ++r;
      ++crossing.received[r];
      of_owners.push_back(static_cast<local_index>(row_number - rows.firsts[r]));
    }
    crossing.exchange(row, of_owners, groups[k].first_row);
    across->add_block(m.queue(), crossing);
    for (const global_index row_number : rows.asked.rows)
      handed.rows.push_back(
          static_cast<local_index>(std::ranges::lower_bound(passing, row_number) - passing.begin()));
    inside->add_block(m.queue(), handed, rows.places);
  }
  return {across, inside};
}

}  // namespace partita::algebra::detail
