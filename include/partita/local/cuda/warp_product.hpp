// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of a sparse pattern with a dense block whose weights, one per entry and head, are computed once
/// by a lane of a warp and passed to the lanes of the columns. Device code only.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "partita/local/cuda/edge_weights.hpp"
#include "partita/local/cuda/spmm.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/cuda/warp_rows.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// y(row, pack v) = beta y(row, pack v) + total. Where packs are `cut`, those of y are not aligned, and the
/// last may have columns behind y's.
template <int Width, class T>
struct add_to_rows {
  using sum = pack_of<T, Width>;

  T beta;
  matrix_view<T> y;
  bool cut = false;

  constexpr void merge(sum& total, const sum& later) const { total += later; }
  constexpr void store(const sum& total, local_index row, local_index v) const {
    T* const to = y.row_data(row) + v * Width;
    if (cut) {
      for (int c = 0; c < Width; ++c)
        if (v * Width + c < y.cols) to[c] = beta == 0 ? total.at[c] : total.at[c] + beta * to[c];
      return;
    }
    sum result = total;
    if (beta != 0) {
      const sum old = load<Width>(to);
      for (int c = 0; c < Width; ++c) result.at[c] += beta * old.at[c];
    }
    on_cuda::store(result, to);
  }
};

/// How 32 lanes share the work. Coefficients: 2^log_heads lanes for an entry, one a head. Columns:
/// 2^log_lanes lanes for an entry, `packs_of_lane` packs each, 2^log_lanes packs apart. Warps that have the
/// same entries take a block of columns each, of at most 16 heads.
struct warp_lanes {
  int log_heads, log_lanes;
  int batch, entries;  ///< entries at a time: of coefficients, of columns
  local_index packs_of_block, blocks;

  /// Entries whose columns a lane takes without a test between them.
  static constexpr int together(bool one_head) { return one_head ? 4 : 2; }

  static warp_lanes of(const local::head_slice& s, local_index cols, int width, int packs_of_lane) {
    using count = std::uint32_t;
    const auto up = [](local_index n) {
      return static_cast<local_index>(std::bit_ceil(static_cast<count>(n)));
    };
    const auto lanes_for = [&](local_index packs) { return up((packs + packs_of_lane - 1) / packs_of_lane); };
    const local_index all = s.head_of(cols - 1) - s.head_of(0) + 1, packs = cols / width;
    const auto heads_of = [&](local_index n) {
      const bool even = s.first_col % s.head_width == 0 && n % s.head_width == 0;
      return up(std::min(all, even ? n / s.head_width : (n - 2 + s.head_width) / s.head_width + 1));
    };
    local_index block = std::min(packs, 32 * packs_of_lane);
    while (heads_of(block * width) > 16) block = (block + 1) / 2;
    const local_index heads = heads_of(block * width);
    const local_index lanes = std::max(lanes_for(block), heads * together(heads == 1));
    return {std::countr_zero(static_cast<count>(heads)),
            std::countr_zero(static_cast<count>(lanes)),
            32 / heads,
            32 / lanes,
            block,
            (packs + block - 1) / block};
  }
};

/// Warp (share, block of columns) sums the entries of a share, as fold_shares does. Lanes read 32 columns at
/// a time, compute the weights of as many (entry, head) as there are lanes, and pass both to the lanes of the
/// columns. All lanes take part in everything: entries behind the end of a row have weight 0 and the row's
/// last column, so that an infinite number in that row of x gives NaN.
///
/// Weights: column(e, of_x), the column of an entry for what follows, where x has it in of_x; in_row(row, h),
/// what a row has for a lane; of_entry(e, column), what an entry has for all heads; at(in_row, of_entry, row,
/// e, column, h), the weight; in_many_registers. `values`, if not null, gets the weights.
///
/// LogHeads, LogLanes: those of the lanes, or -1 where they are known at run time only.
template <int Width, int LogHeads, int LogLanes, class Weights, class T>
struct warp_product {
  static constexpr bool one_head = LogHeads == 0;
  static constexpr int packs_of_lane = 4 / Width, together = warp_lanes::together(one_head);
  static constexpr int min_blocks_per_multiprocessor = sizeof(T) == sizeof(double)                ? 2
                                                       : Width == 1 || Weights::in_many_registers ? 3
                                                                                                  : 4;

  using sum = pack_of<T, Width>;

