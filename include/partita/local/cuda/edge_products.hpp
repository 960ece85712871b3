// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of dense blocks with a sparse pattern that has one value per entry and head.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/cuda/edge_weights.hpp"
#include "partita/local/cuda/warp_product.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// How 32 lanes share dot products. The dot product of one entry and head takes 2^log_lanes lanes, each with
/// packs 2^log_lanes apart. 2^log_heads heads are side by side; a lane may also take the head 2^log_heads
/// further on. The other lanes take other entries. Warps with the same entries take a block of heads each.
struct dot_lanes {
  static constexpr int packs_of_lane = 4;

  int log_lanes, log_heads;
  local_index blocks;

  /// Four lanes of 16 bytes read whole sectors; rows of single numbers begin anywhere in one.
  static dot_lanes of(const local::head_slice& s, local_index cols, int width) {
    const local_index packs = packs_of(s, cols, width);
    const local_index fewest = std::min<local_index>(packs, width > 1 ? 4 : 32);
    const int log_lanes = std::min(5, log_of(std::max(fewest, (packs - 1) / packs_of_lane + 1)));
    const int log_heads = std::min(5 - log_lanes, log_of(s.heads));
    return {log_lanes, log_heads, ((s.heads - 1) >> log_heads) + 1};
  }
  /// For heads of two packs: two lanes share two heads.
  static dot_lanes of_pairs(const local::head_slice& s) {
    const int log_heads = std::min(5, log_of(s.heads)) - 1;
    return {1, log_heads, ((s.heads - 1) >> (log_heads + 1)) + 1};
  }
  static local_index packs_of(const local::head_slice& s, local_index cols, int width) {
    return std::max<local_index>(1, std::min(s.head_width, cols) / width);
  }

 private:
  static int log_of(local_index n) { return std::countr_zero(std::bit_ceil(static_cast<std::uint32_t>(n))); }
};

