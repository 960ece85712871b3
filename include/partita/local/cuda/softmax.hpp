// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Local part of a row softmax distributed over ranks: takes the row maxima, returns the row sums.

#include <cmath>

#include "partita/local/cuda/elementwise.hpp"
#include "partita/local/cuda/reductions.hpp"
#include "partita/local/shapes.hpp"

namespace partita::on_cuda {

template <class T>
struct exponential_below {
  const T* row_maximum;

  constexpr T operator()(local_index i, local_index, T value) const {
    return std::exp(value - row_maximum[i]);
  }
};

/// As on_host::softmax_exp.
template <class T>
void softmax_exp(const device_queue<cuda_device>& q, local::input_view<T> x,
                 const local::scalar<T>* row_maximum, matrix_view<T> y, local::scalar<T>* row_sum) {
  local::require_equal("softmax_exp", "x", local::shape_of(x), "y", local::shape_of(y));
  transform_indexed(q, exponential_below<T>{row_maximum}, x, y);
  row_sums<T>(q, y, row_sum);
}

}  // namespace partita::on_cuda