  Weights weights;
  const local_index* columns;
  rows_of_share<sum> rows;
  local::head_slice s;
  warp_lanes lanes;
  row_table<T> x;
  add_to_rows<Width, T> result;
  T* values;

  __device__ void operator()(std::uint32_t warp, int number) const {
    const cell at = cell_of(warp, lanes.blocks);
    const lane me = lane_of(number, at.col);
    rows.for_rows(static_cast<std::uint32_t>(at.row),
                  [&](local_index row, local_index e, local_index end, sum* parts) {
                    sum total[packs_of_lane] = {};
                    add_entries(me, row, e, end, total);
                    put(me, total, row, parts);
                  });
  }

 private:
  struct lane {
    int number, entry, head;       ///< of 32; as a lane of weights: the batch's entry, the head
    bool stores;                   ///< the values of this head
    int entry_of_columns;          ///< as a lane of columns
    local_index pack, end;         ///< the first of its packs; end of the block's
    int weights[packs_of_lane];    ///< the lanes that have the weights of its first entry's packs
    const T* from[packs_of_lane];  ///< row 0 of x, at its packs
  };

  __device__ local_index packs() const { return rows.packs; }
  __device__ int log_heads() const { return LogHeads < 0 ? lanes.log_heads : LogHeads; }
  __device__ int log_lanes() const { return LogLanes < 0 ? lanes.log_lanes : LogLanes; }
  __device__ int batch() const { return LogHeads < 0 ? lanes.batch : 32 >> log_heads(); }
  __device__ int entries() const { return LogLanes < 0 ? lanes.entries : 32 >> log_lanes(); }

  __device__ lane lane_of(int number, local_index block) const {
    lane me{};
    me.number = number;
    const local_index first = block * lanes.packs_of_block, beyond = first + lanes.packs_of_block;
    me.end = beyond < packs() ? beyond : packs();
    const local_index first_head = s.head_of(first * Width), last_head = s.head_of(me.end * Width - 1);
    me.entry = computed(number >> log_heads());
    me.head = first_head + (number & ((1 << log_heads()) - 1));
    const bool begins = block == 0 || (s.first_col + first * Width) % s.head_width == 0;
    me.stores = values != nullptr && me.head <= last_head && (me.head > first_head || begins);
    if (me.head > last_head) me.head = last_head;
    me.entry_of_columns = computed(number >> log_lanes());
    me.pack = first + (number & ((1 << log_lanes()) - 1));
    for (int c = 0; c < packs_of_lane; ++c) {
      const local_index own = me.pack + (c << log_lanes()), v = own < me.end ? own : me.end - 1;
      me.weights[c] = computed((me.entry_of_columns << log_heads()) + s.head_of(v * Width) - first_head);
      me.from[c] = x.data + v * Width;
    }
    return me;
  }

  __device__ void add_entries(const lane& me, local_index row, local_index e, local_index end,
                              sum (&total)[packs_of_lane]) const {
    if (e == end) return;
    const auto of_row = weights.in_row(row, me.head);
    const auto up_to_end = [&](local_index i) { return i < end ? i : end - 1; };
    local_index next = columns[up_to_end(e + me.number)];
    for (; e < end; e += 32) {
      const int count = end - e < 32 ? end - e : 32;
      const local_index mine = up_to_end(e + me.number), column = next;
      if (count == 32) next = columns[up_to_end(mine + 32)];
      const local_index of_weights = weights.column(mine, column);
      const auto of_entry = weights.of_entry(mine, of_weights);
      int k = me.entry, of_column = me.entry_of_columns;
      for (int left = count; left > 0; left -= batch()) {
        const local_index its_column = from_lane(of_weights, k);
        T weight = weights.at(of_row, from_lane(of_entry, k), row, up_to_end(e + k), its_column, me.head);
        if (k >= count) weight = 0;
        if (values != nullptr)
          if (me.stores && k < count) values[edge_at(e + k, s.heads, me.head)] = weight;
        add_batch(me, weight, column, of_column, left < batch() ? left : batch(), total);
        k += batch();
      }
    }
  }

