// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Local part of a row softmax distributed over ranks: takes the row maxima, returns the row sums.

#include <cmath>
#include <cstdint>

#include "partita/local/host/parallel.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

/// y(i, j) = exp(x(i, j) - row_maximum[i]) and row_sum[i] = sum_j y(i, j). x and y are (m, n), y may alias x;
/// row_maximum and row_sum have m elements. Throws shape_error if the shapes differ.
template <class T>
inline void softmax_exp(const device_queue<host>& q, local::input_view<T> x,
                        const local::scalar<T>* row_maximum, matrix_view<T> y, local::scalar<T>* row_sum) {
  local::require_equal("softmax_exp", "x", local::shape_of(x), "y", local::shape_of(y));
  for_rows(q.threads(), x.rows, 8 * std::int64_t{x.cols}, [=](local_index i) {
    double total = 0;
    for (local_index j = 0; j < x.cols; ++j) {
      y(i, j) = std::exp(x(i, j) - row_maximum[i]);
      total += y(i, j);
    }
    row_sum[i] = static_cast<T>(total);
  });
}

}  // namespace partita::on_host
