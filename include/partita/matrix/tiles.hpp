// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One rank's part of a sparse matrix: a row of CSR tiles, one for each row block of the dense operand.

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/triplet.hpp"
#include "partita/matrix/csr_arrays.hpp"
#include "partita/matrix/needed_rows.hpp"
#include "partita/matrix/sorted_entries.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// The offsets and columns of all tiles share one buffer (`structure`), so that a block is sent as two
/// messages; a view borrows the caller's arrays instead. What plans find out about it: see tile_analysis.
template <class T, class Device>
struct csr_tiles : tile_shape {
  buffer<local_index, Device> structure;  ///< (structure_size())
  buffer<T, Device> values;               ///< (values_size()); empty for a pattern
  csr_arrays<T> viewed;                   ///< used instead of both when its offsets are set
  /// The structure in host memory, if it is kept, as for small blocks for which plans are made repeatedly.
  std::shared_ptr<const std::vector<local_index>> kept_structure;

  csr_tiles() = default;
  /// Tiles of this shape, one part each, with these needed rows and without entries: plans can be made with
  /// them to predict their traffic. Memory for the entries is allocated, but neither written nor read. Only
  /// the offsets are set, with equally many entries in all rows; entries() throws error.
  csr_tiles(const device_queue<Device>& q, tile_shape shape, needed_rows needed)
      : tile_shape(std::move(shape)),
        structure(q, structure_size()),
        values(q, values_size()),
        counted_rows_(std::move(needed)),
        is_counted_(true) {
    const std::vector<local_index> offsets = even_offsets();
    copy(q, std::span<const local_index>(offsets), structure.span().first(offsets.size()));
  }

  tile_structure located() const {
    if (viewed.offsets.empty()) return structure_at(structure.data());
    return {viewed.offsets.data(), static_cast<std::size_t>(rows), viewed.columns.data()};
  }
  /// The values of the entries, or their factors if these are stored; see value_form.
  std::span<const T> stored_values() const { return viewed.offsets.empty() ? values.span() : viewed.values; }
  /// The same in host memory. Synchronises with the device.
  std::vector<T> stored_in_host(const device_queue<Device>& q) const {
    std::vector<T> stored(stored_values().size());
    copy(q, stored_values(), std::span<T>(stored));
    return stored;
  }
  /// The value of each entry, in storage order, in host memory. Synchronises with the device.
  std::vector<T> values_of_entries(const device_queue<Device>& q) const {
    return form.factored ? products_of_factors(*this, entries(q), stored_in_host(q)) : stored_in_host(q);
  }

  /// The parts of tile t (csr_slice<T>), by ascending rows.
  csr_slices<T> parts(std::size_t t) const { return tile_shape::parts(t, located(), stored_values().data()); }
  /// The tile-local columns of a part whose own columns may be renumbered to needed rows.
  const local_index* columns_of(const csr_slice<T>& part) const { return located().columns + part.base; }
  /// Whether the block has a shape, but no entries.
  bool is_counted() const { return is_counted_; }
  /// The needed rows that such a block was made with.
  const needed_rows& counted_rows() const { return counted_rows_; }
  /// The structure in host memory. Synchronises with the device.
  entry_lists entries(const device_queue<Device>& q) const {
    if (is_counted_) throw error("the entries of a sparse block were counted, but not distributed");
    if (kept_structure != nullptr) return {*this, *kept_structure};
    std::vector<local_index> found(viewed.offsets.empty() ? structure.size() : structure_size(), 0);
    const std::span<local_index> all(found);
    if (viewed.offsets.empty()) {
      copy(q, structure.span(), all);
    } else {
      const auto n = static_cast<std::size_t>(rows);
      for (std::size_t t = 0; t < count(); ++t)
        copy(q, viewed.offsets.subspan(t * n, n + 1), all.subspan(t * (n + 1), n + 1));
      copy(q, viewed.columns, all.subspan(offsets_size()));
    }
    return {*this, std::move(found)};
  }

 private:
  needed_rows counted_rows_;
  bool is_counted_ = false;
};

/// The entries sorted by row, then by column; duplicates keep their order. A counting sort by row, then a
/// stable sort within each row.
template <class T>
std::vector<triplet<T>> sorted_by_rows(interval rows, const std::vector<triplet<T>>& entries) {
  std::vector<std::size_t> end(static_cast<std::size_t>(rows.size()) + 1, 0);
  const auto row_of = [&](const triplet<T>& e) { return static_cast<std::size_t>(e.row - rows.begin); };
  for (const triplet<T>& e : entries) ++end[row_of(e) + 1];
  std::inclusive_scan(end.begin(), end.end(), end.begin());
  std::vector<triplet<T>> sorted(entries.size());
  for (const triplet<T>& e : entries) sorted[end[row_of(e)]++] = e;
  auto first = sorted.begin();
  for (std::size_t i = 0; i + 1 < end.size(); ++i) {
    const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(end[i]);
    std::stable_sort(first, last, [](const auto& a, const auto& b) { return a.col < b.col; });
    first = last;
  }
  return sorted;
}

