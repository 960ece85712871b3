// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums and maxima over rows, columns and whole blocks, in an order that depends on the shape alone.

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "partita/base/function.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

/// The sum of n elements in double precision, in eight interleaved partial sums.
template <class T>
inline double sum_of(const T* x, local_index n) {
  constexpr local_index lanes = 8;
  std::array<double, lanes> partial{};
  local_index j = 0;
  for (; j + lanes <= n; j += lanes)
    for (local_index lane = 0; lane < lanes; ++lane) partial[static_cast<std::size_t>(lane)] += x[j + lane];
  double total = 0;
  for (; j < n; ++j) total += x[j];
  for (const double part : partial) total += part;
  return total;
}

/// The largest of n elements, NaN where one is; minus infinity for none.
template <class T>
inline T maximum_of(const T* x, local_index n) {
  T largest = -std::numeric_limits<T>::infinity();
  for (local_index j = 0; j < n; ++j) largest = larger_of{}(largest, x[j]);
  return largest;
}

namespace reduction_detail {

inline constexpr local_index strip = 64;

struct strip_sums {
  std::array<double, strip> column{};

  template <class T>
  void add(const T* x, local_index width) {
    for (local_index c = 0; c < width; ++c) column[static_cast<std::size_t>(c)] += x[c];
  }
  strip_sums& operator+=(const strip_sums& other) {
    add(other.column.data(), strip);
    return *this;
  }
};

}  // namespace reduction_detail

/// sums[j] = sum_i x(i, j), accumulated in double. x is (m, n), sums has n elements. Throws nothing.
template <class T>
inline void column_sums(const device_queue<host>& q, local::input_view<T> x, T* sums) {
  for (local_index j = 0; j < x.cols; j += reduction_detail::strip) {
    const local_index width = std::min(reduction_detail::strip, x.cols - j);
    const reduction_detail::strip_sums total = sum_chunks<reduction_detail::strip_sums>(
        q.threads(), x.rows, width, [=](local_index begin, local_index end) {
          reduction_detail::strip_sums part;
          for (local_index i = begin; i < end; ++i) part.add(x.row_data(i) + j, width);
          return part;
        });
    for (local_index c = 0; c < width; ++c)
      sums[j + c] = static_cast<T>(total.column[static_cast<std::size_t>(c)]);
  }
}

/// sums[i] = sum_j x(i, j), accumulated in double. x is (m, n), sums has m elements. Throws nothing.
template <class T>
inline void row_sums(const device_queue<host>& q, local::input_view<T> x, T* sums) {
  for_rows(q.threads(), x.rows, x.cols,
           [=](local_index i) { sums[i] = static_cast<T>(sum_of(x.row_data(i), x.cols)); });
}

/// maxima[i] = max_j x(i, j), NaN where one is, minus infinity when n = 0. x is (m, n), maxima has m
/// elements. Throws nothing.
template <class T>
inline void row_max(const device_queue<host>& q, local::input_view<T> x, T* maxima) {
  for_rows(q.threads(), x.rows, x.cols,
           [=](local_index i) { maxima[i] = maximum_of(x.row_data(i), x.cols); });
}

/// sum_ij x(i, j), accumulated in double. x is (m, n). Throws nothing.
template <class T>
inline std::remove_const_t<T> sum(const device_queue<host>& q, matrix_view<T> x) {
  return static_cast<std::remove_const_t<T>>(
      sum_chunks<double>(q.threads(), x.rows, x.cols, [=](local_index begin, local_index end) {
        double part = 0;
        for (local_index i = begin; i < end; ++i) part += sum_of(x.row_data(i), x.cols);
        return part;
      }));
}

}  // namespace partita::on_host
