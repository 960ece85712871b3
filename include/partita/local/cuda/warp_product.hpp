// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of a sparse pattern with a dense block whose weights, one per entry and head, are computed once
/// by a lane of a warp and passed to the lanes of the columns. Device code only.

#include <cstdint>
#include <type_traits>

#include "partita/local/cuda/edge_weights.hpp"
#include "partita/local/cuda/spmm.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/cuda/warp_lanes.hpp"
#include "partita/local/cuda/warp_rows.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// Warp (share, block of columns) sums the entries of a share, as fold_shares does. Lanes read 32 columns at
/// a time, compute the weights of as many (entry, head) as there are lanes, and pass both to the lanes of the
/// columns. All lanes take part in everything: entries past the end of a row have weight 0 and the row's last
/// column, so that an infinite number in that row of x gives NaN.
///
/// Weights: column(e, of_x), the column of an entry for the functions below, if its column in x is of_x;
/// in_row(row, h), the data of a row for a lane; of_entry(e, column), the data of an entry for all heads;
/// at(in_row, of_entry, row, e, column, h), the weight; in_many_registers. The weights are stored in
/// `values`, if not null.
///
/// `bent` weights are three numbers, two of them for the lanes of columns, and the result is add_bent_to_rows
/// (attention.hpp).
///
/// LogHeads, LogLanes: those of the lanes, or -1 if they are known only at run time.
template <int Width, int LogHeads, int LogLanes, class Weights, class T, class Result>
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
  local_index x_packs;
  row_table<T> x;
  Result result;
  T* values;

  __device__ void operator()(std::uint32_t warp, int number) const {
    const cell at = cell_of(warp, lanes.blocks);
    const lane me = lane_of(number, at.col);
    rows.for_rows(static_cast<std::uint32_t>(at.row),
                  [&](local_index row, local_index e, local_index end, sum* parts) {
                    totals total;
                    add_entries(me, row, e, end, total);
                    put(me, total, row, parts);
                  });
  }

 private:
  struct totals {
    sum plain[packs_of_lane] = {}, bent[Weights::bent ? packs_of_lane : 1] = {};
    T terms = 0;  ///< as a lane of weights
  };
  struct lane {
    int number, entry, head;  ///< of 32; as a lane of weights: the batch's entry, the head
    bool owns;                ///< this head, whose first column is in the block
    local_index block, first_head, last_head;
    int entry_of_columns;          ///< as a lane of columns
    local_index pack, end;         ///< the first of its packs; end of the block's
    int weights[packs_of_lane];    ///< the lanes that have the weights of its first entry's packs
    const T* from[packs_of_lane];  ///< row 0 of x, at its packs
  };

  __device__ local_index packs() const { return x_packs; }
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
    me.block = block, me.first_head = first_head, me.last_head = last_head;
    me.entry = computed(number >> log_heads());
    me.head = first_head + (number & ((1 << log_heads()) - 1));
    const bool begins = block == 0 || (s.first_col + first * Width) % s.head_width == 0;
    me.owns =
        (Weights::bent || values != nullptr) && me.head <= last_head && (me.head > first_head || begins);
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
                              totals& total) const {
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
        auto weight = weights.at(of_row, from_lane(of_entry, k), row, up_to_end(e + k), its_column, me.head);
        if (k >= count) weight = {};
        if constexpr (Weights::bent) {
          total.terms += weight.term;
        } else if (values != nullptr) {
          if (me.owns && k < count) values[edge_at(e + k, s.heads, me.head)] = weight;
        }
        add_batch(me, weight, column, of_column, left < batch() ? left : batch(), total);
        k += batch();
      }
    }
  }

  /// Adds `count` entries. Lanes hold their columns; that of this lane's first entry is in lane of_column.
  template <class Weight>
  __device__ void add_batch(const lane& me, const Weight& weight, local_index column, int& of_column,
                            int count, totals& total) const {
    for (int skip = 0; count > 0; count -= together * entries()) {
#pragma unroll
      for (int u = 0; u < together; ++u) {
        const local_index its_column = from_lane(column, of_column);
        Weight w = of_lane(weight, me.weights[0] + skip);
#pragma unroll
        for (int c = 0; c < packs_of_lane; ++c) {
          if (!one_head && c > 0) w = of_lane(weight, me.weights[c] + skip);
          const sum of_x = load<Width>(at_row(me.from[c], its_column, x.stride));
          for (int j = 0; j < Width; ++j) add(total, c, j, w, of_x.at[j]);
        }
        of_column += entries();
        skip += entries() << log_heads();
      }
    }
  }

  static __device__ T of_lane(T weight, int lane) { return from_lane(weight, lane); }
  template <class Weight>
  static __device__ Weight of_lane(const Weight& w, int lane) {
    return {from_lane(w.plain, lane), from_lane(w.bent, lane), T(0)};
  }
  static __device__ void add(totals& total, int c, int j, T w, T x) { total.plain[c].at[j] += w * x; }
  template <class Weight>
  static __device__ void add(totals& total, int c, int j, const Weight& w, T x) {
    total.plain[c].at[j] += w.plain * x;
    total.bent[c].at[j] += w.bent * x;
  }

  /// Sums the totals of the lanes with the same columns into `parts` if not null, else into y.
  __device__ void put(const lane& me, totals& total, local_index row, sum* parts) const {
    const auto to = [&](local_index place, const sum& of_place) {
      if (parts != nullptr)
        parts[place] = of_place;
      else
        result.store(of_place, row, place);
    };
    join(total.plain);
    if constexpr (Weights::bent) {
      join(total.bent);
      for (int apart = 16; apart >> log_heads() != 0; apart /= 2)
        total.terms += __shfl_xor_sync(0xffffffffu, total.terms, apart);
      put_numbers(me, total, row, parts);
    }
    if constexpr (one_head && Width > 1 && Weights::bent)
      if (result.cut && parts == nullptr) return put_columns(me, total, row);
    if (me.entry_of_columns > 0) return;
#pragma unroll
    for (int c = 0; c < packs_of_lane; ++c) {
      const local_index v = me.pack + (c << log_lanes());
      if (v >= me.end) continue;
      to(v, total.plain[c]);
      if constexpr (Weights::bent && !Weights::transposed) to(packs() + v, total.bent[c]);
    }
  }
  __device__ void join(sum (&total)[packs_of_lane]) const {
    for (int apart = 16; apart >> log_lanes() != 0; apart /= 2)
#pragma unroll
      for (int c = 0; c < packs_of_lane; ++c)
        for (int j = 0; j < Width; ++j) total[c].at[j] += __shfl_xor_sync(0xffffffffu, total[c].at[j], apart);
  }

  /// Calls f(column, total) for the columns below `cols`; adjacent lanes take adjacent columns.
  template <class F>
  __device__ void by_columns(const lane& me, const sum (&total)[packs_of_lane], local_index cols,
                             const F& f) const {
    const local_index first = me.block * lanes.packs_of_block * Width;
    const local_index end = me.end * Width < cols ? me.end * Width : cols;
    for (local_index j = first + me.number; j - me.number < end; j += 32) {
      const int v = (j - first) / Width, c_of_j = v >> log_lanes(), from = v & ((1 << log_lanes()) - 1);
      T value = 0;
#pragma unroll
      for (int c = 0; c < packs_of_lane; ++c)
        for (int k = 0; k < Width; ++k) {
          const T other = from_lane(total[c].at[k], from);
          if (c == c_of_j && k == (j - first) % Width) value = other;
        }
      if (j < end) f(j, value);
    }
  }
  /// Stores to rows of y that are not aligned to packs.
  __device__ void put_columns(const lane& me, const totals& total, local_index row) const {
    by_columns(me, total.plain, result.y.cols, [&](local_index j, T value) { result.store(value, row, j); });
    if constexpr (!Weights::transposed) {
      if (me.entry_of_columns > 0) return;
#pragma unroll
      for (int c = 0; c < packs_of_lane; ++c)
        if (const local_index v = me.pack + (c << log_lanes()); v < me.end)
          result.keep(total.plain[c], total.bent[c], row, v);
    }
  }

  /// Stores the numbers of the heads; for sources, one per block of columns, 0 if no column is of the head.
  __device__ void put_numbers(const lane& me, const totals& total, local_index row, sum* parts) const {
    const auto to = [&](local_index place, T number) {
      if (parts != nullptr)
        parts[Result::blocks_of_packs * packs() + place] = {number};
      else
        result.store_number(number, row, place);
    };
    if constexpr (!Weights::transposed) {
      if (me.entry == 0 && me.owns) to(me.head, total.terms);
    } else {
      const T of_head = dot_of_head(me, total.bent, row) - (me.owns ? total.terms : T(0));
      for (local_index first = 0; first < s.heads; first += 32) {
        const local_index h = first + me.number;
        const bool here = h >= me.first_head && h <= me.last_head;
        const T number = from_lane(of_head, here ? h - me.first_head : 0);
        if (h < s.heads) to(me.block * s.heads + h, here ? number : T(0));
      }
    }
  }
  /// The dot product of the row's own x and `bent`, which all lanes with the same columns hold.
  __device__ T dot_of_head(const lane& me, const sum (&bent)[packs_of_lane], local_index row) const {
    T dot = 0, parts[packs_of_lane] = {};
    const T* const own = result.own.row_data(row);
    if (one_head && !result.own_in_packs) {
      by_columns(me, bent, result.own.cols, [&](local_index j, T value) { dot += value * own[j]; });
      for (int apart = 1; apart < 32; apart *= 2) dot += __shfl_xor_sync(0xffffffffu, dot, apart);
      return dot;
    }
#pragma unroll
    for (int c = 0; c < packs_of_lane; ++c) {
      const local_index v = me.pack + (c << log_lanes());
      if (v >= me.end) continue;
      const sum of_own = load<Width>(own + v * Width);
      for (int j = 0; j < Width; ++j) parts[c] += bent[c].at[j] * of_own.at[j];
    }
    if (one_head || s.heads == 1) {
      for (const T part : parts) dot += part;
      for (int apart = 1; apart >> log_lanes() == 0; apart *= 2)
        dot += __shfl_xor_sync(0xffffffffu, dot, apart);
      return dot;
    }
    const local_index packs_of_head = s.head_width / Width, first = me.block * lanes.packs_of_block;
    const local_index begin = me.head * packs_of_head - s.first_col / Width - first;
    for (local_index i = 0; i < packs_of_head; ++i) {
      const local_index v = begin + i;
      const bool here = v >= 0 && v < me.end - first;
      const int lane = here ? v & ((1 << log_lanes()) - 1) : 0;
#pragma unroll
      for (int c = 0; c < packs_of_lane; ++c) {
        const T part = from_lane(parts[c], lane);
        if (here && v >> log_lanes() == c) dot += part;
      }
    }
    return dot;
  }
};

