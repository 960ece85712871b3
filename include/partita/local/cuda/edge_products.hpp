// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of dense blocks with a sparse pattern that has one value per entry and head.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/cuda/edge_weights.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/local/cuda/warp_product.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// How 32 lanes share dot products: 2^log_lanes for one of an entry and head, whose packs each takes
/// 2^log_lanes apart; 2^log_heads heads side by side, and as many entries as lanes are left for. Warps that
/// have the same entries take a block of heads each.
struct dot_lanes {
  static constexpr int packs_of_lane = 4;

  int log_lanes, log_heads;
  local_index blocks;

  /// Four lanes of 16 bytes read whole sectors; rows of single numbers begin anywhere in one.
  static dot_lanes of(const local::head_slice& s, local_index cols, int width) {
    const auto log_of = [](local_index n) {
      return std::countr_zero(std::bit_ceil(static_cast<std::uint32_t>(n)));
    };
    const local_index packs = std::max<local_index>(1, std::min(s.head_width, cols) / width);
    const local_index fewest = std::min<local_index>(packs, width > 1 ? 4 : 32);
    const int log_lanes = std::min(5, log_of(std::max(fewest, (packs - 1) / packs_of_lane + 1)));
    const int log_heads = std::min(5 - log_lanes, log_of(s.heads));
    return {log_lanes, log_heads, ((s.heads - 1) >> log_heads) + 1};
  }
};

/// values[e, h] = beta values[e, h] + sum_j y(row(e), j) x(col(e), j) over the columns j of head h. Lanes
/// keep their packs of y for a row. The order of a sum depends on the columns alone.
template <int Width, class T>
struct warp_dots {
  static constexpr int min_blocks_per_multiprocessor = 3, packs_of_lane = dot_lanes::packs_of_lane;

  using pack = pack_of<T, Width>;
  struct sum {};

  const local_index* columns;
  rows_of_share<sum> rows;
  local::head_slice s;
  dot_lanes lanes;
  row_table<T> x;
  matrix_view<const T> y;
  T beta;
  T* values;

  __device__ void operator()(std::uint32_t warp, int number) const {
    const cell at = cell_of(warp, lanes.blocks);
    const lane me = lane_of(number, at.col);
    rows.for_rows(static_cast<std::uint32_t>(at.row),
                  [&](local_index row, local_index e, local_index end, sum*) { dots(me, row, e, end); });
  }

 private:
  struct lane {
    int number, entry, part;  ///< of 32; the entry among those at a time; the part of the dot product
    local_index head;
    local_index begin, end;  ///< its columns: packs 2^log_lanes apart
  };

  __device__ lane lane_of(int number, local_index block) const {
    const int group = number >> lanes.log_lanes, part = number & ((1 << lanes.log_lanes) - 1);
    const local_index head = (block << lanes.log_heads) + (group & ((1 << lanes.log_heads) - 1));
    const std::int64_t first = std::int64_t{head} * s.head_width - s.first_col, last = first + s.head_width;
    const auto begin = static_cast<local_index>(first > 0 ? first : 0);
    const auto end = head >= s.heads ? 0 : static_cast<local_index>(last < y.cols ? last : y.cols);
    return {number, group >> lanes.log_heads, part, head, begin + part * Width, end};
  }

  __device__ void dots(const lane& me, local_index row, local_index e, local_index end) const {
    const local_index stride = Width << lanes.log_lanes;
    const T* const left = y.row_data(row);
    pack of_y[packs_of_lane] = {};
#pragma unroll
    for (int c = 0; c < packs_of_lane; ++c)
      if (me.begin + c * stride < me.end) of_y[c] = load<Width>(left + me.begin + c * stride);
    const int batch = 32 >> lanes.log_heads, at_a_time = batch >> lanes.log_lanes;
    for (; e < end; e += batch) {
      const int count = end - e < batch ? end - e : batch, own = me.number & (batch - 1);
      const local_index column = columns[e + (own < count ? own : count - 1)];
      T mine = 0;
      for (int step = 0; step * at_a_time < count; ++step) {
        const int k = step * at_a_time + me.entry;
        const T* const right = x.at(from_lane(column, k), 0);
        pack total{};
        if (k < count) {
#pragma unroll
          for (int c = 0; c < packs_of_lane; ++c) {
            const local_index j = me.begin + c * stride;
            if (j < me.end) add(total, of_y[c], load<Width>(right + j));
          }
          for (local_index j = me.begin + packs_of_lane * stride; j < me.end; j += stride)
            add(total, load<Width>(left + j), load<Width>(right + j));
        }
        const T dot = summed(total);
        if (step == me.part) mine = dot;
      }
      const int k = me.part * at_a_time + me.entry;
      if (k >= count || me.head >= s.heads) continue;
      T& value = values[edge_at(e + k, s.heads, me.head)];
      value = beta == 0 ? mine : mine + beta * value;
    }
  }

