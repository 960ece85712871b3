// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention and its gradients without storing values of entries.
///
/// With z the score of the entry of target v and source u, alpha its coefficient, w the same after dropout
/// and leaky' the slope at z, dz = leaky' (w dy_v . x_u - alpha s_v), where s_v = sum_u w dy_v . x_u = dy_v .
/// y_v. The sum of dz over u is dy_v . (sum_u w leaky' x_u) - s_v sum_u alpha leaky', and that over v is x_u
/// . (sum_v w leaky' dy_v) - sum_v alpha leaky' s_v. Products compute these sums of rows along with y and dx;
/// no entry needs a dot product of its own.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "partita/local/cuda/partial_sums.hpp"
#include "partita/local/cuda/warp_product.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// The results of bent_weights for a row, besides y. For targets: a copy of y, the packs with bent weights
/// and, for each head, the sum of the terms, in `numbers` (rows x heads). For sources: for each block of
/// columns and each head, the dot product of the packs with bent weights and the row's own x over the columns
/// of the head, minus the sum of the terms (blocks rows x heads). Sums have a place for each of these.
template <int Width, bool Transposed, class T>
struct add_bent_to_rows : add_to_rows<Width, T> {
  using sum = pack_of<T, Width>;
  static constexpr int blocks_of_packs = Transposed ? 1 : 2;

  local_index packs, rows, heads;
  matrix_view<T> copy, bent;  ///< of targets
  matrix_view<const T> own;   ///< of sources
  bool own_in_packs;          ///< by whole aligned packs
  matrix_view<T> numbers;

  local_index places(local_index blocks) const {
    return blocks_of_packs * packs + (Transposed ? blocks : 1) * heads;
  }
  using add_to_rows<Width, T>::store;
  constexpr void store(const sum& total, local_index row, local_index place) const {
    if (place >= blocks_of_packs * packs)
      return store_number(total.at[0], row, place - blocks_of_packs * packs);
    if constexpr (!Transposed) {
      if (place >= packs) return on_cuda::store(total, bent.row_data(row) + (place - packs) * Width);
      on_cuda::store(total, copy.row_data(row) + place * Width);
    }
    add_to_rows<Width, T>::store(total, row, place);
  }
  /// Stores pack v of both, but not y.
  constexpr void keep(const sum& of_y, const sum& of_bent, local_index row, local_index v) const {
    on_cuda::store(of_y, copy.row_data(row) + v * Width);
    on_cuda::store(of_bent, bent.row_data(row) + v * Width);
  }
  /// Stores the number of a head in a block of columns: `place` is block heads + head.
  constexpr void store_number(T number, local_index row, local_index place) const {
    if constexpr (Transposed)
      numbers(place / heads * rows + row, place % heads) = number;
    else
      numbers(row, place) = number;
  }
};

/// dtarget(i, h), and the numbers of targets that sources need, from the sums of their rows. 2^log_lanes
/// lanes share a row and head. If y is to hold dy, it is copied there and padded with zeros.
template <int Width, class T>
struct finish_targets {
  local::head_slice s;
  int log_lanes;
  std::int64_t items;
  matrix_view<const T> dy, target, log_sum, bent, terms;
  matrix_view<T> y, dtarget;
  bool keeps_dy;
  T* numbers;

  __device__ void operator()(std::uint32_t warp, int number) const {
    const int part = number & ((1 << log_lanes) - 1);
    const std::int64_t own = (std::int64_t{warp} << (5 - log_lanes)) + (number >> log_lanes);
    const cell at = cell_of(own < items ? own : items - 1, s.heads);
    const std::ptrdiff_t first = std::ptrdiff_t{at.col} * s.head_width;
    const T *const of_dy = dy.row_data(at.row) + first, *const of_bent = bent.row_data(at.row) + first;
    T* const of_y = y.row_data(at.row) + first;
    T dot = 0, bent_dot = 0;
    // Lanes without an item would read what others write.
    for (local_index j = own < items ? part * Width : s.head_width; j < s.head_width;
         j += Width << log_lanes) {
      const auto d = load<Width>(of_dy + j), u = load<Width>(of_y + j), b = load<Width>(of_bent + j);
      for (int c = 0; c < Width; ++c) dot += d.at[c] * u.at[c], bent_dot += d.at[c] * b.at[c];
      if (keeps_dy) on_cuda::store(d, of_y + j);
    }
    if (keeps_dy && own < items)
      for (auto j = static_cast<local_index>(s.head_width) + part; j < y.cols; j += 1 << log_lanes)
        of_y[j] = T(0);
    for (int apart = 1; apart >> log_lanes == 0; apart *= 2) {
      dot += __shfl_xor_sync(0xffffffffu, dot, apart);
      bent_dot += __shfl_xor_sync(0xffffffffu, bent_dot, apart);
    }
    if (own >= items || part > 0) return;
    dtarget(at.row, at.col) = bent_dot - dot * terms(at.row, at.col);
    const T all[numbers_of_target] = {target(at.row, at.col), log_sum(at.row, at.col), dot, T(0)};
    for (int k = 0; k < numbers_of_target; k += widest<T>) {
      pack_of<T, widest<T>> some;
      for (int c = 0; c < widest<T>; ++c) some.at[c] = all[k + c];
      on_cuda::store(some, numbers + own * numbers_of_target + k);
    }
  }
};

