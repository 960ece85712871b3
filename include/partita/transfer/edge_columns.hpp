// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of values of a graph's edges, on their way to the entries of a distributed pattern.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "partita/transfer/assign_values.hpp"

namespace partita::transfer {

/// What becomes of the rows of edges with the same source and target.
enum class repeated_edges : std::uint8_t { summed, refused };

namespace detail {

/// Throws error naming the first place with two entries.
template <class T>
void require_distinct(interval rows, const std::vector<triplet<T>>& entries) {
  const auto sorted = local::sorted_by_rows(rows, entries);
  const auto same =
      std::ranges::adjacent_find(sorted, {}, [](const triplet<T>& e) { return std::pair(e.row, e.col); });
  if (same == sorted.end()) return;
  base::throw_error<error>({"rows of edges: the edge ", same->col, " -> ", same->row,
                            " comes more than once; repeated_edges::summed adds its rows up"});
}

}  // namespace detail

/// The values of this rank's entries of A (entries x columns), in storage order: column j has the sums of
/// the entries in of_column(j), a forward range of triplets of A's rows and columns. Entries of A that no
/// rank gives, such as loops that a model adds, have rows of 0.
///
/// Collective over the mesh. What travels: each triplet, to the ranks that hold it, for one column at a
/// time. Throws what distribute throws, and error naming an entry outside the pattern, or one that is given
/// twice where `repeated` refuses that.
template <class T, layout L, class Device, class OfColumn>
std::vector<T> values_of_columns(const sparse<T, L, Device>& a, local_index columns,
                                 const OfColumn& of_column, repeated_edges repeated) {
  const std::size_t entries = a.local()->nonzeros, k = static_cast<std::size_t>(columns);
  const std::vector<interval> tiles = partition::tile_columns(a.layout(), a.col_blocking(), a.mesh().at());
  std::vector<T> values(entries * k);
  for (std::size_t j = 0; j < k; ++j) {
    const auto given = of_column(static_cast<local_index>(j));
    require_entries(a.shape(), given, 1, "");
    const auto arrived =
        send_to_holders<T>(a.mesh(), a.layout(), a.row_blocking(), a.col_blocking(), given, side::straight)
            .triplets(a.row_range(), tiles);
    if (j == 0 && repeated == repeated_edges::refused) detail::require_distinct(a.row_range(), arrived);
    detail::entry_table<T> table(a.row_range(), arrived);
    const std::vector<T> column =
        detail::values_by(a, [&](auto row, auto col, T old) { return table(row, col, old); });
    table.require_all_found("rows of edges", "A");
    for (std::size_t e = 0; e < entries; ++e) values[e * k + j] = column[e];
  }
  return values;
}

}  // namespace partita::transfer
