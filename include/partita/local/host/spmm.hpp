// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse-dense product. Each row of y is computed in strips of columns accumulated in registers over the
/// row's entries; rows of x are prefetched some entries ahead, since the product is bound by memory access to
/// x.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/local/fusion.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace spmm_detail {

template <class T>
struct product {
  local::csr_view<T> a;
  matrix_view<const T> x;
  T alpha, beta;
  matrix_view<T> y;
  local::spmm_epilogue<T> rest;  ///< bias and relu

  /// Rows [begin, end) of y.
  void operator()(local_index begin, local_index end) const;
};

template <int Width, class T>
inline void store(const T (&sum)[Width], int skip, T alpha, T beta, T* y) {
  if (beta == 0)
    for (int j = skip; j < Width; ++j) y[j] = alpha * sum[j];
  else
    for (int j = skip; j < Width; ++j) y[j] = alpha * sum[j] + beta * y[j];
}

/// Columns [first, first + width) of rows [begin, end), of which the first `skip` are already computed; width
/// is a power of two, at most Width.
template <int Width, class T>
inline void strip(local_index width, const product<T>& p, local_index begin, local_index end,
                  local_index first, local_index skip) {
  if constexpr (Width > 1)
    if (width < Width) return strip<Width / 2>(width, p, begin, end, first, skip);
  constexpr local_index ahead = Width * sizeof(T) <= 128 ? 32 : 16;
  const local_index last = p.a.offsets[p.a.rows] - 1;
  const T* const x = p.x.data + first;
  for (local_index i = begin; i < end; ++i) {
    T sum[Width] = {};
    const local_index row_end = p.a.offsets[i + 1];
    for (local_index e = p.a.offsets[i]; e < row_end; ++e) {
      prefetch(x + p.a.columns[e < last - ahead ? e + ahead : last] * p.x.row_stride, Width);
      const T value = p.a.values[e];
      const T* const from = x + p.a.columns[e] * p.x.row_stride;
      for (int j = 0; j < Width; ++j) sum[j] += value * from[j];
    }
    store<Width>(sum, static_cast<int>(skip), p.alpha, p.beta, p.y.row_data(i) + first);
  }
}

/// Covers the columns with strips. The last strip may overlap columns already computed, which it does not
/// store.
template <class T>
void product<T>::operator()(local_index begin, local_index end) const {
  for (local_index i = begin; i < end; i += row_block) {
    const local_index block_end = std::min(i + row_block, end);
    for (local_index done = 0; done < y.cols;) {
      const local_index width = strip_width<T>(y.cols, y.cols - done);
      const local_index first = std::min(done, y.cols - width);
      strip<widest_strip<T>>(width, *this, i, block_end, first, done - first);
      done = first + width;
    }
    if (rest.bias == nullptr && !rest.relu) continue;
    for (local_index row = i; row < block_end; ++row)
      for (local_index j = 0; j < y.cols; ++j) y(row, j) = rest.finished(y(row, j), j, T{0});
  }
}

template <class T>
inline void multiply(const char* name, const device_queue<host>& q, const local::csr_view<T>& a,
                     const matrix_view<const T>& x, const local::spmm_epilogue<T>& fusion,
                     const matrix_view<T>& y) {
  local::require_product(name, a, x, y, "a x");
  const product<T> p{a, x, fusion.alpha, fusion.beta, y, {.bias = fusion.bias, .relu = fusion.relu}};
  run_entry_rows(q.threads(), a, y.cols, p);
}

}  // namespace spmm_detail

/// y = a x + beta y; beta = 0 overwrites y. a is (m, k) with values, x is (k, f), y is (m, f) and must not
/// alias x. Throws shape_error if the shapes do not match.
template <class T>
inline void spmm(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                 local::scalar<T> beta, matrix_view<T> y) {
  spmm_detail::multiply<T>("spmm", q, a, x, {.beta = beta}, y);
}

/// Product with fused epilogue, as defined by spmm_epilogue. a is (m, k) with values, x is (k, f), y is (m,
/// f) and must not alias x. Throws shape_error if the shapes do not match.
template <class T>
inline void spmm_fused(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                       std::type_identity_t<local::spmm_epilogue<T>> fusion, matrix_view<T> y) {
  spmm_detail::multiply<T>("spmm_fused", q, a, x, fusion, y);
}

}  // namespace partita::on_host
