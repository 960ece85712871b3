// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums and maxima over rows, columns and whole blocks.
#include <cmath>

#include "partita/local/view.hpp"

namespace partita::reference {

/// sums[j] = sum_i x(i, j), accumulated in double.
template <class T>
void column_sums(local::input_view<T> x, T* sums) {
  for (local_index j = 0; j < x.cols; ++j) {
    double total = 0;
    for (local_index i = 0; i < x.rows; ++i) total += x(i, j);
    sums[j] = static_cast<T>(total);
  }
}

/// sums[i] = sum_j x(i, j), accumulated in double.
template <class T>
void row_sums(local::input_view<T> x, T* sums) {
  for (local_index i = 0; i < x.rows; ++i) {
    double total = 0;
    for (local_index j = 0; j < x.cols; ++j) total += x(i, j);
    sums[i] = static_cast<T>(total);
  }
}

/// maxima[i] = max_j x(i, j), minus infinity when n = 0.
template <class T>
void row_max(local::input_view<T> x, T* maxima) {
  for (local_index i = 0; i < x.rows; ++i) {
    maxima[i] = -std::numeric_limits<T>::infinity();
    for (local_index j = 0; j < x.cols; ++j)
      if (x(i, j) > maxima[i] || std::isnan(x(i, j))) maxima[i] = x(i, j);
  }
}

/// sum_ij x(i, j), accumulated in double.
template <class T>
std::remove_const_t<T> sum(matrix_view<T> x) {
  double total = 0;
  for (local_index i = 0; i < x.rows; ++i)
    for (local_index j = 0; j < x.cols; ++j) total += x(i, j);
  return static_cast<std::remove_const_t<T>>(total);
}

/// products[j] = sum_i x(i, j) y(i, j), accumulated in double.
template <class T>
void column_dots(local::input_view<T> x, local::input_view<T> y, T* products) {
  for (local_index j = 0; j < x.cols; ++j) {
    double total = 0;
    for (local_index i = 0; i < x.rows; ++i) total += double{x(i, j)} * y(i, j);
    products[j] = static_cast<T>(total);
  }
}

/// sum_ij x(i, j) y(i, j), accumulated in double.
template <class T>
T dot(local::input_view<T> x, local::input_view<T> y) {
  double total = 0;
  for (local_index i = 0; i < x.rows; ++i)
    for (local_index j = 0; j < x.cols; ++j) total += double{x(i, j)} * y(i, j);
  return static_cast<T>(total);
}

}  // namespace partita::reference
