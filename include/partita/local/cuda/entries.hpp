// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parallel loop over the entries of a sparse pattern.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "partita/local/cuda/vector.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::on_cuda {

/// Rows of a pattern: the entries of row i are [offsets[i], offsets[i + 1]). `rows` and `cols` determine the
/// number of threads, of which there are no more than `entries` need if that is not negative.
struct pattern_rows {
  local_index rows, cols;
  const local_index* offsets;
  local_index entries = -1;
};

template <class T>
pattern_rows rows_of(const local::csr_view<T>& a) {
  return {a.rows, a.cols, a.offsets, a.entries};
}

/// Number of entries. If the view does not store it, synchronises the queue and reads it.
template <class T>
local_index entry_count(const device_queue<cuda_device>& q, const local::csr_view<T>& a) {
  if (a.entries >= 0 || a.rows == 0) return a.rows == 0 ? 0 : a.entries;
  const local_index end = read(q, a.offsets + a.rows);
  return end - read(q, a.offsets);
}

/// Position of the value of entry e and head h.
constexpr std::ptrdiff_t edge_at(local_index e, local_index heads, local_index h) {
  return std::ptrdiff_t{e} * heads + h;
}

/// Row of entry e, by binary search from row `low`.
constexpr local_index row_of_entry(const pattern_rows& a, local_index low, local_index e) {
  local_index high = a.rows;
  while (high - low > 1) {
    const local_index middle = low + (high - low) / 2;
    if (a.offsets[middle] <= e)
      low = middle;
    else
      high = middle;
  }
  return low;
}

/// Each group of 32 threads processes a share of entries; neighbouring threads take neighbouring entries.
template <class F>
struct visit_entries {
  static constexpr int lanes = 32;

  F f;
  pattern_rows a;
  std::int64_t shares;

  constexpr void operator()(std::int64_t thread) const {
    const local_index first = a.offsets[0];
    const std::int64_t entries = std::int64_t{a.offsets[a.rows]} - first;
    const std::int64_t size = quotient_up(quotient_up(entries, shares), lanes) * lanes;
    const std::int64_t begin = thread / lanes * size;
    const std::int64_t end = begin + size < entries ? begin + size : entries;
    local_index row = 0;
    for (std::int64_t at = begin + thread % lanes; at < end; at += lanes) {
      const auto e = static_cast<local_index>(first + at);
      if (a.offsets[row + 1] <= e) row = next_row(row, e);
      f(row, e);
    }
  }

 private:
  /// Tries the next few rows before a binary search.
  constexpr local_index next_row(local_index row, local_index e) const {
    for (int step = 0; step < 4; ++step)
      if (a.offsets[++row + 1] > e) return row;
    return row_of_entry(a, row + 1, e);
  }
};

/// Calls f(row(e), e) for every entry e.
template <class F>
void for_entries(const device_queue<cuda_device>& q, const pattern_rows& a, const F& f) {
  constexpr std::int64_t most_shares = 1 << 16, cells_of_share = 1024;
  if (a.rows == 0) return;
  const std::int64_t shares =
      std::clamp<std::int64_t>(std::int64_t{a.rows} * a.cols / cells_of_share, 1, most_shares);
  on_cuda::launch(q, shares * visit_entries<F>::lanes, visit_entries<F>{f, a, shares});
}

}  // namespace partita::on_cuda
