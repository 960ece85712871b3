#pragma once
/// The local half of a softmax whose rows may be spread over ranks: maxima come in, sums go out.

#include <cmath>
#include <type_traits>

#include "partita/local/view.hpp"

namespace partita::reference {

/// y(i, j) = exp(x(i, j) - row_maximum[i]) and row_sum[i] = sum_j y(i, j).
template <class T>
void softmax_exp(std::type_identity_t<matrix_view<const T>> x, const std::type_identity_t<T>* row_maximum,
                 matrix_view<T> y, std::type_identity_t<T>* row_sum) {
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
