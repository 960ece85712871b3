// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One directed edge of a graph.

#include "partita/base/index.hpp"

namespace partita::io {

/// The edge source -> target; aggregation at `target` runs over its in-edges. Vertices count from 0.
struct edge {
  global_index source = 0;
  global_index target = 0;

  friend constexpr bool operator==(edge, edge) = default;
};

}  // namespace partita::io
