// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Epilogues fused into products.

#include "partita/base/random.hpp"

namespace partita::local {

/// Dropout of a block whose entry (0, 0) is entry (first_row, first_col) of a matrix; none by default.
template <class T>
struct block_dropout {
  base::dropped<T> of_matrix;
  global_index first_row = 0, first_col = 0;

  constexpr bool drops() const { return of_matrix.threshold != 0; }
  constexpr T operator()(local_index i, local_index j, T x) const {
    return of_matrix(first_row + i, first_col + j, x);
  }
  /// Of the rows, or columns, of the block from this one on.
  constexpr block_dropout from_row(local_index row) const { return {of_matrix, first_row + row, first_col}; }
  constexpr block_dropout from_column(local_index col) const {
    return {of_matrix, first_row, first_col + col};
  }
};

/// y(i, j) = drop(act(alpha sum_e v(e) x(col(e), j) + beta y(i, j) + bias[j])) over the entries e of row i,
/// where v(e) are the matrix values and act(z) = max(z, 0) if relu is set, z otherwise. bias may be null;
/// beta = 0 overwrites y.
template <class T>
struct spmm_epilogue {
  T alpha = 1;
  T beta = 0;
  const T* bias = nullptr;  // (columns of y)
  bool relu = false;
  block_dropout<T> drop = {};

  /// Whether it is more than scaling and adding.
  constexpr bool has_activation() const { return bias != nullptr || relu || drop.drops(); }
  /// Of a product that is not the last one added to y.
  constexpr spmm_epilogue without_activation() const { return {alpha, beta}; }
  /// Of the rows, or columns, of y from this one on.
  constexpr spmm_epilogue from_row(local_index row) const {
    return {alpha, beta, bias, relu, drop.from_row(row)};
  }
  constexpr spmm_epilogue from_column(local_index col) const {
    return {alpha, beta, bias == nullptr ? nullptr : bias + col, relu, drop.from_column(col)};
  }

  /// y(i, j) from the row sum and the old y(i, j).
  constexpr T finished(T sum, local_index i, local_index j, const T& old) const {
    sum = cut(sum, j, old);
    return drop.drops() ? drop(i, j, sum) : sum;
  }
  /// The same before dropout.
  constexpr T cut(T sum, local_index j, const T& old) const {
    sum *= alpha;
    if (beta != 0) sum += beta * old;
    if (bias != nullptr) sum += bias[j];
    return relu && !(sum > 0) ? T{0} : sum;
  }
};

}  // namespace partita::local