/// values[e, h] = beta values[e, h] + sum_j y(row(e), j) x(col(e), j) over the columns j of head h. Lanes
/// keep their packs of y for a row. The order of a sum depends on the columns alone.
///
/// LogLanes: log_lanes, or -1 if it is known only at run time. Heads: of a lane; two for of_pairs.
template <int Width, int LogLanes, int Heads, class T>
struct warp_dots {
  static constexpr int min_blocks_per_multiprocessor = 3,
                       packs_of_lane = Heads == 1 ? dot_lanes::packs_of_lane : 1;

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
    local_index head;         ///< whose numbers it stores
    local_index begin[Heads], end[Heads];  ///< its columns: packs 2^log_lanes apart
  };

  __device__ int log_lanes() const { return LogLanes < 0 ? lanes.log_lanes : LogLanes; }
  __device__ local_index stride() const { return Width << log_lanes(); }

  __device__ lane lane_of(int number, local_index block) const {
    const int group = number >> log_lanes(), part = number & ((1 << log_lanes()) - 1);
    const local_index head = (block * Heads << lanes.log_heads) + (group & ((1 << lanes.log_heads) - 1));
    lane me{number, group >> lanes.log_heads, part, Heads == 1 ? head : head + (part << lanes.log_heads)};
    for (int n = 0; n < Heads; ++n) {
      const local_index h = head + (n << lanes.log_heads);
      const std::int64_t first = std::int64_t{h} * s.head_width - s.first_col, last = first + s.head_width;
      me.begin[n] = static_cast<local_index>(first > 0 ? first : 0) + part * Width;
      me.end[n] = h >= s.heads ? 0 : static_cast<local_index>(last < y.cols ? last : y.cols);
    }
    return me;
  }

  __device__ void dots(const lane& me, local_index row, local_index e, local_index end) const {
    const T* const left = y.row_data(row);
    pack of_y[Heads][packs_of_lane] = {};
#pragma unroll
    for (int n = 0; n < Heads; ++n)
#pragma unroll
      for (int c = 0; c < packs_of_lane; ++c)
        if (me.begin[n] + c * stride() < me.end[n])
          of_y[n][c] = load<Width>(left + me.begin[n] + c * stride());
    const int at_a_time = 32 >> (log_lanes() + lanes.log_heads), steps = Heads == 1 ? 1 << log_lanes() : 1;
    for (; e < end; e += 32) {
      const int count = end - e < 32 ? end - e : 32;
      const local_index column = columns[e + (me.number < count ? me.number : count - 1)];
      for (int first = 0; first < count; first += steps * at_a_time) {
        T mine = 0;
        for (int step = 0; step < steps && first + step * at_a_time < count; ++step) {
          const int k = first + step * at_a_time + me.entry;
          const T dot = dot_of(me, of_y, left, from_lane(column, k));
          if (Heads > 1 || step == me.part) mine = dot;
        }
        const int k = first + (Heads == 1 ? me.part * at_a_time : 0) + me.entry;
        if (k >= count || me.head >= s.heads) continue;
        T& value = values[edge_at(e + k, s.heads, me.head)];
        value = beta == 0 ? mine : mine + beta * value;
      }
    }
  }

  /// Of the head that the lane stores.
  __device__ T dot_of(const lane& me, const pack (&of_y)[Heads][packs_of_lane], const T* left,
                      local_index column) const {
    T parts[Heads];
#pragma unroll
    for (int n = 0; n < Heads; ++n) {
      const T* const right = at_row(x.data + me.begin[n], column, x.stride);
      pack total{};
#pragma unroll
      for (int c = 0; c < packs_of_lane; ++c)
        if (me.begin[n] + c * stride() < me.end[n]) add(total, of_y[n][c], load<Width>(right + c * stride()));
      if (LogLanes < 0)
        for (local_index j = packs_of_lane * stride(); me.begin[n] + j < me.end[n]; j += stride())
          add(total, load<Width>(left + me.begin[n] + j), load<Width>(right + j));
      parts[n] = 0;
      for (const T part : total.at) parts[n] += part;
    }
    if constexpr (Heads == 2) {
      const bool second = me.part > 0;
      return (second ? parts[1] : parts[0]) + __shfl_xor_sync(0xffffffffu, second ? parts[0] : parts[1], 1);
    } else {
      for (int apart = 1; apart >> log_lanes() == 0; apart *= 2)
        parts[0] += __shfl_xor_sync(0xffffffffu, parts[0], apart);
      return parts[0];
    }
  }

  static __device__ void add(pack& total, const pack& u, const pack& v) {
    for (int c = 0; c < Width; ++c) total.at[c] += u.at[c] * v.at[c];
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

namespace edge_detail {

template <int Width, class T>
void dots(const device_queue<cuda_device>& q, const local::csr_view<T>& a, const local::head_slice& s,
          const matrix_view<const T>& y, const matrix_view<const T>& x, T beta, T* values) {
  const auto with = [&]<int log_lanes, int heads_of_lane>(
                        std::integer_sequence<int, log_lanes, heads_of_lane>, const dot_lanes& lanes) {
    using body = warp_dots<Width, log_lanes, heads_of_lane, T>;
    const pattern_rows rows = rows_of(a);
    const std::int64_t shares = share_count(rows, 32 * lanes.blocks);
    in_shares(q, rows, s.heads, shares, body{}, [&](const row_cut* cuts, auto* heads, auto* tails) {
      on_cuda::launch_warps(
          q, lanes.blocks * shares,
          body{a.columns, {a.offsets, cuts, s.heads, heads, tails}, s, lanes, table_of(x), y, beta, values});
    });
  };
  const dot_lanes lanes = dot_lanes::of(s, x.cols, Width);
  if constexpr (Width == widest<T>) {
    if (s.heads > 1 && dot_lanes::packs_of(s, x.cols, Width) == 2)
      return with(std::integer_sequence<int, 1, 2>(), dot_lanes::of_pairs(s));
    if (lanes.log_lanes == 2) return with(std::integer_sequence<int, 2, 1>(), lanes);
  }
  with(std::integer_sequence<int, -1, 1>(), lanes);
}

}  // namespace edge_detail

/// As on_host::edge_dot. If spmm would multiply a copy of x, this uses copies of y and x, for one wide head.
template <class T>
void edge_dot(const device_queue<cuda_device>& q, local::input_csr<T> a, local::head_slice s,
              local::input_view<T> y, local::input_view<T> x, local::scalar<T> beta, T* values) {
  local::require_edges("edge_dot", a, s, local::shape_of(x), local::shape_of(y));
  if (a.rows == 0 || s.heads == 0) return;
  if (s.heads == 1 && x.cols >= 4 * widest<T> && spmm_detail::pads(q, a, x) &&
      a.entries >= 2 * std::int64_t{a.rows}) {
    const local_index cols = padded_width<T>(x.cols);
    T* const memory = scratch<T>(q, static_cast<std::size_t>((std::int64_t{x.rows} + y.rows) * cols));
    const auto wide_x = padded_rows(q, x, memory),
               wide_y = padded_rows(q, y, memory + std::int64_t{x.rows} * cols);
    return edge_detail::dots<widest<T>, T>(q, a, {1, cols, 0}, wide_y, wide_x, beta, values);
  }
  with_width<widest<T>>(
      x.cols, [&](auto width) { edge_detail::dots<decltype(width)::value>(q, a, s, y, x, beta, values); }, s,
      y, x);
}

}  // namespace partita::on_cuda