  static __device__ void add(pack& total, const pack& u, const pack& v) {
    for (int c = 0; c < Width; ++c) total.at[c] += u.at[c] * v.at[c];
  }
  /// In all lanes of the same dot product.
  __device__ T summed(const pack& total) const {
    T dot = 0;
    for (const T part : total.at) dot += part;
    for (int apart = 1; apart >> lanes.log_lanes == 0; apart *= 2)
      dot += __shfl_xor_sync(0xffffffffu, dot, apart);
    return dot;
  }
};

/// As on_host::edge_multiply.
template <class T>
void edge_multiply(const device_queue<cuda_device>& q, local::input_csr<T> a, local::head_slice s,
                   const local::scalar<T>* values, local::input_view<T> x, local::scalar<T> beta,
                   matrix_view<T> y) {
  local::require_edges("edge_multiply", a, s, local::shape_of(x), local::shape_of(y));
  warp_multiply<stored_weights<T>, T>(q, rows_of(a), a.columns, s, {values, nullptr, s.heads}, nullptr, x,
                                      beta, y);
}

/// As on_host::edge_apply_multiply.
template <class F, class T>
void edge_apply_multiply(const device_queue<cuda_device>& q, local::input_csr<T> a, local::head_slice s, F f,
                         local::scalar<T>* values, local::input_view<T> x, local::scalar<T> beta,
                         matrix_view<T> y) {
  local::require_edges("edge_apply_multiply", a, s, local::shape_of(x), local::shape_of(y));
  const auto multiply = [&](const auto& weights) {
    if constexpr (coefficients_of_scores<F>)
      if (!f.read_later) values = nullptr;
    warp_multiply(q, rows_of(a), a.columns, s, weights, values, x, beta, y);
  };
  if constexpr (coefficients_of_scores<F>) {
    if (f.plain()) {
      if (f.transposed) return multiply(score_weights<T, true>(f, a.columns));
      return multiply(score_weights<T, false>(f, a.columns));
    }
  }
  multiply(function_weights<F>{f});
}

/// As on_host::edge_multiply_transposed.
template <class T>
void edge_multiply_transposed(const device_queue<cuda_device>& q, const local::csr_inverse_view& a,
                              local::head_slice s, const local::scalar<T>* values, local::input_view<T> y,
                              local::scalar<T> beta, matrix_view<T> x) {
  local::require_edges("edge_multiply_transposed", a, s, local::shape_of(x), local::shape_of(y));
  warp_multiply<stored_weights<T>, T>(q, rows_of(a.transposed<T>()), a.entry_rows, s,
                                      {values, a.entry_numbers, s.heads}, nullptr, y, beta, x);
}

/// As on_host::edge_dot.
template <class T>
void edge_dot(const device_queue<cuda_device>& q, local::input_csr<T> a, local::head_slice s,
              local::input_view<T> y, local::input_view<T> x, local::scalar<T> beta, T* values) {
  local::require_edges("edge_dot", a, s, local::shape_of(x), local::shape_of(y));
  if (a.rows == 0 || s.heads == 0) return;
  const pattern_rows rows = rows_of(a);
  with_width<widest<T>>(
      x.cols,
      [&](auto width) {
        using body = warp_dots<decltype(width)::value, T>;
        const dot_lanes lanes = dot_lanes::of(s, x.cols, width);
        const std::int64_t shares = share_count(rows, 32 * lanes.blocks);
        in_shares(q, rows, s.heads, shares, body{}, [&](const row_cut* cuts, auto* heads, auto* tails) {
          on_cuda::launch_warps(q, lanes.blocks * shares,
                                body{a.columns,
                                     {a.offsets, cuts, s.heads, heads, tails},
                                     s,
                                     lanes,
                                     table_of(x),
                                     y,
                                     beta,
                                     values});
        });
      },
      s, y, x);
}

}  // namespace partita::on_cuda
