// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One rank's sparse tiles in caller-owned CSR arrays.

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "partita/matrix/tile_shape.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// Borrowed arrays with the tiles of one rank, concatenated by rows: a CSR block of (tiles * rows) rows whose
/// column indices are relative to the first column of their tile. With a single tile, any CSR block. The
/// memory must outlive every view of it, unless `owner` keeps it alive.
template <class T>
struct csr_arrays {
  std::span<const local_index> offsets;  ///< (tiles * rows + 1), starting at 0
  std::span<const local_index> columns;  ///< (nonzeros), ascending in each row
  std::span<const T> values;             ///< (nonzeros)
  std::shared_ptr<const void> owner = nullptr;
};

namespace detail {

/// Validates the arrays of a view whose tiles have `rows` rows and these widths.
template <class T, class Device>
class array_checks {
 public:
  array_checks(const device_queue<Device>& q, const csr_arrays<T>& arrays, local_index rows,
               const std::vector<local_index>& widths)
      : queue_(q), arrays_(arrays), rows_(static_cast<std::size_t>(rows)), widths_(widths) {
    const std::size_t expected = widths.size() * rows_ + 1;
    if (arrays.offsets.size() != expected)
      base::throw_error<shape_error>({"a view of ", widths.size(), " tiles of ", rows, " rows has ", expected,
                                      " offsets, not ", arrays.offsets.size()});
    offsets_.resize(expected);
    copy(q, arrays.offsets, std::span<local_index>(offsets_));
  }

  void require_offsets() const {
    if (offsets_.front() != 0)
      base::throw_error<shape_error>({"the offsets of a view begin with ", offsets_.front(), ", not with 0"});
    for (std::size_t i = 0; i + 1 < offsets_.size(); ++i)
      if (offsets_[i + 1] < offsets_[i])
        fail(i, {" ends at ", offsets_[i + 1], ", before it begins at ", offsets_[i]});
    const auto entries = static_cast<std::size_t>(offsets_.back());
    if (arrays_.columns.size() != entries || arrays_.values.size() != entries)
      base::throw_error<shape_error>({"a view with offsets up to ", entries, " has ", arrays_.columns.size(),
                                      " columns and ", arrays_.values.size(), " values"});
  }
  /// Copies from the device in bounded pieces.
  void require_columns() const {
    std::vector<local_index> columns(std::min(arrays_.columns.size(), std::size_t{1} << 16));
    std::size_t row = 0;
    local_index before = -1;
    for_runs(arrays_.columns.size(), columns.size(), [&](std::size_t first, local_index count) {
      const std::span<local_index> run = std::span(columns).first(static_cast<std::size_t>(count));
      copy(queue_, arrays_.columns.subspan(first, run.size()), run);
      for (std::size_t k = 0; k < run.size(); ++k) {
        for (; static_cast<std::size_t>(offsets_[row + 1]) <= first + k; ++row) before = -1;
        if (run[k] < 0 || run[k] >= widths_[row / rows_])
          fail(row, {" has column ", run[k], " in a tile of ", widths_[row / rows_], " columns"});
        if (run[k] <= before) fail(row, {" has column ", run[k], " after column ", before});
        before = run[k];
      }
    });
  }
  std::vector<local_index> entries_of_tiles() const {
    std::vector<local_index> entries;
    for (std::size_t t = 0; t < widths_.size(); ++t)
      entries.push_back(offsets_[(t + 1) * rows_] - offsets_[t * rows_]);
    return entries;
  }

 private:
  [[noreturn]] void fail(std::size_t row, std::initializer_list<base::sentence_piece> why) const {
    base::throw_error<shape_error>(
        {"row ", row % rows_, " of tile ", row / rows_, " of a view", base::sentence_of(why)});
  }

  const device_queue<Device>& queue_;
  const csr_arrays<T>& arrays_;
  std::size_t rows_;
  const std::vector<local_index>& widths_;
  std::vector<local_index> offsets_;
};

}  // namespace detail

/// The shape of the tiles in these arrays, `rows` rows high and with these widths. Reads the arrays once.
/// Throws shape_error naming inconsistent sizes, decreasing offsets, a column outside its tile or not greater
/// than its predecessor, and more than `most` entries.
template <class T, class Device>
tile_shape shape_of(const device_queue<Device>& q, const csr_arrays<T>& arrays, local_index rows,
                    std::vector<local_index> widths, std::size_t most) {
  if (arrays.columns.size() > most)
    base::throw_error<shape_error>(
        {"a view of a sparse block has no more than ", most, " entries, not ", arrays.columns.size()});
  const detail::array_checks<T, Device> checks(q, arrays, rows, widths);
  checks.require_offsets();
  checks.require_columns();
  tile_shape shape;
  shape.rows = rows;
  shape.nonzeros = arrays.columns.size();
  shape.entries_of_parts = checks.entries_of_tiles();
  shape.widths = std::move(widths);
  return shape;
}

}  // namespace partita::local
