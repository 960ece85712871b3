// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse times dense, as the definition has it.

#include "partita/local/fusion.hpp"
#include "partita/local/view.hpp"

namespace partita::reference {

/// y = what spmm_epilogue says of a and x.
template <class T>
void spmm_fused(local::input_csr<T> a, local::input_view<T> x,
                std::type_identity_t<local::spmm_epilogue<T>> fusion, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) {
      T total = 0;
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) total += a.values[e] * x(a.columns[e], j);
      total *= fusion.alpha;
      if (fusion.beta != 0) total += fusion.beta * y(i, j);
      if (fusion.bias != nullptr) total += fusion.bias[j];
      if (fusion.relu && !(total > 0)) total = 0;
      const local::block_dropout<T>& drop = fusion.drop;
      y(i, j) = drop.of_matrix(drop.first_row + i, drop.first_col + j, total);
    }
}

/// y = a x + beta y.
template <class T>
void spmm(local::input_csr<T> a, local::input_view<T> x, local::scalar<T> beta, matrix_view<T> y) {
  spmm_fused(a, x, {.beta = beta}, y);
}

/// y = alpha a^T x + beta y.
template <class T>
void spmm_transposed(local::input_csr<T> a, local::input_view<T> x, local::scalar<T> alpha,
                     local::scalar<T> beta, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) = beta == 0 ? T{0} : beta * y(i, j);
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
      for (local_index j = 0; j < y.cols; ++j) y(a.columns[e], j) += alpha * a.values[e] * x(i, j);
}

}  // namespace partita::reference
