#pragma once
/// A sparse pattern read by its columns.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "partita/local/cuda/entries.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"
#include "partita/memory/cuda_sort.hpp"

namespace partita::on_cuda {

/// Bits of the numbers below `count`, at least one.
inline int bits_below(std::int64_t count) {
  return count < 3 ? 1 : static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1)));
}

/// The entries in the order of their columns, and of one column in their own order: the t-th is in row
/// rows[t] and is entry order[t].
struct inverse_pattern {
  pattern_rows columns;
  const local_index* rows;
  const local_index* order;
};

/// The t-th entry: t, its column and its row.
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

/// offsets_of_columns[c] = the number of sorted columns below c.
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

/// order[t], the number of an entry, becomes the entry, and rows[t] its row.
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

/// What inverses of a queue lie in.
struct inverse_memory {
  explicit inverse_memory(const queue<cuda_device>&) {}

  buffer<local_index, cuda_device> indices;
};

/// The inverse of a's pattern, until the next one of the queue is made. It costs a stable sort of the entries
/// by columns and memory for five numbers an entry; and where the view does not know its number of entries, a
/// wait for the queue.
template <class T>
inverse_pattern inverse_of(const queue<cuda_device>& q, const csr_view<T>& a) {
  const local_index count = entry_count(q, a);
  const auto entries = static_cast<std::size_t>(count);
  auto& indices = q.resource<inverse_memory>().indices;
  indices.reset(q, 5 * entries + static_cast<std::size_t>(a.cols) + 1);
  const auto part = [&](std::size_t k) { return indices.data() + k * entries; };
  detail::sorted_pairs<local_index, local_index> by_column{part(0), part(1), part(2), part(3)};
  local_index* const rows_of_entries = part(4);
  local_index* const offsets_of_columns = part(5);
  for_entries(q, rows_of(a),
              list_entries{a.offsets, a.columns, by_column.values, by_column.keys, rows_of_entries});
  if (count > 0) detail::sort_pairs(q, count, bits_below(a.cols), by_column);
  detail::launch(q, std::int64_t{a.cols} + 1, find_columns{by_column.keys, count, offsets_of_columns});
  local_index* const rows = by_column.other_values;
  detail::launch(q, count, name_entries{a.offsets, rows_of_entries, by_column.values, rows});
  return {{a.cols, a.rows, offsets_of_columns}, rows, by_column.values};
}

}  // namespace partita::on_cuda
