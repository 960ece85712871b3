// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of dense operands with what they do to these, by the kernels' names (see pass.hpp). In chunks,
/// sums over rows are sums of the chunks' sums. Weights and biases should be near. X: what the left operand,
/// or what is compared with 0, is stored as: T, or base::bfloat16 where local::stores_bfloat16 is.

#include <utility>

#include "partita/local/chunked_sums.hpp"
#include "partita/local/host/gemm.hpp"

namespace partita::local::chunked {

/// c = alpha op(a) op(b) + beta c. Chunks of the rows of a and c or, where a is transposed and b is not, of a
/// and b, whose products are added.
template <class T, class Device, class X>
void gemm(const device_queue<Device>& q, bool ta, bool tb, scalar<T> alpha, matrix_view<X> a, input_view<T> b,
          scalar<T> beta, matrix_view<T> c) {
  const auto of_rows = [&](auto rows, auto to) { gemm(q, ta, tb, alpha, rows, b, beta, to); };
  const auto of_sums = [&](local_index first, auto left, auto right) {
    gemm(q, ta, tb, alpha, left, right, first == 0 ? beta : T(1), c);
  };
  if (!ta) return by_rows(q, "gemm", of_rows, reads(a), multiplied(result(c, beta), a.cols));
  if (tb) return gemm(q, ta, tb, alpha, a, b, beta, c);
  by_rows(q, "gemm of columns", of_sums, reads(a), multiplied(reads(b), a.cols));
}

template <class T, class Device, class X>
void gemm_relu_backward(const device_queue<Device>& q, input_view<T> dc, input_view<T> b, matrix_view<X> a,
                        matrix_view<T> dz) {
  by_rows(
      q, "gemm", [&](auto gradient, auto rows, auto to) { gemm_relu_backward(q, gradient, b, rows, to); },
      reads(dc), reads(a), multiplied(writes(dz), dc.cols));
}

template <class T, class Device, class X>
void gemm_bias_gradient(const device_queue<Device>& q, matrix_view<X> a, input_view<T> dc, matrix_view<T> db,
                        scalar<T>* dbias) {
  bool first = true;
  detail::sum_over_chunks(
      q, "gemm of columns", matrix_view<T>{dbias, 1, dc.cols, dc.cols},
      [&](auto rows, matrix_view<const T> gradient, T* sums) {
        if (std::exchange(first, false)) return gemm_bias_gradient(q, rows, gradient, db, sums);
        gemm(q, true, false, T(1), rows, gradient, T(1), db);
        column_sums(q, gradient, sums);
      },
      reads(a), multiplied(reads(dc), a.cols));
}

}  // namespace partita::local::chunked
