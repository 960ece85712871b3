#pragma once
/// What a row of CSR tiles is like without its entries, and how offsets of 32 bits count any number of them.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "partita/local/view.hpp"

namespace partita {

/// visitor(first, count) for runs of at most `most` of `size` entries, as many as local indices count.
template <class Visitor>
void for_runs(std::size_t size, std::size_t most, Visitor visitor) {
  for (std::size_t first = 0; first < size; first += most)
    visitor(first, static_cast<local_index>(std::min(size - first, most)));
}

/// Consecutive rows of a tile as kernels take them.
template <class T>
struct tile_part {
  csr_view<T> entries;
  local_index first_row = 0;  ///< of the tile
  std::size_t base = 0;       ///< entry e of `entries` is entry base + e of the row of tiles

  /// The rows of a block that has as many as the tile.
  template <class U>
  matrix_view<U> rows_of(matrix_view<U> block) const {
    return block.block(first_row, 0, entries.rows, block.cols);
  }
  /// The values that an array has for entry 0 of `entries`, where it has `heads` for every entry of all
  /// tiles.
  template <class U>
  U* values_in(U* array, local_index heads) const {
    return array + base * static_cast<std::size_t>(heads);
  }
};

/// Where offsets begin to count anew: from this row of a tile on they count from entry `base`.
struct recount {
  std::size_t tile = 0;
  local_index row = 0;
  std::size_t base = 0;
};

/// The structure of the tiles is one array: for every tile (rows + 1) offsets, and one more for every recount
/// that is not at its first row; then the columns of all entries.
struct tile_shape {
  local_index rows = 0;
  std::vector<local_index> widths;  ///< columns of each tile
  std::size_t nonzeros = 0;
  std::vector<recount> recounts;              ///< ascending; none where offsets can count all entries
  std::vector<local_index> entries_of_parts;  ///< of all tiles, in order; none where they are not known

  std::size_t count() const { return widths.size(); }
  std::size_t offsets_size() const {
    std::size_t more = 0;
    for (const recount& r : recounts) more += r.row > 0 ? 1 : 0;
    return partita::offsets_size(count(), rows, more);
  }
  std::size_t structure_size() const { return offsets_size() + nonzeros; }

  /// visitor(tile_part) for the parts of tile t, which lies in `structure` and `values`, in order of rows:
  /// one part, unless offsets count anew within the tile. `values` may be null.
  template <class T, class Visitor>
  void for_parts(std::size_t t, const local_index* structure, const T* values, Visitor visitor) const {
    const local_index* const columns = structure + offsets_size();
    const local_index* offsets = structure + t * (static_cast<std::size_t>(rows) + 1);
    local_index first = 0;
    std::size_t base = 0;
    std::size_t part = t;
    const auto visit_until = [&](local_index end) {
      const local_index known = entries_of_parts.empty() ? -1 : entries_of_parts[part++];
      visitor(tile_part<T>{{end - first, widths[t], offsets, columns + base,
                            values == nullptr ? nullptr : values + base, known},
                           first,
                           base});
    };
    for (const recount& r : recounts) {
      if (r.tile > t) break;
      if (r.tile < t) {
        offsets += r.row > 0 ? 1 : 0;
        part += r.row > 0 ? 1 : 0;
      } else if (r.row > 0) {
        visit_until(r.row);
        offsets += r.row - first + 1;
        first = r.row;
      }
      base = r.base;
    }
    visit_until(rows);
  }
};

/// The offsets of a shape, from where the entries of its rows begin: row i of tile t at begins[t * (rows + 1)
/// + i], its last row ends at begins[t * (rows + 1) + rows]. Sets nonzeros, recounts and entries_of_parts so
/// that no part of a tile has more than `most` entries; the bases of recounts are multiples of 4, which keeps
/// the alignment of columns. Throws shape_error naming a row with more entries, counted from `first_row`.
inline std::vector<local_index> count_offsets(tile_shape& shape, const std::vector<std::size_t>& begins,
                                              std::size_t most, global_index first_row) {
  std::vector<local_index> offsets;
  std::size_t first = 0, base = 0;  // of the entries that are being counted
  const auto count_anew = [&](std::size_t t, local_index row, std::size_t begin) {
    first = begin;
    base = begin / 4 * 4;
    shape.recounts.push_back({t, row, base});
  };
  const auto count_to = [&](std::size_t entry) { offsets.push_back(static_cast<local_index>(entry - base)); };
  const auto end_part = [&](std::size_t begin, std::size_t end) {
    shape.entries_of_parts.push_back(static_cast<local_index>(end - begin));
  };
  shape.entries_of_parts.clear();
  for (std::size_t t = 0; t < shape.count(); ++t) {
    const std::size_t* const begin = begins.data() + t * (static_cast<std::size_t>(shape.rows) + 1);
    if (begin[shape.rows] - first > most && first < begin[0]) count_anew(t, 0, begin[0]);
    count_to(begin[0]);
    std::size_t part_begin = begin[0];
    for (local_index i = 0; i < shape.rows; ++i) {
      if (begin[i + 1] - begin[i] > most)
        throw shape_error(
            "row " + std::to_string(first_row + i) + " has " + std::to_string(begin[i + 1] - begin[i]) +
            " entries in one tile of a sparse block, which holds no more than " + std::to_string(most));
      if (begin[i + 1] - first > most) {
        count_anew(t, i, begin[i]);
        count_to(begin[i]);
        if (i > 0) end_part(std::exchange(part_begin, begin[i]), begin[i]);
      }
      count_to(begin[i + 1]);
    }
    end_part(part_begin, begin[shape.rows]);
    shape.nonzeros = begin[shape.rows];
  }
  offsets.resize(shape.offsets_size(), 0);
  return offsets;
}

/// Where the entries of rows begin, from a structure in host memory: `begins` as count_offsets takes it.
inline std::vector<std::size_t> entry_begins(const tile_shape& shape, const local_index* structure) {
  std::vector<std::size_t> begins;
  for (std::size_t t = 0; t < shape.count(); ++t)
    shape.for_parts(t, structure, static_cast<const char*>(nullptr), [&](const tile_part<char>& part) {
      const local_index* const offsets = part.entries.offsets;
      if (part.first_row == 0) begins.push_back(part.base + static_cast<std::size_t>(offsets[0]));
      for (local_index i = 1; i <= part.entries.rows; ++i)
        begins.push_back(part.base + static_cast<std::size_t>(offsets[i]));
    });
  return begins;
}

}  // namespace partita
