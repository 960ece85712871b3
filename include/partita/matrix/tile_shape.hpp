// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Shapes of CSR tiles, with 32-bit offsets that restart so that they can index any number of entries.

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/local/view.hpp"

namespace partita::local {

/// Calls visitor(first, count) for consecutive runs of at most `most` out of `size` entries; a run fits
/// local_index.
template <class Visitor>
void for_runs(std::size_t size, std::size_t most, Visitor visitor) {
  for (std::size_t first = 0; first < size; first += most)
    visitor(first, static_cast<local_index>(std::min(size - first, most)));
}

/// Consecutive rows of a tile, as passed to kernels.
template <class T>
struct csr_slice {
  csr_view<T> entries;
  local_index first_row = 0;  ///< within the tile
  std::size_t base = 0;       ///< entry e of `entries` is entry base + e of the whole row of tiles

  /// The corresponding rows of a block with as many rows as the tile.
  template <class U>
  matrix_view<U> rows_of(matrix_view<U> block) const {
    return block.block(first_row, 0, entries.rows, block.cols);
  }
  /// The rows [begin, end) of the tile that are in this slice, perhaps none.
  csr_slice between(local_index begin, local_index end) const {
    begin = std::clamp(begin, first_row, first_row + entries.rows);
    end = std::clamp(end, begin, first_row + entries.rows);
    csr_slice part = *this;
    part.first_row = begin;
    part.entries.rows = end - begin;
    part.entries.offsets += begin - first_row;
    if (part.entries.row_factors != nullptr) part.entries.row_factors += begin - first_row;
    if (part.entries.rows != entries.rows) part.entries.entries = end > begin ? -1 : 0;
    return part;
  }
  /// The first value of this slice in an array that stores `heads` values per entry, over all tiles.
  template <class U>
  U* values_in(U* array, local_index heads) const {
    return array + base * static_cast<std::size_t>(heads);
  }
};

/// Where offsets restart: from this row of a tile on they count from entry `base`.
struct offset_restart {
  std::size_t tile = 0;
  local_index row = 0;
  std::size_t base = 0;
};

template <class T>
struct csr_slices;

/// What is stored for the values of entries: a value each; or, if they are `factored`, one factor for each
/// row or column or both, whose products are the values, all 1 without either.
struct value_form {
  bool factored = false, rows = false, columns = false;
};

/// Location of the tiles' structure: the offsets of tile t start at offsets + t * stride.
struct tile_structure {
  const local_index* offsets;
  std::size_t stride;
  const local_index* columns;
};

/// The structure of the tiles is one array: per tile (rows + 1) offsets, plus one for each offset_restart
/// within a tile; then the columns of all entries. The values of the entries are another one; or the factors
/// of the rows, then those of the columns, tile by tile, where the values are factored.
struct tile_shape {
  local_index rows = 0;
  std::vector<local_index> widths;  ///< columns of each tile
  std::size_t nonzeros = 0;
  std::vector<offset_restart> restarts;       ///< ascending; empty if 32-bit offsets cover all entries
  std::vector<local_index> entries_of_parts;  ///< of all tiles, in order; empty if unknown
  value_form form = {};

  std::size_t count() const { return widths.size(); }
  std::size_t offsets_size() const {
    std::size_t more = 0;
    for (const offset_restart& r : restarts) more += r.row > 0 ? 1 : 0;
    return local::offsets_size(count(), rows, more);
  }
  std::size_t structure_size() const { return offsets_size() + nonzeros; }
  /// Where the column factors of tile t begin, among the factors.
  std::size_t factors_before(std::size_t t) const {
    std::size_t before = form.rows ? static_cast<std::size_t>(rows) : 0;
    for (std::size_t s = 0; s < t && form.columns; ++s) before += static_cast<std::size_t>(widths[s]);
    return before;
  }
  /// The number of values stored, or of factors.
  std::size_t values_size() const { return form.factored ? factors_before(count()) : nonzeros; }

  /// How many entries tile t has. Those of parts must be known.
  std::size_t entries_of_tile(std::size_t t) const {
    std::size_t first = t, parts = 1, entries = 0;
    for (const offset_restart& r : restarts)
      if (r.row > 0 && r.tile <= t) ++(r.tile < t ? first : parts);
    for (std::size_t i = first; i < first + parts; ++i)
      entries += static_cast<std::size_t>(entries_of_parts[i]);
    return entries;
  }

  /// Offsets where parts are tiles with known entries, as many in each row as in the others.
  std::vector<local_index> even_offsets() const {
    std::vector<local_index> offsets;
    global_index before = 0;
    for (const global_index entries : entries_of_parts) {
      for (global_index i = 0; i <= rows; ++i)
        offsets.push_back(static_cast<local_index>(before + (rows > 0 ? entries * i / rows : 0)));
      before += entries;
    }
    return offsets;
  }

  /// The structure stored at an address.
  tile_structure structure_at(const local_index* begin) const {
    return {begin, static_cast<std::size_t>(rows) + 1, begin + offsets_size()};
  }

