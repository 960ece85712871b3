// SPDX-License-Identifier: Apache-2.0
#include "ordering.hpp"
#include "partita/io/parts.hpp"
#include "partita/partition/metis.hpp"

std::vector<int> metis_parts_of(partita::global_index vertices, std::span<const partita::io::edge> edges,
                                int parts, std::uint64_t seed) {
  const partita::io::neighbour_lists lists = partita::io::in_neighbours(vertices, edges);
  return partita::partition::metis_parts(lists.offsets, lists.sources, parts, {.seed = seed});
}
