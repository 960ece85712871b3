// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Transpose of a sparse pattern.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"
#include "partita/memory/cuda_sort.hpp"

namespace partita::on_cuda {

/// Lists number, column and row of every entry.
struct list_entries {
  const local_index* offsets;
  const local_index* columns;
  local_index* numbers;
  local_index* columns_of_entries;
  local_index* rows_of_entries;

  constexpr void operator()(local_index row, local_index e) const {
    const local_index t = e - offsets[0];
    numbers[t] = t;
    columns_of_entries[t] = columns[e];
    rows_of_entries[t] = row;
  }
};

/// offsets_of_columns[c] = number of sorted column indices less than c.
struct find_columns {
  const local_index* sorted;
  local_index count;
  local_index* offsets_of_columns;

  constexpr void operator()(std::int64_t c) const {
    local_index low = 0, high = count;
    while (low < high) {
      const local_index middle = low + (high - low) / 2;
      if (sorted[middle] < c)
        low = middle + 1;
      else
        high = middle;
    }
    offsets_of_columns[c] = low;
  }
};

/// Replaces order[t], an entry number relative to the first entry, by the entry index, and sets rows[t] to
/// its row.
struct name_entries {
  const local_index* offsets;
  const local_index* rows_of_entries;
  local_index* order;
  local_index* rows;

  constexpr void operator()(std::int64_t t) const {
    rows[t] = rows_of_entries[order[t]];
    order[t] += offsets[0];
  }
};

/// The inverse of a's pattern, by a stable sort of the entries by column; needs temporary memory of three
/// indices per entry. Synchronises the queue if the view does not store its number of entries.
template <class T>
local::csr_inverse<cuda_device> inverse_of(const device_queue<cuda_device>& q, const local::csr_view<T>& a) {
  const local_index count = entry_count(q, a);
  const auto cols = static_cast<std::size_t>(a.cols), entries = static_cast<std::size_t>(count);
  using indices = buffer<local_index, cuda_device>;
  local::csr_inverse<cuda_device> made{a.rows, a.cols, indices(q, cols + 1), indices(q, entries),
                                       indices(q, entries)};
  indices keys(q, entries), other_keys(q, entries), rows_of_entries(q, entries);
  on_cuda::sorted_pairs<local_index, local_index> by_column{keys.data(), made.entry_numbers.data(),
                                                            other_keys.data(), made.entry_rows.data()};
  for_entries(q, rows_of(a),
              list_entries{a.offsets, a.columns, by_column.values, by_column.keys, rows_of_entries.data()});
  if (count > 0) on_cuda::sort_pairs(q, count, on_cuda::bits_below(a.cols), by_column);
  if (by_column.values != made.entry_numbers.data()) std::swap(made.entry_numbers, made.entry_rows);
  on_cuda::launch(q, std::int64_t{a.cols} + 1, find_columns{by_column.keys, count, made.offsets.data()});
  on_cuda::launch(
      q, count,
      name_entries{a.offsets, rows_of_entries.data(), made.entry_numbers.data(), made.entry_rows.data()});
  return made;
}

}  // namespace partita::on_cuda
