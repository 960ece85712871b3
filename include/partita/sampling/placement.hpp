// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which rank computes for which roots of a batch.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "partita/comm/operation.hpp"
#include "partita/partition/blocking.hpp"
#include "partita/sampling/graph.hpp"

namespace partita::sampling {

/// Four distributions of H_0 = R X, the rows of X that the roots of a batch need. R selects rows; X is cut by
/// rows (even, owner) or by columns.
enum class placement : std::uint8_t {
  automatic,     ///< the one whose busiest rank receives least, by the closed forms of what was sampled
  even,          ///< equal shares of the batch, whatever its roots: DistDGL
  owner,         ///< each root on the rank that has its row of X, then balanced: LeapGNN
  column,        ///< the first layer as partial sums over the columns of X: P3
  column_gather  ///< equal shares; whole rows of X are put together from the columns of all ranks
};

/// As in command lines and records.
constexpr std::string_view name_of(placement p) {
  constexpr std::string_view names[] = {"auto", "even", "owner", "column", "column_gather"};
  return names[static_cast<std::size_t>(p)];
}

/// The roots of each rank.
using root_lists = std::vector<std::vector<global_index>>;

/// Equal shares of a batch, in its order. Local; no communication.
inline root_lists equal_shares(std::span<const global_index> batch, int ranks) {
  root_lists lists;
  for (int r = 0; r < ranks; ++r) {
    const interval share = comm::share_of(static_cast<global_index>(batch.size()), r, ranks);
    lists.emplace_back(batch.begin() + share.begin, batch.begin() + share.end);
  }
  return lists;
}

/// Who has which row of X.
struct vertex_owners {
  blocking rows;
  axis_set axes;
  int ranks = 1;

  std::size_t operator()(global_index v) const { return rows.owner(axes, v); }
};

/// How many in-neighbours of each root every rank has (roots x ranks), row-major. What travels: over a cut
/// graph, an all-reduce of as many elements; collective over its ranks then, with the same roots on each.
template <class T>
std::vector<global_index> neighbours_by_owner(const graph<T>& g, std::span<const global_index> roots,
                                              const vertex_owners& owner) {
  const auto ranks = static_cast<std::size_t>(owner.ranks);
  std::vector<global_index> counts(roots.size() * ranks, 0);
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (!g.row_range().contains(roots[i])) continue;
    for (local_index r = 0; r < g.relations(); ++r) {
      const graph_row row = g.row(roots[i], r);
      for (std::size_t e = row.begin; e < row.begin + static_cast<std::size_t>(row.count); ++e)
        ++counts[i * ranks + owner(g.columns()[e])];
    }
  }
  if (!g.is_replicated()) g.ranks().all_reduce(counts);
  return counts;
}

/// The most roots that a rank may have, of a batch: 1.1 times the mean, or the mean rounded up.
constexpr global_index most_roots(std::size_t batch, int ranks) {
  const auto all = static_cast<global_index>(batch);
  return std::max((all + ranks - 1) / ranks, 11 * all / (10 * ranks));
}

namespace detail {

/// The rank with most of a root's in-neighbours among those with room, and how many fewer that is than at
/// `from`.
struct move_of_root {
  global_index loss;
  std::size_t root, to;
};

inline move_of_root best_move(std::size_t root, std::size_t from, const global_index* counts,
                              const root_lists& lists, global_index most) {
  move_of_root best{0, root, lists.size()};
  for (std::size_t to = 0; to < lists.size(); ++to)
    if (std::ssize(lists[to]) < most && (best.to == lists.size() || counts[to] > counts[best.to]))
      best.to = to;
  best.loss = counts[from] - counts[best.to];
  return best;
}

}  // namespace detail

/// Each root on the rank that has its row, in the order of the batch. From ranks with more than most_roots,
/// those that lose least move to the rank that has most of their in-neighbours, of those with room. Local, or
/// collective over the ranks of a cut graph; what travels: see neighbours_by_owner, for the roots of ranks
/// that have too many.
template <class T>
root_lists owner_shares(const graph<T>& g, std::span<const global_index> batch, const vertex_owners& owner) {
  root_lists lists(static_cast<std::size_t>(owner.ranks));
  for (const global_index v : batch) lists[owner(v)].push_back(v);
  const global_index most = most_roots(batch.size(), owner.ranks);
  std::vector<global_index> movable;
  for (const auto& list : lists)
    if (std::ssize(list) > most) movable.insert(movable.end(), list.begin(), list.end());
  if (movable.empty()) return lists;
  const std::vector<global_index> counts = neighbours_by_owner(g, movable, owner);
  std::size_t first = 0;
  for (std::size_t from = 0; from < lists.size(); ++from) {
    const std::size_t here = lists[from].size();
    if (static_cast<global_index>(here) <= most) continue;
    std::vector<detail::move_of_root> moves;
    for (std::size_t i = first; i < first + here; ++i)
      moves.push_back(detail::best_move(i, from, &counts[i * lists.size()], lists, most));
    std::stable_sort(moves.begin(), moves.end(),
                     [](const auto& a, const auto& b) { return a.loss < b.loss; });
    const auto surplus = here - static_cast<std::size_t>(most);
    std::vector<char> gone(here, 0);
    for (std::size_t k = 0; k < surplus; ++k) {
      const std::size_t root = moves[k].root;
      const auto to = detail::best_move(root, from, &counts[root * lists.size()], lists, most).to;
      lists[to].push_back(movable[root]);
      gone[root - first] = 1;
    }
    std::vector<global_index> stay;
    for (std::size_t i = 0; i < here; ++i)
      if (!gone[i]) stay.push_back(lists[from][i]);
    lists[from] = std::move(stay);
    first += here;
  }
  return lists;
}

/// The roots of each rank of a batch: owner_shares where placed at their owners, else equal shares.
template <class T>
root_lists shares(const graph<T>& g, std::span<const global_index> batch, placement how,
                  const vertex_owners& owner) {
  return how == placement::owner ? owner_shares(g, batch, owner) : equal_shares(batch, owner.ranks);
}

}  // namespace partita::sampling
