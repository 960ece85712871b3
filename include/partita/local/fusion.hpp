// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a sparse product may do on the way, so that it is not done in passes of its own.

namespace partita::local {

/// y(i, j) = cut(alpha sum_e v(e) x(col(e), j) + beta y(i, j) + bias[j]) over the entries e of row i: v are the
/// values of the matrix, bias counts where it is not null, and cut(z) = max(z, 0) where relu is set, z
/// otherwise. beta = 0 overwrites y.
template <class T>
struct spmm_epilogue {
  T alpha = 1;
  T beta = 0;
  const T* bias = nullptr;  // (columns of y)
  bool relu = false;

  /// y(i, j) from the sum over row i's entries and from what y(i, j) was.
  constexpr T finished(T sum, int j, const T& old) const {
    sum *= alpha;
    if (beta != 0) sum += beta * old;
    if (bias != nullptr) sum += bias[j];
    return relu && !(sum > 0) ? T{0} : sum;
  }
};

}  // namespace partita::local
