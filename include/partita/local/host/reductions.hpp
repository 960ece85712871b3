// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums, inner products and maxima over rows, columns and whole blocks. The summation order depends only on
/// the shape.

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "partita/base/function.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

/// Sum of term(0), ..., term(n - 1) in double precision, in eight interleaved partial sums.
template <class Term>
inline double sum_of_terms(std::ptrdiff_t n, Term term) {
  constexpr std::ptrdiff_t lanes = 8;
  std::array<double, lanes> partial{};
  std::ptrdiff_t j = 0;
  for (; j + lanes <= n; j += lanes)
    for (std::ptrdiff_t lane = 0; lane < lanes; ++lane)
      partial[static_cast<std::size_t>(lane)] += term(j + lane);
  double total = 0;
  for (; j < n; ++j) total += term(j);
  for (const double part : partial) total += part;
  return total;
}
template <class T>
inline double sum_of(const T* x, std::ptrdiff_t n) {
  return sum_of_terms(n, [=](std::ptrdiff_t j) { return static_cast<double>(x[j]); });
}
template <class T>
inline double dot_of(const T* x, const T* y, std::ptrdiff_t n) {
  return sum_of_terms(n, [=](std::ptrdiff_t j) { return static_cast<double>(x[j]) * y[j]; });
}

/// Maximum of n elements, NaN if any is NaN; minus infinity for n = 0.
template <class T>
inline T maximum_of(const T* x, local_index n) {
  T largest = -std::numeric_limits<T>::infinity();
  for (local_index j = 0; j < n; ++j) largest = base::larger_of{}(largest, x[j]);
  return largest;
}

namespace reduction_detail {

inline constexpr local_index strip = 64;

struct strip_sums {
  std::array<double, strip> column{};

  template <class Term>
  void add(local_index width, Term term) {
    for (local_index c = 0; c < width; ++c) column[static_cast<std::size_t>(c)] += term(c);
  }
  strip_sums& operator+=(const strip_sums& other) {
    add(strip, [&](local_index c) { return other.column[static_cast<std::size_t>(c)]; });
    return *this;
  }
};

/// sums[j] = sum_i term(i, j) for terms of shape (rows, cols).
template <class T, class Term>
inline void sum_columns(const device_queue<host>& q, local_index rows, local_index cols, Term term, T* sums) {
  for (local_index j = 0; j < cols; j += strip) {
    const local_index width = std::min(strip, cols - j);
    const strip_sums total =
        sum_by_blocks<strip_sums>(q.threads(), rows, width, [=](local_index begin, local_index end) {
          strip_sums part;
          for (local_index i = begin; i < end; ++i)
            part.add(width, [=](local_index c) { return term(i, j + c); });
          return part;
        });
    for (local_index c = 0; c < width; ++c)
      sums[j + c] = static_cast<T>(total.column[static_cast<std::size_t>(c)]);
  }
}

/// The sum over a block (rows, cols) of what of_run(i, n) sums: n consecutive elements from the beginning of
/// row i on, which are one row, or several where rows are contiguous.
template <class Run>
inline double sum_runs(const device_queue<host>& q, local_index rows, local_index cols, bool contiguous,
                       Run of_run) {
  return sum_by_blocks<double>(q.threads(), rows, cols, [=](local_index begin, local_index end) {
    if (contiguous) return of_run(begin, std::ptrdiff_t{end - begin} * cols);
    double part = 0;
    for (local_index i = begin; i < end; ++i) part += of_run(i, cols);
    return part;
  });
}

}  // namespace reduction_detail

/// sums[j] = sum_i x(i, j), accumulated in double. x is (m, n), sums has n elements.
template <class T>
inline void column_sums(const device_queue<host>& q, local::input_view<T> x, T* sums) {
  memory::refuse_reproducible(q, "column_sums");
  reduction_detail::sum_columns(
      q, x.rows, x.cols, [=](local_index i, local_index j) { return static_cast<double>(x(i, j)); }, sums);
}

/// products[j] = sum_i x(i, j) y(i, j), accumulated in double. x and y are (m, n), products has n elements.
/// Throws shape_error if the shapes differ.
template <class T>
inline void column_dots(const device_queue<host>& q, local::input_view<T> x, local::input_view<T> y,
                        T* products) {
  memory::refuse_reproducible(q, "column_dots");
  local::require_equal("column_dots", "x", local::shape_of(x), "y", local::shape_of(y));
  reduction_detail::sum_columns(
      q, x.rows, x.cols, [=](local_index i, local_index j) { return static_cast<double>(x(i, j)) * y(i, j); },
      products);
}

/// sums[i] = sum_j x(i, j), accumulated in double. x is (m, n), sums has m elements.
template <class T>
inline void row_sums(const device_queue<host>& q, local::input_view<T> x, T* sums) {
  for_rows(q.threads(), x.rows, x.cols,
           [=](local_index i) { sums[i] = static_cast<T>(sum_of(x.row_data(i), x.cols)); });
}

/// maxima[i] = max_j x(i, j), NaN if any element is NaN, minus infinity if n = 0. x is (m, n), maxima has m
/// elements.
template <class T>
inline void row_max(const device_queue<host>& q, local::input_view<T> x, T* maxima) {
  for_rows(q.threads(), x.rows, x.cols,
           [=](local_index i) { maxima[i] = maximum_of(x.row_data(i), x.cols); });
}

/// sum_ij x(i, j), accumulated in double. x is (m, n).
template <class T>
inline std::remove_const_t<T> sum(const device_queue<host>& q, matrix_view<T> x) {
  memory::refuse_reproducible(q, "sum");
  return static_cast<std::remove_const_t<T>>(
      reduction_detail::sum_runs(q, x.rows, x.cols, x.row_stride == x.cols,
                                 [=](local_index i, std::ptrdiff_t n) { return sum_of(x.row_data(i), n); }));
}

/// sum_ij x(i, j) y(i, j), accumulated in double. x and y are (m, n). Throws shape_error when the shapes
/// differ.
template <class T>
inline std::remove_const_t<T> dot(const device_queue<host>& q, matrix_view<T> x,
                                  std::type_identity_t<matrix_view<T>> y) {
  memory::refuse_reproducible(q, "dot");
  local::require_equal("dot", "x", local::shape_of(x), "y", local::shape_of(y));
  return static_cast<std::remove_const_t<T>>(reduction_detail::sum_runs(
      q, x.rows, x.cols, x.row_stride == x.cols && y.row_stride == y.cols,
      [=](local_index i, std::ptrdiff_t n) { return dot_of(x.row_data(i), y.row_data(i), n); }));
}

}  // namespace partita::on_host
