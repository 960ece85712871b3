// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Work distribution over the entries of a sparse pattern.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "partita/local/head_slice.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

/// Ranges of rows with about equally many entries, for `threads` to share. `entry_work` is the cost per
/// entry, in elements.
struct entry_ranges {
  entry_ranges(int threads, local_index all_rows, const local_index* offsets_of_rows, std::int64_t entry_work)
      : rows(all_rows), offsets(offsets_of_rows) {
    constexpr std::int64_t grain = 8192;
    if (threads > 1)
      count = static_cast<int>(std::clamp<std::int64_t>(
          weight(rows) * std::max<std::int64_t>(entry_work, 1) / grain, 1, 16 * std::int64_t{threads}));
  }

  /// The first row of a range; a row that outweighs a range is the last of its own.
  local_index begin(int range) const {
    if (range == count) return rows;
    const std::int64_t target = weight(rows) / count * range;
    local_index low = 0, high = rows;
    while (low < high) {
      const local_index middle = low + (high - low) / 2;
      if (weight(middle) < target)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  std::int64_t weight(local_index row) const {
    return std::int64_t{offsets[row]} - offsets[0] + 2 * std::int64_t{row};
  }

  local_index rows;
  const local_index* offsets;
  int count = 1;
};

/// Calls f(begin, end) on such ranges.
inline void run_entry_rows(int threads, local_index rows, const local_index* offsets, std::int64_t entry_work,
                           function_reference<void(local_index, local_index)> f) {
  if (rows == 0) return;
  const entry_ranges ranges(threads, rows, offsets, entry_work);
  run_tasks(threads, ranges.count, [&](int k) { f(ranges.begin(k), ranges.begin(k + 1)); });
}
template <class T>
inline void run_entry_rows(int threads, const local::csr_view<T>& a, std::int64_t entry_work,
                           function_reference<void(local_index, local_index)> f) {
  run_entry_rows(threads, a.rows, a.offsets, entry_work, f);
}

/// The values of entry e, one per head.
template <class T>
inline T* edge_values(T* values, std::ptrdiff_t e, local_index heads) {
  return values + e * heads;
}

/// Calls f(begin, end, h) for each head h that overlaps the columns [from, to) of a slice, with its columns
/// [begin, end).
template <class F>
inline void for_heads(const local::head_slice& s, local_index from, local_index to, F&& f) {
  if (from >= to) return;
  local_index h = (s.first_col + from) / s.head_width;
  local_index left = s.head_width - (s.first_col + from) % s.head_width;
  for (local_index begin = from; begin < to; ++h, left = s.head_width) {
    const local_index end = begin + std::min(left, to - begin);
    f(begin, end, h);
    begin = end;
  }
}

}  // namespace partita::on_host
