// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Entries of one rank's tiles, before they are sorted.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/triplet.hpp"

namespace partita::local {

/// The row and the column of an entry, relative to its tile, in one number: row * 2^32 + column.
constexpr global_index packed_place(global_index row, global_index col) { return row << 32 | col; }
constexpr std::size_t row_of_place(global_index place) { return static_cast<std::size_t>(place >> 32); }
constexpr std::size_t col_of_place(global_index place) {
  return static_cast<std::size_t>(place & 0xffffffff);
}

/// Entries of a row of tiles, tile by tile in the order of their arrival.
template <class T>
class arrived_entries {
 public:
  /// Consecutive entries of one tile.
  struct run {
    std::vector<global_index> places;  ///< see packed_place
    std::vector<T> values;             ///< empty if all are 1
  };

  explicit arrived_entries(std::size_t tiles) : runs_(tiles) {}

  std::size_t tiles() const { return runs_.size(); }
  const std::vector<run>& of_tile(std::size_t t) const { return runs_[t]; }
  std::size_t count(std::size_t t) const {
    std::size_t entries = 0;
    for (const run& r : runs_[t]) entries += r.places.size();
    return entries;
  }
  /// The entries that come next in a tile.
  void add(std::size_t t, run entries) {
    if (!entries.places.empty()) runs_[t].push_back(std::move(entries));
  }
  /// Orders the entries of each tile by place, and those of one place by value.
  void sort() {
    for (std::vector<run>& tile : runs_) {
      std::vector<std::pair<global_index, T>> all;
      for (const run& r : std::exchange(tile, {}))
        for (std::size_t e = 0; e < r.places.size(); ++e)
          all.push_back({r.places[e], r.values.empty() ? T(1) : r.values[e]});
      std::sort(all.begin(), all.end());
      run& sorted = tile.emplace_back();
      for (const auto& [place, value] : all) {
        sorted.places.push_back(place);
        sorted.values.push_back(value);
      }
    }
  }
  /// Forgets the entries of a tile.
  void clear(std::size_t t) { runs_[t] = {}; }

  /// The entries of all tiles, whose rows and columns are these, with global indices.
  std::vector<triplet<T>> triplets(interval rows, std::span<const interval> columns) const {
    std::vector<triplet<T>> entries;
    for (std::size_t t = 0; t < runs_.size(); ++t)
      for (const run& r : runs_[t])
        for (std::size_t e = 0; e < r.places.size(); ++e)
          entries.push_back({rows.begin + static_cast<global_index>(row_of_place(r.places[e])),
                             columns[t].begin + static_cast<global_index>(col_of_place(r.places[e])),
                             r.values.empty() ? T(1) : r.values[e]});
    return entries;
  }

 private:
  std::vector<std::vector<run>> runs_;
};

}  // namespace partita::local
