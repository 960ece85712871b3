// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Directed edges of a graph.

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::io {

/// The edge source -> target; aggregation at `target` sums over its in-edges. Vertices are numbered from 0.
struct edge {
  global_index source = 0;
  global_index target = 0;

  friend constexpr bool operator==(edge, edge) = default;
};

/// The number of edges that repeat an earlier one with the same source and target.
inline global_index duplicate_edges(std::vector<edge> edges) {
  const auto ends = [](const edge& e) { return std::pair(e.source, e.target); };
  std::ranges::sort(edges, {}, ends);
  return std::ranges::ssize(std::ranges::unique(edges));
}

}  // namespace partita::io
