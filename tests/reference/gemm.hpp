// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense times dense, as the definition has it.

#include "partita/local/fusion.hpp"
#include "partita/local/view.hpp"
#include "reference/reductions.hpp"

namespace partita::reference {

/// c = alpha op(a) op(b) + beta c, op(z) = z^T where ta (tb) is set.
template <class T>
void gemm(bool ta, bool tb, local::scalar<T> alpha, local::input_view<T> a, local::input_view<T> b,
          local::scalar<T> beta, matrix_view<T> c) {
  const local_index k = ta ? a.rows : a.cols;
  for (local_index i = 0; i < c.rows; ++i)
    for (local_index j = 0; j < c.cols; ++j) {
      T total = 0;
      for (local_index p = 0; p < k && alpha != 0; ++p)
        total += (ta ? a(p, i) : a(i, p)) * (tb ? b(j, p) : b(p, j));
      c(i, j) = alpha * total + (beta == 0 ? T{0} : beta * c(i, j));
    }
}

/// c(i, j) = sum_p a(i, p) b(p, j) + beta c(i, j) + bias[j], cut at 0 where relu is set, after dropout.
template <class T>
void gemm_bias_relu(local::input_view<T> a, local::input_view<T> b, const local::scalar<T>* bias, bool relu,
                    local::scalar<T> beta, matrix_view<T> c,
                    const std::type_identity_t<local::block_dropout<T>>& drop = {}) {
  gemm(false, false, T{1}, a, b, beta, c);
  for (local_index i = 0; i < c.rows; ++i)
    for (local_index j = 0; j < c.cols; ++j) {
      const T value = c(i, j) + (bias == nullptr ? T{0} : bias[j]);
      c(i, j) = drop.of_matrix(drop.first_row + i, drop.first_col + j, relu && !(value > 0) ? T{0} : value);
    }
}

/// db = a^T dc, dbias[j] = sum_i dc(i, j).
template <class T>
void gemm_bias_gradient(local::input_view<T> a, local::input_view<T> dc, matrix_view<T> db,
                        local::scalar<T>* dbias) {
  gemm(true, false, T{1}, a, dc, T{0}, db);
  column_sums(dc, dbias);
}

/// dz(i, p) = sum_j dc(i, j) b(p, j) where a(i, p) > 0, 0 elsewhere.
template <class T>
void gemm_relu_backward(local::input_view<T> dc, local::input_view<T> b, local::input_view<T> a,
                        matrix_view<T> dz) {
  gemm(false, true, T{1}, dc, b, T{0}, dz);
  for (local_index i = 0; i < dz.rows; ++i)
    for (local_index p = 0; p < dz.cols; ++p)
      if (!(a(i, p) > 0)) dz(i, p) = 0;
}

}  // namespace partita::reference
