#pragma once
/// How threads share the entries of a sparse pattern: by its rows, or by what they write to.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "partita/local/head_slice.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

/// f(begin, end) over parts of the rows with about the same number of entries; `entry_work` is what one entry
/// costs, in elements.
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
void run_entry_rows(int threads, const local::csr_view<T>& a, std::int64_t entry_work,
                    function_reference<local_index, local_index> f) {
  run_entry_rows(threads, a.rows, a.offsets, entry_work, f);
}

/// Rows [row_begin, row_end) and columns [col_begin, col_end) of a block, which one thread writes to.
struct owned_block {
  local_index row_begin, row_end, col_begin, col_end;

  bool has_row(local_index row) const { return row_begin <= row && row < row_end; }
};

/// f(owned_block) for blocks that cover a (rows, cols) block of T once: strips of columns, a cache line wide
/// at least, and where these are too few, parts of the rows. A sum into the block that takes its summands in
/// a fixed order is the same for any number of threads.
template <class T>
void run_targets(int threads, local_index rows, local_index cols, std::int64_t work,
                 function_reference<owned_block> f) {
  constexpr std::int64_t grain = 16384;
  constexpr std::int64_t line = 64 / sizeof(T);
  const std::int64_t parts = std::clamp<std::int64_t>(work / grain, 1, threads);
  const std::int64_t strips = std::clamp<std::int64_t>(cols / line, 1, parts);
  const std::int64_t ranges = (parts + strips - 1) / strips;
  const auto column = [&](std::int64_t strip) {
    return strip == strips ? cols : static_cast<local_index>(cols / line * strip / strips * line);
  };
  const auto row = [&](std::int64_t range) { return static_cast<local_index>(rows * range / ranges); };
  run_tasks(threads, static_cast<int>(strips * ranges), [&](int task) {
    const std::int64_t strip = task % strips, range = task / strips;
    f(owned_block{row(range), row(range + 1), column(strip), column(strip + 1)});
  });
}

/// The values of entry e, one a head.
template <class T>
T* edge_values(T* values, local_index e, local_index heads) {
  return values + std::ptrdiff_t{e} * heads;
}

/// f(begin, end, h) for each head that has some of the columns [from, to) of a slice: they are [begin, end).
template <class F>
void for_heads(const local::head_slice& s, local_index from, local_index to, F&& f) {
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
