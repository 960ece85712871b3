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
#include "partita/memory/large_list.hpp"

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
    large_list<global_index> places;  ///< see packed_place
    large_list<T> values;             ///< empty if all are 1
  };

  /// Where entries are written.
  struct space {
    std::span<global_index> places;
    std::span<T> values;
  };

  /// Lists of entries are allocated with `memory`.
  explicit arrived_entries(std::size_t tiles, const list_allocator<std::byte>& memory = {})
      : runs_(tiles), memory_(memory) {}

  std::size_t tiles() const { return runs_.size(); }
  const list_allocator<std::byte>& memory() const { return memory_; }
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
  /// As above, `count` entries that are written later. Runs grow to sizes that are given back to the system
  /// one by one.
  space add(std::size_t t, std::size_t count, bool with_values) {
    constexpr std::size_t largest = std::size_t{1} << 22;
    std::vector<run>& runs = runs_[t];
    if (runs.empty() || runs.back().values.empty() == with_values ||
        runs.back().places.capacity() - runs.back().places.size() < count) {
      const std::size_t room = std::max(count, std::min(largest, this->count(t)));
      run& next = runs.emplace_back(run{large_list<global_index>(memory_), large_list<T>(memory_)});
      next.places.reserve(room);
      if (with_values) next.values.reserve(room);
    }
    run& last = runs.back();
    last.places.resize(last.places.size() + count);
    if (with_values) last.values.resize(last.places.size());
    return {std::span(last.places).last(count), std::span(last.values).last(with_values ? count : 0)};
  }
  /// Orders the entries of each tile by place, and those of one place by value.
  void sort() {
    for (std::vector<run>& tile : runs_) {
      std::vector<std::pair<global_index, T>> all;
      for (const run& r : std::exchange(tile, {}))
        for (std::size_t e = 0; e < r.places.size(); ++e)
          all.push_back({r.places[e], r.values.empty() ? T(1) : r.values[e]});
      std::sort(all.begin(), all.end());
      run& sorted = tile.emplace_back(run{large_list<global_index>(memory_), large_list<T>(memory_)});
      for (const auto& [place, value] : all) {
        sorted.places.push_back(place);
        sorted.values.push_back(value);
      }
    }
  }
  /// The entries of a tile, which are then forgotten.
  std::vector<run> take(std::size_t t) { return std::exchange(runs_[t], {}); }
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
  list_allocator<std::byte> memory_;
};

}  // namespace partita::local