  /// The parts of tile t, stored in `structure` and `values`, by ascending rows: one, unless the offsets
  /// restart within the tile. `values` (values_size()) may be null.
  template <class T>
  csr_slices<T> parts(std::size_t t, tile_structure structure, const T* values) const {
    const auto within = [t](const offset_restart& r) { return r.tile == t && r.row > 0; };
    const auto more = std::count_if(restarts.begin(), restarts.end(), within);
    return {this, t, structure, values, static_cast<std::size_t>(more) + 1};
  }
  /// Part i of tile t.
  template <class T>
  csr_slice<T> part(std::size_t t, std::size_t i, tile_structure structure, const T* values) const {
    const local_index* offsets = structure.offsets + t * structure.stride;
    std::size_t base = 0, number = t + i;  // of the part, over all tiles
    local_index first = 0, end = rows;
    for (const offset_restart& r : restarts) {
      const bool within = r.tile == t && r.row > 0;
      if (r.tile > t) break;
      if (within && i-- == 0) {
        end = r.row;
        break;
      }
      if (r.tile < t && r.row > 0) ++number;
      if (r.row > 0) offsets += within ? r.row - first + 1 : 1;
      if (within) first = r.row;
      base = r.base;
    }
    const local_index* const columns = structure.columns + base;
    const local_index known = entries_of_parts.empty() ? -1 : entries_of_parts[number];
    csr_slice<T> found{{end - first, widths[t], offsets, columns, nullptr, known}, first, base};
    if (values == nullptr) return found;
    if (!form.factored) found.entries.values = values + base;
    if (form.rows) found.entries.row_factors = values + first;
    if (form.columns) found.entries.column_factors = values + factors_before(t);
    return found;
  }
};

/// The parts of a tile as a range that is its own iterator. The shape must outlive it.
template <class T>
struct csr_slices {
  const tile_shape* shape;
  std::size_t tile;
  tile_structure structure;
  const T* values;
  std::size_t count, next = 0;

  csr_slices begin() const { return *this; }
  std::default_sentinel_t end() const { return {}; }
  csr_slice<T> operator*() const { return shape->part(tile, next, structure, values); }
  csr_slices& operator++() {
    ++next;
    return *this;
  }
  bool operator==(std::default_sentinel_t) const { return next == count; }
};

/// The offsets of a shape. Row i of tile t spans the entries from begins[t * (rows + 1) + i] up to the next
/// element of `begins`. Sets nonzeros, restarts and entries_of_parts so that no part exceeds `most` entries;
/// restart bases are multiples of 4 to preserve column alignment. Throws shape_error naming a row with more
/// entries, numbered from `first_row`.
inline std::vector<local_index> count_offsets(tile_shape& shape, const std::vector<std::size_t>& begins,
                                              std::size_t most, global_index first_row) {
  std::vector<local_index> offsets;
  std::size_t first = 0, base = 0;  // of the current offset range
  const auto restart = [&](std::size_t t, local_index row, std::size_t begin) {
    first = begin;
    base = begin / 4 * 4;
    shape.restarts.push_back({t, row, base});
  };
  const auto count_to = [&](std::size_t entry) { offsets.push_back(static_cast<local_index>(entry - base)); };
  const auto end_part = [&](std::size_t begin, std::size_t end) {
    shape.entries_of_parts.push_back(static_cast<local_index>(end - begin));
  };
  shape.entries_of_parts.clear();
  for (std::size_t t = 0; t < shape.count(); ++t) {
    const std::size_t* const begin = begins.data() + t * (static_cast<std::size_t>(shape.rows) + 1);
    if (begin[shape.rows] - first > most && first < begin[0]) restart(t, 0, begin[0]);
    count_to(begin[0]);
    std::size_t part_begin = begin[0];
    for (local_index i = 0; i < shape.rows; ++i) {
      if (begin[i + 1] - begin[i] > most)
        base::throw_error<shape_error>({"row ", first_row + i, " has ", begin[i + 1] - begin[i],
                                        " entries in one tile of a sparse block, which holds no more than ",
                                        most});
      if (begin[i + 1] - first > most) {
        restart(t, i, begin[i]);
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

/// The structure of tiles in host memory, accessed by row. Entries are numbered across all tiles.
class entry_lists {
 public:
  entry_lists(const tile_shape& shape, std::vector<local_index> structure)
      : rows_(static_cast<std::size_t>(shape.rows)),
        offsets_size_(shape.offsets_size()),
        structure_(std::move(structure)) {
    for (std::size_t t = 0; t < shape.count(); ++t)
      for (const auto& part : shape.parts<char>(t, shape.structure_at(structure_.data()), nullptr))
        for (local_index i = part.first_row == 0 ? 0 : 1; i <= part.entries.rows; ++i)
          begins_.push_back(part.base + static_cast<std::size_t>(part.entries.offsets[i]));
  }

  /// The entries [begin, end) of row i of tile t.
  std::size_t begin(std::size_t t, std::size_t i) const { return begins_[t * (rows_ + 1) + i]; }
  std::size_t end(std::size_t t, std::size_t i) const { return begin(t, i + 1); }
  /// The entries [begin, end) of tile t.
  std::size_t begin(std::size_t t) const { return begin(t, 0); }
  std::size_t end(std::size_t t) const { return begin(t, rows_); }

  /// Where the rows of tile t begin, and the last one ends.
  std::span<const std::size_t> begins(std::size_t t) const {
    return std::span(begins_).subspan(t * (rows_ + 1), rows_ + 1);
  }

  /// The columns of all entries, and that of one.
  std::span<const local_index> columns() const { return std::span(structure_).subspan(offsets_size_); }
  local_index column(std::size_t entry) const { return structure_[offsets_size_ + entry]; }
  void set_column(std::size_t entry, local_index column) { structure_[offsets_size_ + entry] = column; }
  const std::vector<local_index>& structure() const { return structure_; }

 private:
  std::size_t rows_, offsets_size_;
  std::vector<local_index> structure_;
  std::vector<std::size_t> begins_;
};

}  // namespace partita::local
