// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The local half of a softmax whose rows may be spread over ranks: maxima come in, sums go out.

#include <cmath>

#include "partita/local/view.hpp"

namespace partita::reference {

/// y(i, j) = exp(x(i, j) - row_maximum[i]) and row_sum[i] = sum_j y(i, j).
template <class T>
void softmax_exp(local::input_view<T> x, const local::scalar<T>* row_maximum, matrix_view<T> y,
                 local::scalar<T>* row_sum) {
  for (local_index i = 0; i < x.rows; ++i) {
    double total = 0;
    for (local_index j = 0; j < x.cols; ++j) {
      y(i, j) = std::exp(x(i, j) - row_maximum[i]);
      total += y(i, j);
    }
    row_sum[i] = static_cast<T>(total);
  }
}

}  // namespace partita::reference