/// y = E x for the coefficients f of the entries (rows are targets), and the sums that its gradients need: y
/// again, y with the coefficients times leaky', and the row sums of the coefficients before dropout times
/// leaky'.
template <class F, class T>
void attention_forward(const device_queue<cuda_device>& q, local::input_csr<T> a, local::head_slice s,
                       const F& f, local::input_view<T> x, matrix_view<T> y,
                       const local::attention_sums<T>& sums) {
  local::require_edges("attention_forward", a, s, local::shape_of(x), local::shape_of(y));
  if (a.rows == 0 || y.cols == 0) return;
  warp_detail::in_packs(
      q, rows_of(a), s, x,
      [&]<int width>(std::integral_constant<int, width>, const local::head_slice& heads,
                     const matrix_view<const T>& of_x) {
        const local_index packs = of_x.cols / width;
        const add_bent_to_rows<width, false, T> result{{T(0), y, of_x.cols > y.cols},
                                                       packs,
                                                       a.rows,
                                                       heads.heads,
                                                       sums.y,
                                                       sums.bent,
                                                       {},
                                                       false,
                                                       sums.terms};
        const auto lanes = warp_lanes::of(heads, of_x.cols, width, 4 / width);
        warp_detail::multiply<width>(q, rows_of(a), a.columns, heads, lanes,
                                     bent_weights<T, false>(f, a.columns, nullptr), static_cast<T*>(nullptr),
                                     of_x, result, result.places(lanes.blocks));
      },
      y);
}

/// dtarget, and the numbers of targets (rows heads x 4), from dy and the sums of attention_forward. Returns
/// dy, or a copy of it with rows aligned to 16 bytes that overwrites sums.y.
template <class T>
matrix_view<const T> attention_targets(const device_queue<cuda_device>& q, local::head_slice s,
                                       local::input_view<T> target, local::input_view<T> log_sum,
                                       local::input_view<T> dy, const local::attention_sums<T>& sums,
                                       matrix_view<T> dtarget, T* numbers) {
  const matrix_view<T> y = sums.y;
  local::require_equal("attention_targets", "dtarget", local::shape_of(dtarget), "rows and heads",
                       matrix_shape{dy.rows, s.heads});
  if (dy.rows == 0 || dy.cols == 0) return dy;
  constexpr int wide = widest<T>;
  const bool keeps = s.heads == 1 && !(dy.cols % wide == 0 && aligned(dy, wide)) && y.cols % wide == 0;
  with_width<wide, 1>(
      s.head_width,
      [&]<int width>(std::integral_constant<int, width>) {
        const auto packs = static_cast<std::uint32_t>(s.head_width / width);
        const int log = std::min(4, std::countr_zero(std::bit_ceil(packs)));
        const std::int64_t items = std::int64_t{dy.rows} * s.heads;
        on_cuda::launch_warps(q, quotient_up(items, 32 >> log),
                              finish_targets<width, T>{s, log, items, dy, target, log_sum, sums.bent,
                                                       sums.terms, y, dtarget, keeps, numbers});
      },
      dy, y, sums.bent);
  return keeps ? matrix_view<const T>(y) : dy;
}

/// dx = E^T dy and dsource, for the coefficients f of the entries of the transposed pattern (rows are
/// sources), the numbers and dy of attention_targets, and the x of the rows.
template <class F, class T>
void attention_sources(const device_queue<cuda_device>& q, local::input_csr<T> a, local::head_slice s,
                       const F& f, const local::scalar<T>* numbers, local::input_view<T> x,
                       local::input_view<T> dy, matrix_view<T> dx, matrix_view<T> dsource) {
  local::require_edges("attention_sources", a, s, {dy.rows, dx.cols}, local::shape_of(dx));
  local::require_row_values("attention_sources", a, s.heads, "dsource", dsource);
  if (a.rows == 0 || dx.cols == 0) return;
  const auto multiply = [&]<int width>(std::integral_constant<int, width>, const local::head_slice& heads,
                                       const matrix_view<const T>& of_dy) {
    const auto lanes = warp_lanes::of(heads, of_dy.cols, width, 4 / width);
    const auto rows = static_cast<std::size_t>(lanes.blocks) * static_cast<std::size_t>(a.rows);
    auto& memory = q.resource<block_memory<T>>().parts;
    if (lanes.blocks > 1) memory.grow(q, rows * static_cast<std::size_t>(s.heads));
    const matrix_view<T> of_blocks{memory.data(), a.rows, s.heads, s.heads};
    const bool own_in_packs = x.cols % width == 0 && aligned(x, width);
    const add_bent_to_rows<width, true, T> result{
        {T(0), dx, of_dy.cols > dx.cols},      of_dy.cols / width, a.rows, s.heads, {}, {}, x, own_in_packs,
        lanes.blocks > 1 ? of_blocks : dsource};
    warp_detail::multiply<width>(q, rows_of(a), a.columns, heads, lanes,
                                 bent_weights<T, true>(f, a.columns, numbers), static_cast<T*>(nullptr),
                                 of_dy, result, result.places(lanes.blocks));
    if (lanes.blocks > 1)
      on_cuda::launch(q, std::int64_t{a.rows} * s.heads,
                      add_blocks<false, T>{memory.data(), lanes.blocks, dsource});
  };
  if (dy.cols > dx.cols)
    return multiply(std::integral_constant<int, widest<T>>(), local::head_slice{1, dy.cols, 0}, dy);
  warp_detail::in_packs(q, rows_of(a), s, dy, multiply, dx, x);
}

}  // namespace partita::on_cuda
