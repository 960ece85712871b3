#pragma once
/// Sparse times dense with what is fused into it.

#include <algorithm>
#include <type_traits>

#include "partita/local/cpu/edge_parts.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::cpu {

struct spmm_fused_kernels {
  /// y = what spmm_fusion says of a and x. a is (m, k), x is (k, f), y is (m, f); y is not x; a without
  /// values has ones. Throws shape_error when the shapes do not fit.
  template <class T>
  static void spmm_fused(const queue<host>& q, std::type_identity_t<csr_view<T>> a,
                         std::type_identity_t<matrix_view<const T>> x,
                         std::type_identity_t<spmm_fusion<T>> fusion, matrix_view<T> y) {
    require_equal("spmm_fused", "y", shape_of(y), "a x", {a.rows, x.cols});
    require_equal("spmm_fused", "x", shape_of(x), "the x that a needs", {a.cols, x.cols});
    run_entry_rows(q.threads(), a, x.cols, [=](local_index begin, local_index end) {
      for (local_index i = begin; i < end; ++i)
        for (local_index j = 0; j < y.cols; j += strip)
          row_strip(a, x, fusion, i, j, std::min(strip, y.cols - j), y);
    });
  }

 private:
  static constexpr local_index strip = 32;

  /// Columns [j, j + width) of row i.
  template <class T>
  static void row_strip(const csr_view<T>& a, const matrix_view<const T>& x, const spmm_fusion<T>& fusion,
                        local_index i, local_index j, local_index width, const matrix_view<T>& y) {
    T sum[strip] = {};
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
      T weight = a.values == nullptr ? T{1} : a.values[e];
      if (fusion.column_scale != nullptr) weight *= fusion.column_scale[a.columns[e]];
      const T* const from = x.row(a.columns[e]) + j;
      for (local_index c = 0; c < width; ++c) sum[c] += weight * from[c];
    }
    const T factor = fusion.factor_of_row(i);
    for (local_index c = 0; c < width; ++c)
      y(i, j + c) = fusion.finished(factor * sum[c], j + c, y(i, j + c));
  }
};

}  // namespace partita::cpu
