// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One directed edge of a graph.

#include <algorithm>
#include <ranges>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::io {

/// The edge source -> target; aggregation at `target` runs over its in-edges. Vertices count from 0.
struct edge {
  global_index source = 0;
  global_index target = 0;

  friend constexpr bool operator==(edge, edge) = default;
};

/// How many edges repeat an earlier one, of the same source and target.
inline global_index duplicate_edges(std::vector<edge> edges) {
  const auto ends = [](const edge& e) { return std::pair(e.source, e.target); };
  std::ranges::sort(edges, {}, ends);
  return std::ranges::ssize(std::ranges::unique(edges));
}

}  // namespace partita::io
