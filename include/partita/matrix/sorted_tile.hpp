// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One tile in compressed rows, from its entries in any order.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "partita/local/parallel.hpp"
#include "partita/matrix/arrived_entries.hpp"

namespace partita::local {

/// A tile in CSR form: the entries of row i are [begins[i], begins[i + 1]), with ascending columns.
template <class T>
struct sorted_tile {
  std::vector<std::size_t> begins;  ///< (rows + 1)
  std::vector<local_index> columns;
  std::vector<T> values;
  std::size_t repeated = 0;  ///< entries added to an earlier one at their place
};

namespace detail {

/// Sorts the entries of one tile by two counting sorts, first by column, then by row, each of them stable and
/// divided among threads by ranges of the column or of the row: O(rows + columns + entries), without a
/// comparison. Offset counts the entries.
template <class T, class Offset>
class tile_sorter {
 public:
  tile_sorter(std::size_t rows, std::size_t cols, int threads)
      : threads_(threads), row_begins_(rows + 1, 0), col_begins_(cols + 1, 0) {}

  sorted_tile<T> sort(arrived_entries<T>& entries, std::size_t t) {
    const std::size_t count = entries.count(t);
    count_places(entries.of_tile(t));
    by_column(entries.of_tile(t), count);
    entries.clear(t);
    by_row(count);
    tile_.begins.assign(row_begins_.begin(), row_begins_.end());
    if (tile_.repeated > 0) close_gaps();
    return std::move(tile_);
  }

 private:
  using runs = std::vector<typename arrived_entries<T>::run>;
  /// The end of a row as it grows, and its last column.
  struct growing_row {
    Offset end;
    local_index last;
  };

  void count_places(const runs& of_tile) {
    run_parts(threads_, [&](int part) {
      const interval rows = equal_share(row_begins_, part), cols = equal_share(col_begins_, part);
      for (const auto& r : of_tile)
        for (const global_index place : r.places) {
          const std::size_t i = row_of_place(place), j = col_of_place(place);
          if (rows.contains(static_cast<global_index>(i))) ++row_begins_[i + 1];
          if (cols.contains(static_cast<global_index>(j))) ++col_begins_[j + 1];
        }
    });
    std::inclusive_scan(row_begins_.begin(), row_begins_.end(), row_begins_.begin());
    std::inclusive_scan(col_begins_.begin(), col_begins_.end(), col_begins_.begin());
  }

  void by_column(const runs& of_tile, std::size_t count) {
    rows_.resize(count);
    const bool ones = std::ranges::all_of(of_tile, [](const auto& r) { return r.values.empty(); });
    if (!ones) values_.resize(count);
    std::vector<Offset> next(col_begins_.begin(), col_begins_.end() - 1);
    run_parts(threads_, [&](int part) {
      const interval cols = share_of_entries(col_begins_, part);
      for (const auto& r : of_tile)
        for (std::size_t e = 0; e < r.places.size(); ++e) {
          const std::size_t j = col_of_place(r.places[e]);
          if (!cols.contains(static_cast<global_index>(j))) continue;
          const std::size_t at = next[j]++;
          rows_[at] = static_cast<local_index>(row_of_place(r.places[e]));
          if (!ones) values_[at] = r.values.empty() ? T(1) : r.values[e];
        }
    });
  }

  void by_row(std::size_t count) {
    tile_.columns.resize(count);
    tile_.values.assign(count, T(1));
    for (std::size_t i = 0; i + 1 < row_begins_.size(); ++i) growing_.push_back({row_begins_[i], -1});
    std::vector<std::size_t> repeated(static_cast<std::size_t>(threads_));
    run_parts(threads_, [&](int part) {
      const interval rows = share_of_entries(row_begins_, part);
      repeated[static_cast<std::size_t>(part)] =
          values_.empty() ? append(rows, [](std::size_t) { return T(1); })
                          : append(rows, [&](std::size_t e) { return values_[e]; });
    });
    tile_.repeated = std::accumulate(repeated.begin(), repeated.end(), std::size_t{0});
    rows_ = {};
    values_ = {};
  }