  /// `count` entries; lanes have their columns, this lane's first at of_column.
  __device__ void add_batch(const lane& me, T weight, local_index column, int& of_column, int count,
                            sum (&total)[packs_of_lane]) const {
    for (int skip = 0; count > 0; count -= together * entries()) {
#pragma unroll
      for (int u = 0; u < together; ++u) {
        const local_index its_column = from_lane(column, of_column);
        T w = from_lane(weight, me.weights[0] + skip);
#pragma unroll
        for (int c = 0; c < packs_of_lane; ++c) {
          if (!one_head && c > 0) w = from_lane(weight, me.weights[c] + skip);
          const sum of_x = load<Width>(at_row(me.from[c], its_column, x.stride));
          for (int j = 0; j < Width; ++j) total[c].at[j] += w * of_x.at[j];
        }
        of_column += entries();
        skip += entries() << log_heads();
      }
    }
  }

  /// Adds what the lanes of the same columns have; to `parts` if not null, and else to y.
  __device__ void put(const lane& me, sum (&total)[packs_of_lane], local_index row, sum* parts) const {
    for (int apart = 16; apart >> log_lanes() != 0; apart /= 2)
#pragma unroll
      for (int c = 0; c < packs_of_lane; ++c)
        for (int j = 0; j < Width; ++j) total[c].at[j] += __shfl_xor_sync(0xffffffffu, total[c].at[j], apart);
    if (me.entry_of_columns > 0) return;
#pragma unroll
    for (int c = 0; c < packs_of_lane; ++c) {
      const local_index v = me.pack + (c << log_lanes());
      if (v >= me.end) continue;
      if (parts != nullptr)
        parts[v] = total[c];
      else
        result.store(total[c], row, v);
    }
  }
};

namespace warp_detail {

template <int Width, class Weights, class T>
void multiply(const device_queue<cuda_device>& q, const pattern_rows& a, const local_index* columns,
              const local::head_slice& s, const Weights& weights, T* values, const matrix_view<const T>& x,
              T beta, const matrix_view<T>& y) {
  const warp_lanes lanes = warp_lanes::of(s, x.cols, Width, 4 / Width);
  const add_to_rows<Width, T> result{beta, y, x.cols > y.cols};
  const std::int64_t shares = share_count(a, 32 * lanes.blocks);
  in_shares(q, a, x.cols / Width, shares, result, [&](const row_cut* cuts, auto* heads, auto* tails) {
    const auto with = [&]<int log_heads, int log_lanes>(std::integer_sequence<int, log_heads, log_lanes>) {
      on_cuda::launch_warps(q, lanes.blocks * shares,
                            warp_product<Width, log_heads, log_lanes, Weights, T>{
                                weights,
                                columns,
                                {a.offsets, cuts, x.cols / Width, heads, tails},
                                s,
                                lanes,
                                table_of(x),
                                result,
                                values});
    };
    if (lanes.log_heads == 0) return with(std::integer_sequence<int, 0, -1>());
    if constexpr (Width > 1)
      if (lanes.log_heads == 3 && lanes.log_lanes == 4) return with(std::integer_sequence<int, 3, 4>());
    with(std::integer_sequence<int, -1, -1>());
  });
}

}  // namespace warp_detail

/// y = beta y + E x, with the weights of E's entries and heads; see warp_product. Where spmm would multiply a
/// copy of x, one is taken of the columns of one head, if they are many.
template <class Weights, class T>
void warp_multiply(const device_queue<cuda_device>& q, const pattern_rows& a, const local_index* columns,
                   const local::head_slice& s, const Weights& weights, T* values,
                   const matrix_view<const T>& x, T beta, const matrix_view<T>& y) {
  constexpr int wide = widest<T>;
  if (a.rows == 0 || y.cols == 0) return;
  if (y.cols % wide == 0 && aligned(s, wide) && aligned(x, wide) && aligned(y, wide))
    return warp_detail::multiply<wide>(q, a, columns, s, weights, values, x, beta, y);
  const local::csr_view<T> pattern{a.rows, a.cols, a.offsets, columns, nullptr, a.entries};
  if (s.heads > 1 || x.cols % wide == 0 || x.cols < 4 * wide || !spmm_detail::pads(q, pattern, x))
    return warp_detail::multiply<1>(q, a, columns, s, weights, values, x, beta, y);
  const local_index cols = padded_width<T>(x.cols);
  const auto copy = padded_rows(q, x, scratch<T>(q, static_cast<std::size_t>(std::int64_t{x.rows} * cols)));
  warp_detail::multiply<wide, Weights, T>(q, a, columns, {1, cols, 0}, weights, values, copy, beta, y);
}

}  // namespace partita::on_cuda
