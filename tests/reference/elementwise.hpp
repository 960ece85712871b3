// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Functions of single elements, and of elements and a value of their row or column.

#include "partita/local/view.hpp"

namespace partita::reference {

/// y(i, j) = f(x(i, j)).
template <class F, class T>
void transform(F f, local::input_view<T> x, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) = f(x(i, j));
}

/// y(i, j) = f(i, j, x(i, j)).
template <class F, class T>
void transform_indexed(F f, local::input_view<T> x, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) = f(i, j, x(i, j));
}

/// y(i, j) = f(a(i, j), b(i, j)).
template <class F, class T>
void zip(F f, local::input_view<T> a, local::input_view<T> b, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) = f(a(i, j), b(i, j));
}

/// y(i, j) += bias[j].
template <class T>
void add_row(const local::scalar<T>* bias, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) += bias[j];
}

/// y(i, j) /= divisors[i].
template <class T>
void divide_rows(const local::scalar<T>* divisors, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) /= divisors[i];
}

}  // namespace partita::reference
