// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The entries of tiles, divided between the rank that has their row of Y and the one that has their row of
/// X.

#include <memory>
#include <utility>
#include <vector>

#include "partita/partition/vertex_cover.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::transfer {

/// A row of tiles in two parts: A = kept + sent^T, both on the mesh of the ranks along row alone, cut by it.
/// A minimum vertex cover of each tile of another rank decides: entries whose column is in it are kept, so
/// that this row of X must come; the others are sent once to the rank that has their row of X, which can form
/// their part of a row of Y. So many rows travel as the covers have vertices.
template <class T, class Device>
struct row_cover {
  using matrix = sparse<T, dynamic_layout, Device>;

  matrix kept, sent;  ///< one_way
};

namespace detail {

/// Entries of a row of tiles, numbered over all ranks along row, those of the second list transposed.
template <class T>
struct divided_entries {
  std::vector<triplet<T>> kept, sent;
};

/// Divides the entries of the tiles, whose rows and columns begin at these numbers.
template <class T, class Device>
divided_entries<T> divide_entries(const device_queue<Device>& q, const local::csr_tiles<T, Device>& tiles,
                                  std::size_t own, global_index first_row,
                                  const std::vector<global_index>& widths) {
  const local::entry_lists entries = tiles.entries(q);
  const std::vector<T> values = tiles.values_of_entries(q);
  divided_entries<T> found;
  global_index first_column = 0;
  for (std::size_t t = 0; t < tiles.count(); first_column += widths[t++]) {
    partition::vertex_cover cover;
    if (t != own)
      cover = partition::minimum_vertex_cover({entries.begins(t), entries.columns(), tiles.widths[t]});
    for (std::size_t i = 0; i < static_cast<std::size_t>(tiles.rows); ++i)
      for (std::size_t e = entries.begin(t, i); e < entries.end(t, i); ++e) {
        const global_index row = first_row + static_cast<global_index>(i),
                           column = first_column + entries.column(e);
        if (t == own || cover.columns[static_cast<std::size_t>(entries.column(e))] != 0)
          found.kept.push_back({row, column, values[e]});
        else
          found.sent.push_back({column, row, values[e]});
      }
  }
  return found;
}

}  // namespace detail

/// The cover of a row of tiles, tile r being this rank's at the columns of rank r along row. Collective along
/// row. What travels: the numbers of rows; and each entry that is sent, as one index and its value.
template <class T, class Device>
row_cover<T, Device> make_row_cover(const mesh<Device>& m, const local::csr_tiles<T, Device>& tiles) {
  const communicator& row = m.control(axis::row);
  const mesh<Device> line(row, {row.size(), 1, 1}, m.queue(), m.tile_entries());
  const std::vector<global_index> heights = row.all_gather(global_index{tiles.rows}),
                                  widths(tiles.widths.begin(), tiles.widths.end());
  const auto own = static_cast<std::size_t>(row.rank());
  const blocking rows = blocking::given(heights, line.shape(), nesting::rows),
                 cols = blocking::given(widths, line.shape(), nesting::rows);
  const detail::divided_entries<T> entries =
      detail::divide_entries(m.queue(), tiles, own, rows.block(axis::row, line.at()).begin, widths);
  const auto part = [&](const blocking& r, const blocking& c, const std::vector<triplet<T>>& of) {
    return distribute(line, row_1d.sparse, r, c, of, symmetry::one_way, {}, sharing::trusted);
  };
  auto kept = part(rows, cols, entries.kept);
  return {std::move(kept), part(cols, rows, entries.sent)};
}

}  // namespace partita::transfer
