// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of dense blocks with a sparse pattern that has one value per entry and head.

#include <algorithm>
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

/// values[e, h] = beta values[e, h] + sum_j y(row(e), j) x(col(e), j) over the columns j of head h.
template <int Width, class T>
struct dot_of_entry {
  const local_index* columns;
  local::head_slice s;
  matrix_view<const T> y, x;
  T beta;
  T* values;

  constexpr void operator()(local_index row, local_index e) const {
    const T* const left = y.row_data(row);
    const T* const right = x.row_data(columns[e]);
    local_index j = 0;
    for (local_index h = 0; h < s.heads; ++h) {
      const std::int64_t head_end = (std::int64_t{h} + 1) * s.head_width - s.first_col;
      const auto end = head_end < x.cols ? static_cast<local_index>(head_end) : x.cols;
      pack_of<T, Width> partial{};
      for (; j < end; j += Width) {
        const pack_of<T, Width> u = load<Width>(left + j), v = load<Width>(right + j);
        for (int c = 0; c < Width; ++c) partial.at[c] += u.at[c] * v.at[c];
      }
      T total = 0;
      for (const T part : partial.at) total += part;
      T& value = values[edge_at(e, s.heads, h)];
      value = beta == 0 ? total : total + beta * value;
    }
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
  with_width<widest<T>>(
      x.cols,
      [&](auto width) {
        for_entries(q, rows_of(a), dot_of_entry<decltype(width)::value, T>{a.columns, s, y, x, beta, values});
      },
      s, y, x);
}

}  // namespace partita::on_cuda