/// The entries in that order, with duplicates summed.
template <class T>
std::vector<triplet<T>> summed(interval rows, const std::vector<triplet<T>>& entries) {
  std::vector<triplet<T>> sums = sorted_by_rows(rows, entries);
  const auto place = [](const triplet<T>& e) { return std::pair(e.row, e.col); };
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (kept > 0 && place(sums[kept - 1]) == place(sums[i]))
      sums[kept - 1].value += sums[i].value;
    else
      sums[kept++] = sums[i];
  }
  sums.resize(kept);
  return sums;
}

namespace detail {

/// Maps a column to its tile.
class tile_finder {
 public:
  explicit tile_finder(std::span<const interval> columns) : columns_(columns) {
    for (std::size_t t = 0; t < columns.size(); ++t)
      if (!columns[t].empty()) by_begin_.insert(behind(columns[t].begin), t);
  }
  std::size_t operator()(global_index col) const { return *(behind(col) - 1); }

 private:
  /// The first tile that begins after a column.
  std::vector<std::size_t>::const_iterator behind(global_index col) const {
    return std::upper_bound(by_begin_.begin(), by_begin_.end(), col,
                            [&](global_index j, std::size_t t) { return j < columns_[t].begin; });
  }

  std::span<const interval> columns_;
  std::vector<std::size_t> by_begin_;
};

/// Whether every sum is 1.
template <class T>
bool are_ones(const std::vector<sorted_entries<T>>& tiles) {
  for (const sorted_entries<T>& tile : tiles)
    for (const auto& s : tile.segments)
      if (!std::all_of(s.values.begin(), s.values.end(), [](T v) { return v == 1; })) return false;
  return true;
}

/// A buffer whose pages lie near the threads that will read them, each an even share of it.
template <class T, class Device>
buffer<T, Device> shared_buffer(const device_queue<Device>& q, std::size_t size, int threads) {
  buffer<T, Device> result(q, size);
  if constexpr (requires { touch_pages(q, result.span(), 0, threads); })
    if (threads > 1 && size * sizeof(T) >= std::size_t{1} << 20)
      run_parts(threads, [&](int part) { touch_pages(q, result.span(), part, threads); });
  return result;
}

/// Copies the entries of sorted tiles to the columns and values of a block, piece by piece; they are then
/// forgotten. `value(t, row, column, sum)` is that of an entry of tile t; `values` may be empty.
template <class T, class Device, class Value>
void take_entries(const device_queue<Device>& q, std::vector<sorted_entries<T>>& tiles, int threads,
                  std::span<local_index> columns, std::span<T> values, const Value& value) {
  constexpr std::size_t most = std::size_t{1} << 18;
  std::vector<local_index> some_columns(std::min(columns.size(), most));
  std::vector<T> some_values(std::min(values.size(), most));
  std::size_t at = 0;
  for (std::size_t t = 0; t < tiles.size(); ++t)
    for (auto& full : tiles[t].segments) {
      const typename sorted_entries<T>::segment s = std::exchange(full, {});
      for_runs(s.places.size(), most, [&](std::size_t first, local_index count) {
        const int parts = count < (1 << 14) ? 1 : threads;
        run_parts(parts, [&](int part) {
          const interval mine = base::part_of({0, count}, part, parts);
          for (auto k = static_cast<std::size_t>(mine.begin); k < static_cast<std::size_t>(mine.end); ++k) {
            const std::size_t e = first + k, row = row_of_place(s.places[e]), col = col_of_place(s.places[e]);
            some_columns[k] = static_cast<local_index>(col);
            if (!values.empty())
              some_values[k] =
                  value(t, static_cast<global_index>(row), static_cast<global_index>(col), s.value(e));
          }
        });
        const auto size = static_cast<std::size_t>(count);
        copy(q, std::span<const local_index>(some_columns).first(size), columns.subspan(at, size));
        if (!values.empty()) copy(q, std::span<const T>(some_values).first(size), values.subspan(at, size));
        at += size;
      });
    }
}

}  // namespace detail

