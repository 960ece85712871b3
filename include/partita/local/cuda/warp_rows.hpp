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

  /// Of heads, or of packs of them.
  static head_lanes of(local_index heads) {
    const auto lanes = std::bit_ceil(static_cast<std::uint32_t>(std::min(heads, 32)));
    return {std::countr_zero(lanes), heads, (heads + 31) / 32};
  }
};

/// Folds the entries of a row for each head, with lanes that fold every 32 >> log-th entry each, for `Width`
/// heads from h on. Fold: sum, zero and merge as in row_fold; merge commutes, and sums that have join(apart)
/// are joined by it, over the lanes whose numbers differ in the bits from `apart` on. in_row<Width>(row, h)
/// is what a lane needs of a row, term<Width> what term_of<Width>(e, h) loads for an entry, and add(totals,
/// term, in_row, h) takes it, once for each.
template <int Width, class Fold>
struct warp_fold {
  static constexpr int min_blocks_per_multiprocessor = Width == 2 ? 2 : 3;  // packs of two are double
  static constexpr int together = Width > 1 ? 1 : 2;

  using sum = typename Fold::sum;

  Fold fold;
  head_lanes lanes;
  rows_of_share<sum> rows;

  __device__ void operator()(std::uint32_t warp, int number) const {
    const cell at = cell_of(warp, lanes.blocks);
    const int step = 32 >> lanes.log, k = number >> lanes.log;
    const local_index own = at.col * 32 + (number & ((1 << lanes.log) - 1));
    const bool works = own < lanes.heads;
    const local_index h = (works ? own : lanes.heads - 1) * Width;
    rows.for_rows(static_cast<std::uint32_t>(at.row),
                  [&](local_index row, local_index e, local_index end, sum* parts) {
                    const auto of_row = fold.template in_row<Width>(row, h);
                    sum totals[Width];
                    for (sum& total : totals) total = fold.zero();
                    for (; e < end; e += together * step) {
                      typename Fold::template term<Width> terms[together] = {};
#pragma unroll
                      for (int u = 0; u < together; ++u) {
                        const local_index mine = e + u * step + k;
                        if (works && mine < end) terms[u] = fold.template term_of<Width>(mine, h);
                      }
#pragma unroll
                      for (int u = 0; u < together; ++u)
                        if (works && e + u * step + k < end) fold.add(totals, terms[u], of_row, h);
                    }
                    if constexpr (!std::is_empty_v<sum>) {
                      const int c = join(totals, number);
                      if (works && k < Width) put(totals[0], row, h + c, parts);
                    }
                  });
  }

 private:
  /// Of what the lanes of the same heads have, those of one head to totals[0] of each: returns which.
  __device__ int join(sum (&totals)[Width], int number) const {
    if constexpr (requires { totals[0].join(1); }) {
      static_assert(Width == 1);
      totals[0].join(1 << lanes.log);
      return 0;
    }
    int apart = 1 << lanes.log, own = 0;
#pragma unroll
    for (int half = Width / 2; half > 0; half /= 2, apart *= 2) {
      const bool upper = (number & apart) != 0;
#pragma unroll
      for (int c = 0; c < half; ++c) {
        const sum low = totals[c], high = totals[c + half];  // values: no array may have an address
        totals[c] = chosen(upper, high, low);
        fold.merge(totals[c], shuffled(chosen(upper, low, high), number ^ apart));
      }
      if (upper) own += half;
    }
    for (; apart < 32; apart *= 2) fold.merge(totals[0], shuffled(totals[0], number ^ apart));
    return own;
  }
  static __device__ sum chosen(bool first, sum a, sum b) { return first ? a : b; }
  __device__ void put(const sum& total, local_index row, local_index h, sum* parts) const {
    if (parts != nullptr)
      parts[h] = total;
    else
      fold.store(total, row, h);
  }
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

/// Folds every row of `a` for each head, by `Width` of them.
template <int Width, class Fold>
void fold_heads(const device_queue<cuda_device>& q, const pattern_rows& a, local_index heads,
                const Fold& fold) {
  if (a.rows == 0 || heads == 0) return;
  const head_lanes lanes = head_lanes::of(heads / Width);
  const std::int64_t shares = share_count(a, 32 * lanes.blocks);
  in_shares(q, a, heads, shares, fold, [&](const row_cut* cuts, auto* begun, auto* open) {
    on_cuda::launch_warps(q, lanes.blocks * shares,
                          warp_fold<Width, Fold>{fold, lanes, {a.offsets, cuts, heads, begun, open}});
  });
}
/// The same by 16 bytes of heads where the operands are aligned to them and lanes are left for four entries.
template <class T, class Fold, class... Views>
void fold_packs_of_heads(const device_queue<cuda_device>& q, const pattern_rows& a, local_index heads,
                         const Fold& fold, const Views&... operands) {
  if (heads > 8 * widest<T>) return fold_heads<1>(q, a, heads, fold);
  with_width<widest<T>, 1>(
      heads, [&](auto width) { fold_heads<decltype(width)::value>(q, a, heads, fold); }, operands...);
}

}  // namespace partita::on_cuda
