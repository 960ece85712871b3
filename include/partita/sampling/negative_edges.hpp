// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Pairs of vertices without an edge, drawn by counter.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/base/triplet.hpp"
#include "partita/sampling/graph.hpp"

namespace partita::sampling {

/// Whether row u of `links` has column w.
template <class T>
bool is_link(const graph<T>& links, global_index u, global_index w) {
  const graph_row row = links.row(u);
  const auto begin = links.columns().begin() + static_cast<std::ptrdiff_t>(row.begin),
             end = begin + row.count;
  const auto found = std::lower_bound(begin, end, static_cast<local_index>(w));
  return found != end && *found == w;
}

/// A vertex w such that (u, w) is no link and w is not u, all of them equally likely: the first such one of
/// 64 vertices drawn uniformly, and none where all of them are links or u, as of a vertex linked with nearly
/// all others. A pure function of the key, u, `number` and row u of `links`, so the same for any number of
/// ranks. Local; u is one of links.row_range().
template <class T>
std::optional<global_index> negative_of(const graph<T>& links, random_key key, global_index u,
                                        std::int64_t number) {
  constexpr std::int64_t draws = 64;
  const auto n = static_cast<std::uint64_t>(links.vertices());
  for (std::int64_t k = number * draws; k < (number + 1) * draws; ++k) {
    const auto w = static_cast<global_index>(base::random_bits(key.word(), u, k) % n);
    if (w != u && !is_link(links, u, w)) return w;
  }
  return {};
}

/// The links u -> v of the vertices u in `own`, with value 1, and for the k-th link of u negatives u -> w
/// with value -1: those of negative_of with numbers count k to count (k + 1) - 1. Loops are neither. As
/// entries (v, u) and (w, u) of a pattern like A's; a negative that is drawn twice comes twice. Local.
template <class T>
std::vector<triplet<T>> links_and_negatives(const graph<T>& links, interval own, int count, random_key key) {
  std::vector<triplet<T>> pairs;
  for (global_index u = own.begin; u < own.end; ++u) {
    const graph_row row = links.row(u);
    for (local_index k = 0; k < row.count; ++k) {
      const global_index v = links.columns()[row.begin + static_cast<std::size_t>(k)];
      if (v == u) continue;
      pairs.push_back({v, u, T(1)});
      for (int j = 0; j < count; ++j)
        if (const auto w = negative_of(links, key, u, std::int64_t{k} * count + j))
          pairs.push_back({*w, u, T(-1)});
    }
  }
  return pairs;
}

}  // namespace partita::sampling
