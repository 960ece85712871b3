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

/// Calls f(begin, end) on row ranges with about equally many entries. `entry_work` is the cost per entry, in
/// elements.
inline void run_entry_rows(int threads, local_index rows, const local_index* offsets, std::int64_t entry_work,
                           function_reference<local_index, local_index> f) {
  constexpr std::int64_t grain = 8192;
  if (rows == 0) return;
  const auto weight = [&](local_index row) {
    return std::int64_t{offsets[row]} - offsets[0] + 2 * std::int64_t{row};
  };
  const std::int64_t all = weight(rows);
  const int tasks =
      threads == 1 ? 1
                   : static_cast<int>(std::clamp<std::int64_t>(
                         all * std::max<std::int64_t>(entry_work, 1) / grain, 1, 16 * std::int64_t{threads}));
  const auto row_at = [&](int task) {
    if (task == tasks) return rows;
    const std::int64_t target = all / tasks * task;
    local_index low = 0, high = rows;
    while (low < high) {
      const local_index middle = low + (high - low) / 2;
      if (weight(middle) < target)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  run_tasks(threads, tasks, [&](int task) { f(row_at(task), row_at(task + 1)); });
}
template <class T>
inline void run_entry_rows(int threads, const local::csr_view<T>& a, std::int64_t entry_work,
                           function_reference<local_index, local_index> f) {
  run_entry_rows(threads, a.rows, a.offsets, entry_work, f);
}

/// The values of entry e, one per head.
template <class T>
inline T* edge_values(T* values, local_index e, local_index heads) {
  return values + std::ptrdiff_t{e} * heads;
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
