#pragma once
/// What a sparse product may do on the way, so that it is not done in passes of its own.

namespace partita {

/// y(i, j) = cut(r(i) sum_e v(e) c(col(e)) x(col(e), j) + beta y(i, j) + bias[j]) over the entries e of row
/// i: v are the values of the matrix (1 where it has none), r = row_scale and c = column_scale (1 where
/// null), bias counts where it is not null, and cut(z) = max(z, 0) where relu is set, z otherwise. beta = 0
/// overwrites y. A diagonally scaled pattern D_r P D_c needs no values; a mean over neighbours is row_scale =
/// 1 / degree.
template <class T>
struct spmm_fusion {
  T beta = 0;
  const T* row_scale = nullptr;     // (rows of the matrix)
  const T* column_scale = nullptr;  // (columns of the matrix)
  const T* bias = nullptr;          // (columns of y)
  bool relu = false;

  constexpr T factor_of_row(int i) const { return row_scale == nullptr ? T{1} : row_scale[i]; }
  /// y(i, j) from the sum over row i's entries, times the factor of the row, and from what y(i, j) was.
  constexpr T finished(T sum, int j, const T& old) const {
    if (beta != 0) sum += beta * old;
    if (bias != nullptr) sum += bias[j];
    return relu && !(sum > 0) ? T{0} : sum;
  }
};

}  // namespace partita
