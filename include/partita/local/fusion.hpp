// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Epilogues fused into the sparse-dense product.

namespace partita::local {

/// y(i, j) = act(alpha sum_e v(e) x(col(e), j) + beta y(i, j) + bias[j]) over the entries e of row i, where
/// v(e) are the matrix values and act(z) = max(z, 0) if relu is set, z otherwise. bias may be null; beta = 0
/// overwrites y.
template <class T>
struct spmm_epilogue {
  T alpha = 1;
  T beta = 0;
  const T* bias = nullptr;  // (columns of y)
  bool relu = false;

  /// y(i, j) from the row sum and the old y(i, j).
  constexpr T finished(T sum, int j, const T& old) const {
    sum *= alpha;
    if (beta != 0) sum += beta * old;
    if (bias != nullptr) sum += bias[j];
    return relu && !(sum > 0) ? T{0} : sum;
  }
};

}  // namespace partita::local
