// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What is counted or summed over the entries of each row, each row on one rank, whatever the policy.

#include <algorithm>
#include <vector>

#include "partita/transfer/entry_routing.hpp"

namespace partita::transfer {

namespace detail {

/// visit(tile) for the tiles of this rank's part of even blocks of rows, with entries at one place in the
/// order of their values. Collective over `world`. Returns the rows of the tiles.
template <class T, class Entries, class Visit>
interval for_row_tiles(const communicator& world, global_index n, const Entries& entries,
                       const routing_options& options, const Visit& visit) {
  constexpr layout by_rows{axis::row, {}};
  const mesh_shape shape{world.size(), 1, 1};
  const blocking blocks = blocking::even(n, shape, nesting::rows);
  auto arrived = send_to_holders<T>(world, shape, by_rows, blocks, blocks, entries, side::straight, options);
  const coordinates here = shape.at(world.rank());
  const interval rows = blocks.block(by_rows.rows, here);
  for (std::size_t t = 0; t < arrived.tiles(); ++t) {
    const interval cols = partition::tile_columns(by_rows, blocks, here, t);
    visit(local::sort_entries(arrived, t, static_cast<std::size_t>(rows.size()),
                              static_cast<std::size_t>(cols.size()), options.threads));
  }
  return rows;
}

}  // namespace detail

/// How many entries of all ranks, triplets of an n x n matrix with values of T, are at the place of another
/// one, which counts once. Collective over `world`. What travels: see send_to_holders, each entry to one
/// rank; an all-reduce of one element.
template <class T, class Entries>
global_index repeated_entries(const communicator& world, global_index n, const Entries& entries,
                              const routing_options& options = {}) {
  global_index repeated[] = {0};
  detail::for_row_tiles<T>(world, n, entries, options, [&](const auto& tile) {
    repeated[0] += static_cast<global_index>(tile.repeated);
  });
  world.all_reduce(repeated);
  return repeated[0];
}

/// The sums of the rows of an n x n matrix, on every rank, with the same bits for every number of ranks: each
/// row is summed on one rank, by ascending columns. `entries`: triplets of doubles. Collective over `world`.
/// What travels: each entry, to one rank; an all-reduce of n elements.
template <class Entries>
std::vector<double> ordered_row_sums(const communicator& world, global_index n, const Entries& entries) {
  std::vector<double> sums;
  const interval rows =
      detail::for_row_tiles<double>(world, n, entries, {.sorted = true}, [&](const auto& tile) {
        sums.resize(tile.begins.size() - 1);
        for (const auto& s : tile.segments)
          for (std::size_t e = 0; e < s.places.size(); ++e)
            sums[local::row_of_place(s.places[e])] += s.value(e);
      });
  std::vector<double> all(static_cast<std::size_t>(n), 0);
  std::copy(sums.begin(), sums.end(), all.begin() + rows.begin);
  world.all_reduce(all);
  return all;
}

}  // namespace partita::transfer
