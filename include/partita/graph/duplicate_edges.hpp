// SPDX-License-Identifier: Apache-2.0
#pragma once
/// How many edges of a graph repeat others.

#include <concepts>
#include <cstdint>

#include "partita/graph/matrix_entries.hpp"
#include "partita/transfer/entry_rows.hpp"

namespace partita::graph {

/// The number of edges that repeat an earlier one with the same source and target. Collective over `world`,
/// whose ranks have the same data. What travels: each edge, to one rank.
template <std::same_as<io::dataset> Dataset>  // instantiated only where it is called
global_index duplicate_edges(const communicator& world, const Dataset& data,
                             const transfer::routing_options& options = {}) {
  return transfer::repeated_entries<std::uint8_t>(
      world, data.vertices, matrix_entries<std::uint8_t>(world, data).unweighted(), options);
}

}  // namespace partita::graph
