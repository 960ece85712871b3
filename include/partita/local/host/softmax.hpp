// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Local part of a row softmax distributed over ranks: takes the row maxima, returns the row sums.

#include <cstddef>
#include <cstdint>

#include "partita/local/host/exponential.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace softmax_detail {

template <instruction_set I, class T>
struct exponentials_of_rows {
  matrix_view<const T> x;
  const T* row_maximum;
  matrix_view<T> y;
  T* row_sum;

  void operator()(local_index begin, local_index end) const {
    for (local_index i = begin; i < end; ++i) {
      T* const to = y.row_data(i);
      const T largest = row_maximum[i];
      for (local_index j = 0; j < x.cols; ++j) to[j] = x(i, j) - largest;
      exponentials<I>(to, static_cast<std::size_t>(x.cols));
      double total = 0;
      for (local_index j = 0; j < x.cols; ++j) total += to[j];
      row_sum[i] = static_cast<T>(total);
    }
  }
};

}  // namespace softmax_detail

/// y(i, j) = exp(x(i, j) - row_maximum[i]) and row_sum[i] = sum_j y(i, j). x and y are (m, n), y may alias x;
/// row_maximum and row_sum have m elements. Throws shape_error if the shapes differ.
template <class T>
inline void softmax_exp(const device_queue<host>& q, local::input_view<T> x,
                        const local::scalar<T>* row_maximum, matrix_view<T> y, local::scalar<T>* row_sum) {
  local::require_equal("softmax_exp", "x", local::shape_of(x), "y", local::shape_of(y));
  with_instructions([&](auto instructions) {
    const softmax_detail::exponentials_of_rows<instructions, T> rows{x, row_maximum, y, row_sum};
    run_rows(q.threads(), x.rows, 8 * std::int64_t{x.cols},
             [&](local_index begin, local_index end) { run_with<instructions>(rows, begin, end); });
  });
}

}  // namespace partita::on_host
