#pragma once
/// Sparse times dense where rows and columns are scaled, or the matrix has no values.

#include <algorithm>

#include "partita/local/fusion.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace spmm_scaled {

inline constexpr local_index strip = 32;

/// Columns [j, j + width) of row i.
template <class T>
void row_strip(const csr_view<T>& a, const matrix_view<const T>& x, const spmm_fusion<T>& fusion,
               local_index i, local_index j, local_index width, const matrix_view<T>& y) {
  T sum[strip] = {};
  for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
    T weight = a.values == nullptr ? T{1} : a.values[e];
    if (fusion.column_scale != nullptr) weight *= fusion.column_scale[a.columns[e]];
    const T* const from = x.row(a.columns[e]) + j;
    for (local_index c = 0; c < width; ++c) sum[c] += weight * from[c];
  }
  const T factor = fusion.factor_of_row(i);
  for (local_index c = 0; c < width; ++c) y(i, j + c) = fusion.finished(factor * sum[c], j + c, y(i, j + c));
}

/// y = what spmm_fusion says of a and x. a is (m, k), x is (k, f), y is (m, f) and not x; shapes must fit.
/// Throws nothing.
template <class T>
void multiply(const queue<host>& q, const csr_view<T>& a, const matrix_view<const T>& x,
              const spmm_fusion<T>& fusion, const matrix_view<T>& y) {
  run_entry_rows(q.threads(), a, x.cols, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i)
      for (local_index j = 0; j < y.cols; j += strip)
        row_strip(a, x, fusion, i, j, std::min(strip, y.cols - j), y);
  });
}

}  // namespace spmm_scaled

}  // namespace partita::on_host
