// SPDX-License-Identifier: Apache-2.0
#include "ordering.hpp"
#ifdef PARTITA_WITH_METIS
#include "partita/io/parts.hpp"
#include "partita/partition/metis.hpp"

std::vector<int> metis_parts_of(partita::global_index vertices, std::span<const partita::io::edge> edges,
                                int parts, std::uint64_t seed) {
  const partita::io::neighbour_lists lists = partita::io::in_neighbours(vertices, edges);
  return partita::partition::metis_parts(lists.offsets, lists.sources, parts, {.seed = seed});
}
#else

std::vector<int> metis_parts_of(partita::global_index, std::span<const partita::io::edge>, int,
                                std::uint64_t) {
  throw partita::error("this program was built without METIS; install libmetis-dev and build again");
}
#endif