  /// Appends the entries of these rows, column by column; one at the place of the last is added to it.
  /// Returns how many were added.
  template <class Value>
  std::size_t append(interval rows, const Value& value) {
    std::size_t added = 0;
    for (std::size_t j = 0; j + 1 < col_begins_.size(); ++j)
      for (std::size_t e = col_begins_[j]; e < col_begins_[j + 1]; ++e) {
        if (!rows.contains(rows_[e])) continue;
        growing_row& row = growing_[static_cast<std::size_t>(rows_[e])];
        if (row.last == static_cast<local_index>(j)) {
          tile_.values[row.end - 1] = static_cast<T>(tile_.values[row.end - 1] + value(e));
          ++added;
          continue;
        }
        row.last = static_cast<local_index>(j);
        tile_.columns[row.end] = row.last;
        if (!values_.empty()) tile_.values[row.end] = value(e);
        ++row.end;
      }
    return added;
  }

  void close_gaps() {
    std::size_t to = 0;
    for (std::size_t i = 0; i < growing_.size(); ++i) {
      const std::size_t begin = std::exchange(tile_.begins[i], to), end = growing_[i].end;
      const auto move = [&](auto& list) {
        std::copy(list.begin() + static_cast<std::ptrdiff_t>(begin),
                  list.begin() + static_cast<std::ptrdiff_t>(end),
                  list.begin() + static_cast<std::ptrdiff_t>(to));
      };
      move(tile_.columns);
      move(tile_.values);
      to += end - begin;
    }
    tile_.begins.back() = to;
    tile_.columns.resize(to);
    tile_.values.resize(to);
  }

  /// One of as many ranges of rows or columns as there are threads, equal ones or with nearly equal numbers
  /// of entries.
  interval equal_share(const std::vector<Offset>& begins, int part) const {
    return base::part_of({0, static_cast<global_index>(begins.size()) - 1}, part, threads_);
  }
  interval share_of_entries(const std::vector<Offset>& begins, int part) const {
    const auto cut = [&](int p) {
      if (p == threads_) return static_cast<global_index>(begins.size()) - 1;
      const auto before = static_cast<Offset>(begins.back() / static_cast<std::size_t>(threads_) *
                                              static_cast<std::size_t>(p));
      return static_cast<global_index>(std::lower_bound(begins.begin(), begins.end() - 1, before) -
                                       begins.begin());
    };
    return {cut(part), cut(part + 1)};
  }

  int threads_;
  std::vector<Offset> row_begins_, col_begins_;
  std::vector<local_index> rows_;  ///< of the entries, by columns
  std::vector<T> values_;          ///< the same; empty if all are 1
  std::vector<growing_row> growing_;
  sorted_tile<T> tile_;
};

}  // namespace detail

/// The most bytes that lists have for one entry of a rank's only tile until it is sorted: as it arrived and
/// sorted by column, or sorted by column and by row. Values of 1 are not listed before the last.
template <class T>
constexpr std::size_t list_bytes(bool with_values) {
  constexpr std::size_t place = sizeof(global_index), index = sizeof(local_index);
  const std::size_t value = with_values ? sizeof(T) : 0;
  return std::max(place + value + index + value, index + value + index + sizeof(T));
}

/// Tile t, of rows x cols, from the entries that have arrived for it, which are then forgotten. Entries at
/// one place are added in the order of their arrival. More than `most_narrow` are counted in 64 bits.
template <class T>
sorted_tile<T> sort_tile(arrived_entries<T>& entries, std::size_t t, std::size_t rows, std::size_t cols,
                         int threads, std::size_t most_narrow = std::numeric_limits<std::uint32_t>::max()) {
  constexpr std::size_t worth_threads = std::size_t{1} << 16;
  const std::size_t count = entries.count(t);
  if (count < worth_threads) threads = 1;
  if (count <= most_narrow)
    return detail::tile_sorter<T, std::uint32_t>(rows, cols, threads).sort(entries, t);
  return detail::tile_sorter<T, std::size_t>(rows, cols, threads).sort(entries, t);
}

}  // namespace partita::local
