// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of a sparse pattern by warps: a warp takes a share of row_fold.hpp's, its lanes the entries and heads
/// of a row. Device code only. All lanes of a warp do the same steps, also those that have nothing to do.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "partita/local/cuda/row_fold.hpp"

namespace partita::on_cuda {

/// The value of another lane of 32.
template <class V>
__device__ V from_lane(V value, int lane) {
  if constexpr (std::is_empty_v<V>)
    return value;
  else
    return __shfl_sync(0xffffffffu, value, lane);
}
/// What all lanes have alike, such that the compiler knows it.
inline __device__ int uniform(int value) { return from_lane(value, 0); }

/// The rows of a share. Sums of rows that other shares have parts of go to `heads` or `tails`, as those of
/// fold_shares do.
template <class Sum>
struct rows_of_share {
  const local_index* offsets;
  const row_cut* cuts;
  local_index packs;
  Sum* heads;
  Sum* tails;

  /// f(row, first entry, end of entries, where `packs` sums go or null if they are the row's), row by row.
  template <class F>
  __device__ void for_rows(std::uint32_t share, const F& f) const {
    const row_cut &from = cuts[share], &to = cuts[share + 1];
    const local_index first_row = uniform(from.row), last_row = uniform(to.row), first = uniform(offsets[0]);
    const local_index last = first + uniform(to.entry);
    const bool begun = uniform(from.done) > 0, open = uniform(to.done) > 0;
    const std::int64_t part = std::int64_t{share} * packs;
    local_index e = first + uniform(from.entry);
    for (local_index row = first_row; row < last_row || (row == last_row && open); ++row) {
      const local_index end = row < last_row ? uniform(offsets[row + 1]) : last;
      Sum* const parts = row == last_row ? tails : row == first_row && begun ? heads : nullptr;
      f(row, e, end, parts == nullptr ? parts : parts + part);
      e = end;
    }
  }
};

/// 2^log lanes for an entry, one a head; warps that have the same entries take 32 heads each.
struct head_lanes {
  int log;
  local_index heads, blocks;

  static head_lanes of(local_index heads) {
    const auto lanes = std::bit_ceil(static_cast<std::uint32_t>(std::min(heads, 32)));
    return {std::countr_zero(lanes), heads, (heads + 31) / 32};
  }
};

/// Folds the entries of a row for each head, with lanes that fold every 32 >> log-th entry each. Fold: sum,
/// term, zero, merge and store as in row_fold; merge commutes. in_row(row, h) is what a lane needs of a row,
/// term_of(e, h) is loaded for an entry, and add(total, term, in_row, h) takes it, once for each.
template <class Fold>
struct warp_fold {
  static constexpr int min_blocks_per_multiprocessor = 3;
  static constexpr int together = 2;

  using sum = typename Fold::sum;

  Fold fold;
  head_lanes lanes;
  rows_of_share<sum> rows;

  __device__ void operator()(std::uint32_t warp, int number) const {
    const cell at = cell_of(warp, lanes.blocks);
    const int step = 32 >> lanes.log, k = number >> lanes.log;
    const local_index own = at.col * 32 + (number & ((1 << lanes.log) - 1));
    const bool works = own < lanes.heads;
    const local_index h = works ? own : lanes.heads - 1;
    rows.for_rows(static_cast<std::uint32_t>(at.row),
                  [&](local_index row, local_index e, local_index end, sum* parts) {
                    const auto of_row = fold.in_row(row, h);
                    sum total = fold.zero();
                    for (; e < end; e += together * step) {
                      typename Fold::term terms[together] = {};
#pragma unroll
                      for (int u = 0; u < together; ++u) {
                        const local_index mine = e + u * step + k;
                        if (works && mine < end) terms[u] = fold.term_of(mine, h);
                      }
#pragma unroll
                      for (int u = 0; u < together; ++u)
                        if (works && e + u * step + k < end) fold.add(total, terms[u], of_row, h);
                    }
                    if constexpr (!std::is_empty_v<sum>) {
                      for (int apart = 1 << lanes.log; apart < 32; apart *= 2)
                        fold.merge(total, shuffled(total, number ^ apart));
                      if (!works || k > 0) return;
                      if (parts != nullptr)
                        parts[h] = total;
                      else
                        fold.store(total, row, h);
                    }
                  });
  }

 private:
  /// Word by word.
  static __device__ sum shuffled(const sum& mine, int lane) {
    std::uint32_t words[sizeof(sum) / 4];
    std::memcpy(words, &mine, sizeof(sum));
#pragma unroll
    for (std::uint32_t& word : words) word = from_lane(word, lane);
    sum other;
    std::memcpy(&other, words, sizeof(sum));
    return other;
  }
};

/// Folds every row of `a` for each head.
template <class Fold>
void fold_heads(const device_queue<cuda_device>& q, const pattern_rows& a, local_index heads,
                const Fold& fold) {
  if (a.rows == 0 || heads == 0) return;
  const head_lanes lanes = head_lanes::of(heads);
  const std::int64_t shares = share_count(a, 32 * lanes.blocks);
  in_shares(q, a, heads, shares, fold, [&](const row_cut* cuts, auto* begun, auto* open) {
    on_cuda::launch_warps(q, lanes.blocks * shares,
                          warp_fold<Fold>{fold, lanes, {a.offsets, cuts, heads, begun, open}});
  });
}

}  // namespace partita::on_cuda