/// Tiles from the entries that have arrived for them, which are then forgotten: rows `rows` and the disjoint
/// intervals `columns`, in parts of at most `most` entries. Duplicates are summed in the order of their
/// arrival; value(t, row, column, sum) is then that of the entry (row, column) of tile t, unless
/// factors(shape, whether all sums are 1) gives tile_factors in their place. Throws shape_error when rows or
/// columns exceed the 32-bit local index range, or a row has more than `most` entries in one tile.
template <class T, class Device, class Value, class Factors>
csr_tiles<T, Device> make_csr_tiles(const device_queue<Device>& q, interval rows,
                                    std::span<const interval> columns, arrived_entries<T> entries,
                                    std::size_t most, int threads, const Value& value,
                                    const Factors& factors) {
  csr_tiles<T, Device> result;
  result.rows = base::to_local(rows.size(), "the number of rows of a sparse block");
  for (interval c : columns)
    result.widths.push_back(base::to_local(c.size(), "the number of columns of a sparse tile"));

  std::vector<sorted_entries<T>> tiles;
  std::vector<std::size_t> begins;
  for (std::size_t t = 0; t < columns.size(); ++t) {
    tiles.push_back(sort_entries(entries, t, static_cast<std::size_t>(rows.size()),
                                 static_cast<std::size_t>(columns[t].size()), threads));
    std::vector<std::size_t> of_tile = std::exchange(tiles[t].begins, {});
    const std::size_t before = begins.empty() ? 0 : begins.back();
    for (std::size_t& begin : of_tile) begin += before;
    if (begins.empty())
      begins = std::move(of_tile);
    else
      begins.insert(begins.end(), of_tile.begin(), of_tile.end());
  }

  result.nonzeros = begins.empty() ? 0 : begins.back();
  const std::optional<tile_factors<T>> found = factors(result, detail::are_ones(tiles));
  std::vector<local_index> offsets = count_offsets(result, begins, most, rows.begin);
  begins = {};
  result.structure = detail::shared_buffer<local_index>(q, result.structure_size(), threads);
  if (found) result.form = found->form;
  result.values = detail::shared_buffer<T>(q, result.values_size(), threads);
  if (found) copy(q, std::span<const T>(found->factors), result.values.span());
  copy(q, std::span<const local_index>(offsets), result.structure.span().first(offsets.size()));
  detail::take_entries(q, tiles, threads, result.structure.span().subspan(offsets.size()),
                       found ? std::span<T>() : result.values.span(), value);
  return result;
}

/// The same from entries with rows in `rows` and columns in one of the intervals `columns`.
template <class T, class Device>
csr_tiles<T, Device> make_csr_tiles(const device_queue<Device>& q, interval rows,
                                    std::span<const interval> columns, const std::vector<triplet<T>>& entries,
                                    std::size_t most = base::max_tile_entries) {
  const detail::tile_finder tile_of(columns);
  std::vector<typename arrived_entries<T>::run> runs(columns.size());
  for (const triplet<T>& e : entries) {
    const std::size_t t = tile_of(e.col);
    runs[t].places.push_back(packed_place(e.row - rows.begin, e.col - columns[t].begin));
    runs[t].values.push_back(e.value);
  }
  arrived_entries<T> arrived(columns.size());
  for (std::size_t t = 0; t < columns.size(); ++t) arrived.add(t, std::move(runs[t]));
  return make_csr_tiles(
      q, rows, columns, std::move(arrived), most, 1,
      [](std::size_t, global_index, global_index, T sum) { return sum; },
      [](const tile_shape&, bool) { return std::optional<tile_factors<T>>(); });
}

/// Tiles of `rows` rows and these widths over borrowed arrays; see shape_of.
template <class T, class Device>
csr_tiles<T, Device> view_csr_tiles(const device_queue<Device>& q, local_index rows,
                                    std::vector<local_index> widths, csr_arrays<T> arrays,
                                    std::size_t most = base::max_tile_entries) {
  csr_tiles<T, Device> result;
  static_cast<tile_shape&>(result) = shape_of(q, arrays, rows, std::move(widths), most);
  result.viewed = std::move(arrays);
  return result;
}

/// One tile of width `cols`, from row offsets, columns, ascending in each row, and values in host memory, or
/// a pattern if there are none; in parts of at most `most` entries. Its structure stays in host memory, too,
/// if `keeps` says so. Throws shape_error as make_csr_tiles does.
template <class T, class Device>
csr_tiles<T, Device> make_tile(const device_queue<Device>& q, interval rows,
                               const std::vector<std::size_t>& begins, std::span<const local_index> columns,
                               local_index cols, std::span<const T> values = {},
                               std::size_t most = base::max_tile_entries, bool keeps = false) {
  csr_tiles<T, Device> tile;
  tile.rows = base::to_local(rows.size(), "the number of rows of a tile");
  tile.widths = {cols};
  std::vector<local_index> structure = count_offsets(tile, begins, most, rows.begin);
  structure.insert(structure.end(), columns.begin(), columns.end());
  tile.structure = buffer<local_index, Device>(q, structure.size());
  copy(q, std::span<const local_index>(structure), tile.structure.span());
  tile.values = buffer<T, Device>(q, values.size());
  copy(q, values, tile.values.span());
  if (keeps) tile.kept_structure = std::make_shared<const std::vector<local_index>>(std::move(structure));
  return tile;
}

}  // namespace partita::local