namespace warp_detail {

/// `places`: how many sums a row has.
template <int Width, class Weights, class T, class Result>
void multiply(const device_queue<cuda_device>& q, const pattern_rows& a, const local_index* columns,
              const local::head_slice& s, const warp_lanes& lanes, const Weights& weights, T* values,
              const matrix_view<const T>& x, const Result& result, local_index places) {
  const std::int64_t shares = share_count(a, 32 * lanes.blocks);
  in_shares(q, a, places, shares, result, [&](const row_cut* cuts, auto* heads, auto* tails) {
    const auto with = [&]<int log_heads, int log_lanes>(std::integer_sequence<int, log_heads, log_lanes>) {
      on_cuda::launch_warps(q, lanes.blocks * shares,
                            warp_product<Width, log_heads, log_lanes, Weights, T, Result>{
                                weights,
                                columns,
                                {a.offsets, cuts, places, heads, tails},
                                s,
                                lanes,
                                x.cols / Width,
                                table_of(x),
                                result,
                                values});
    };
    if constexpr (Width > 1 || !Weights::bent)
      if (lanes.log_heads == 0) return with(std::integer_sequence<int, 0, -1>());
    if constexpr (Width > 1)
      if (lanes.log_heads == 3 && lanes.log_lanes == 4) return with(std::integer_sequence<int, 3, 4>());
    with(std::integer_sequence<int, -1, -1>());
  });
}

/// Calls f(width of packs, the heads of their columns, x) for products of x; if there is one wide head and
/// spmm would multiply a copy of x, with such a copy. Rows of `operands` are read or written by these packs.
template <class T, class F, class... Views>
void in_packs(const device_queue<cuda_device>& q, const pattern_rows& a, const local::head_slice& s,
              const matrix_view<const T>& x, const F& f, const Views&... operands) {
  constexpr int wide = widest<T>;
  using wide_packs = std::integral_constant<int, wide>;
  using single = std::integral_constant<int, 1>;
  if (x.cols % wide == 0 && aligned(s, wide) && aligned(x, wide) && (aligned(operands, wide) && ...))
    return f(wide_packs(), s, x);
  const local::csr_view<T> pattern{a.rows, a.cols, a.offsets, nullptr, nullptr, a.entries};
  if (s.heads > 1 || x.cols % wide == 0 || x.cols < 4 * wide || !spmm_detail::pads(q, pattern, x))
    return f(single(), s, x);
  const local_index cols = padded_width<T>(x.cols);
  const local::head_slice all{1, cols, 0};
  f(wide_packs(), all,
    padded_rows(q, x, scratch<T>(q, static_cast<std::size_t>(std::int64_t{x.rows} * cols))));
}

}  // namespace warp_detail

/// y = beta y + E x, with the weights of E's entries and heads; see warp_product and in_packs.
template <class Weights, class T>
void warp_multiply(const device_queue<cuda_device>& q, const pattern_rows& a, const local_index* columns,
                   const local::head_slice& s, const Weights& weights, T* values,
                   const matrix_view<const T>& x, T beta, const matrix_view<T>& y) {
  if (a.rows == 0 || y.cols == 0) return;
  warp_detail::in_packs(
      q, a, s, x,
      [&]<int width>(std::integral_constant<int, width>, const local::head_slice& heads,
                     const matrix_view<const T>& of_x) {
        const add_to_rows<width, T> result{beta, y, of_x.cols > y.cols};
        const auto lanes = warp_lanes::of(heads, of_x.cols, width, 4 / width);
        warp_detail::multiply<width>(q, a, columns, heads, lanes, weights, values, of_x, result,
                                     of_x.cols / width);
      },
      y);
}

}  // namespace partita::on_cuda
