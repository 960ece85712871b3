// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of dense blocks with a sparse pattern that has one value per entry and head.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/cuda/row_product.hpp"
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

/// Product with weights computed on the fly. Each pack of columns is within one head; the first pack of a
/// head also stores the weights.
template <int Width, class F, class T>
struct applied_product : summing<columns_ahead, pack_of<T, Width>> {
  static constexpr int min_blocks_per_multiprocessor = 2;

  using typename columns_ahead::ahead;
  using sum = pack_of<T, Width>;
  struct term {
    local_index entry;
    pack_of<T, Width> x;
  };

  F f;
  local::head_slice s;
  T* values;
  row_table<T> x;
  T beta;
  matrix_view<T> y;

  constexpr term term_of(local_index e, local_index v) const { return of(e, this->columns[e], v); }
  constexpr void terms_of(const ahead& four, local_index e, local_index v, term (&terms)[4]) const {
    for (int k = 0; k < 4; ++k) terms[k] = of(e + k, four.at[k], v);
  }
  constexpr void add(sum& total, const term& next, local_index row, local_index v) const {
    const local_index h = s.head_of(v * Width);
    const T weight = f(row, next.entry, h);
    if (v == 0 || s.head_of((v - 1) * Width) != h) values[edge_at(next.entry, s.heads, h)] = weight;
    for (int c = 0; c < Width; ++c) total.at[c] += weight * next.x.at[c];
  }
  constexpr void store(const sum& total, local_index row, local_index v) const {
    T* const to = y.row_data(row) + v * Width;
    pack_of<T, Width> result = total;
    if (beta != 0) {
      const pack_of<T, Width> old = load<Width>(to);
      for (int c = 0; c < Width; ++c) result.at[c] += beta * old.at[c];
    }
    on_cuda::store(result, to);
  }

 private:
  constexpr term of(local_index e, local_index column, local_index v) const {
    return {e, load<Width>(x.at(column, v * Width))};
  }
};

namespace edge_product_detail {

template <class T>
void fold(const device_queue<cuda_device>& q, const pattern_rows& a, const local_index* columns,
          const local::head_slice& s, const T* values, const local_index* order,
          const matrix_view<const T>& x, T beta, const matrix_view<T>& y) {
  with_width<widest<T>>(
      y.cols,
      [&]<int pack_width>(std::integral_constant<int, pack_width>) {
        using weights = values_of_heads<T>;
        fold_rows(q, a, y.cols / pack_width, skew(columns, 4),
                  row_product<T, pack_width, weights>{
                      columns, weights{{}, values, order, s.heads, s.head_width, s.first_col, pack_width},
                      table_of(x), local::spmm_epilogue<T>{.beta = beta}, y});
      },
      s, x, y);
}

}  // namespace edge_product_detail

/// As on_host::edge_multiply.
template <class T>
void edge_multiply(const device_queue<cuda_device>& q, local::input_csr<T> a, local::head_slice s,
                   const local::scalar<T>* values, local::input_view<T> x, local::scalar<T> beta,
                   matrix_view<T> y) {
  local::require_edges("edge_multiply", a, s, local::shape_of(x), local::shape_of(y));
  edge_product_detail::fold(q, rows_of(a), a.columns, s, values, nullptr, x, beta, y);
}

/// As on_host::edge_apply_multiply.
template <class F, class T>
void edge_apply_multiply(const device_queue<cuda_device>& q, local::input_csr<T> a, local::head_slice s, F f,
                         local::scalar<T>* values, local::input_view<T> x, local::scalar<T> beta,
                         matrix_view<T> y) {
  local::require_edges("edge_apply_multiply", a, s, local::shape_of(x), local::shape_of(y));
  with_width<widest<T>>(
      y.cols,
      [&]<int pack_width>(std::integral_constant<int, pack_width>) {
        fold_rows(q, rows_of(a), y.cols / pack_width, skew(a.columns, 4),
                  applied_product<pack_width, F, T>{{a.columns}, f, s, values, table_of(x), beta, y});
      },
      s, x, y);
}

/// As on_host::edge_multiply_transposed.
template <class T>
void edge_multiply_transposed(const device_queue<cuda_device>& q, const local::csr_inverse_view& a,
                              local::head_slice s, const local::scalar<T>* values, local::input_view<T> y,
                              local::scalar<T> beta, matrix_view<T> x) {
  local::require_edges("edge_multiply_transposed", a, s, local::shape_of(x), local::shape_of(y));
  edge_product_detail::fold(q, rows_of(a.transposed<T>()), a.entry_rows, s, values, a.entry_numbers, y, beta,
                            x);
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
