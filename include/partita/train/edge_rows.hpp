// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What is counted or summed over the edges into each vertex.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <vector>

#include "partita/memory/large_list.hpp"
#include "partita/train/graph_entries.hpp"
#include "partita/transfer/entry_routing.hpp"

namespace partita::nn {

namespace detail {

/// visit(tile) for the tiles of this rank's part of even blocks of rows, whatever the policy, with entries
/// at one place in the order of their values. Collective over `world`. Returns the rows of the tiles.
template <class T, class Visit>
interval for_edge_tiles(const communicator& world, global_index n, const graph_entries<T>& entries,
                        const transfer::routing_options& options, const Visit& visit) {
  constexpr layout by_rows{axis::row, {}};
  const mesh_shape shape{world.size(), 1, 1};
  const blocking vertices = blocking::even(n, shape, nesting::rows);
  auto arrived = transfer::send_to_holders<T>(world, shape, by_rows, vertices, vertices, entries,
                                              transfer::side::straight, options);
  const coordinates here = shape.at(world.rank());
  const interval rows = vertices.block(by_rows.rows, here);
  for (std::size_t t = 0; t < arrived.tiles(); ++t) {
    const interval cols = partition::tile_columns(by_rows, vertices, here, t);
    visit(local::sort_entries(arrived, t, static_cast<std::size_t>(rows.size()),
                              static_cast<std::size_t>(cols.size()), options.threads));
  }
  return rows;
}

}  // namespace detail

/// The number of edges that repeat an earlier one with the same source and target. Collective over `world`,
/// whose ranks have the same data; `threads` of each, which list the edges in `memory`. What travels: each
/// edge, to one rank.
template <std::same_as<io::dataset> Dataset>  // instantiated only where it is called
global_index repeated_edges(const communicator& world, const Dataset& data, int threads = 1,
                            const local::list_allocator<std::byte>& memory = {}) {
  global_index repeated[] = {0};
  detail::for_edge_tiles(world, data.vertices, graph_entries<std::uint8_t>(world, data).unweighted(),
                         {.threads = threads, .memory = memory},
                         [&](const auto& tile) { repeated[0] += static_cast<global_index>(tile.repeated); });
  world.all_reduce(repeated);
  return repeated[0];
}

/// row_sums with the same bits for every number of ranks: each row is summed on one rank, by ascending
/// columns. Collective over `world`. What travels: each entry, to one rank; an all-gather of n elements.
template <std::same_as<double> T>
std::vector<T> reproducible_row_sums(const communicator& world, global_index n,
                                     const graph_entries<T>& entries) {
  if (entries.has_ones()) return row_sums(world, n, entries);
  std::vector<double> sums;
  detail::for_edge_tiles(world, n, entries, {.sorted = true}, [&](const auto& tile) {
    sums.resize(tile.begins.size() - 1);
    for (const auto& s : tile.segments)
      for (std::size_t e = 0; e < s.places.size(); ++e) sums[local::row_of_place(s.places[e])] += s.value(e);
  });
  return world.all_gather(sums, world.all_gather(std::ssize(sums)));
}

}  // namespace partita::nn
