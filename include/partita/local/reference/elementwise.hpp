#pragma once
/// Functions of single elements, and of elements and a value of their row or column.

#include <type_traits>

#include "partita/local/view.hpp"

namespace partita::reference {

/// y(i, j) = f(x(i, j)).
template <class F, class T>
void transform(F f, std::type_identity_t<matrix_view<const T>> x, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) = f(x(i, j));
}

/// y(i, j) = f(i, j, x(i, j)).
template <class F, class T>
void transform_indexed(F f, std::type_identity_t<matrix_view<const T>> x, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) = f(i, j, x(i, j));
}

/// y(i, j) = f(a(i, j), b(i, j)).
template <class F, class T>
void zip(F f, std::type_identity_t<matrix_view<const T>> a, std::type_identity_t<matrix_view<const T>> b,
         matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) = f(a(i, j), b(i, j));
}

/// y(i, j) += bias[j].
template <class T>
void add_row(const std::type_identity_t<T>* bias, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) += bias[j];
}

/// y(i, j) *= factors[i].
template <class T>
void scale_rows(const std::type_identity_t<T>* factors, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) *= factors[i];
}

/// y(i, j) /= divisors[i].
template <class T>
void divide_rows(const std::type_identity_t<T>* divisors, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) /= divisors[i];
}

}  // namespace partita::reference
