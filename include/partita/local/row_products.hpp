// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of whole rows of X with a weight that every rank has: what a rank computes is all of it, so that
/// a reproducible queue has them, too.

#include "partita/local/chunked_gemm.hpp"
#include "partita/local/chunked_products.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// The products of a reproducible queue, which finds them: each element is summed in one order, whatever the
/// number of rows and threads.
template <class T, class Device>
class ordered_products {
 public:
  using queue = device_queue<Device>;

  virtual ~ordered_products() = default;

  /// y = the epilogue of x w, or of x w^T.
  virtual void multiply(const queue&, matrix_view<const T> x, matrix_view<const T> w, bool transposed_w,
                        const spmm_epilogue<T>&, matrix_view<T> y) const = 0;
  /// y = the epilogue of x w.
  virtual void multiply(const queue&, const csr_view<T>& x, matrix_view<const T> w, const spmm_epilogue<T>&,
                        matrix_view<T> y) const = 0;
};

template <class T, class Device>
const ordered_products<T, Device>* ordered_products_of(const device_queue<Device>& q) {
  return q.template find<ordered_products<T, Device>>();
}

/// x where h > 0, else 0.
struct where_positive {
  template <class T>
  constexpr T operator()(T x, T h) const {
    return h > T(0) ? x : T(0);
  }
};

/// y = drop(clamp(x w + beta y + bias)), for the epilogue e, whose alpha is 1. X: see chunked_gemm.hpp; a
/// reproducible queue has only products of T.
template <class T, class Device, class X>
void row_product(const device_queue<Device>& q, matrix_view<X> x, input_view<T> w,
                 const std::type_identity_t<spmm_epilogue<T>>& e, matrix_view<T> y) {
  if constexpr (std::is_same_v<const X, const T>)
    if (const auto* const ordered = ordered_products_of<T>(q)) return ordered->multiply(q, x, w, false, e, y);
  const auto block = [&](local_index first, auto rows, auto to) {
    gemm_bias_relu(q, rows, w, e.bias, e.relu, e.beta, to, e.drop.from_row(first));
  };
  by_rows(q, "gemm", block, reads(x), multiplied(result(y, e.beta), x.cols));
}
/// As above, for all rows of a sparse block.
template <class T, class Device>
void row_product(const device_queue<Device>& q, entry_passes<Device>& passes, const csr_view<T>& x,
                 input_view<T> w, const std::type_identity_t<spmm_epilogue<T>>& e, matrix_view<T> y) {
  if (const auto* const ordered = ordered_products_of<T>(q)) return ordered->multiply(q, x, w, e, y);
  chunked::spmm_fused(q, passes, 0, x, w, e, y);
}
/// y = g w^T + beta y.
template <class T, class Device>
void transposed_row_product(const device_queue<Device>& q, input_view<T> g, input_view<T> w, scalar<T> beta,
                            matrix_view<T> y) {
  if (const auto* const ordered = ordered_products_of<T>(q))
    return ordered->multiply(q, g, w, true, {.beta = beta}, y);
  chunked::gemm(q, false, true, T(1), g, w, beta, y);
}
/// y = g w^T where h > 0, and 0 elsewhere. X: as above.
template <class T, class Device, class X>
void transposed_row_product_where(const device_queue<Device>& q, matrix_view<X> h, input_view<T> g,
                                  input_view<T> w, matrix_view<T> y) {
  if constexpr (std::is_same_v<const X, const T>)
    if (const auto* const ordered = ordered_products_of<T>(q)) {
      ordered->multiply(q, g, w, true, {}, y);
      return zip(q, where_positive{}, matrix_view<const T>(y), h, y);
    }
  chunked::gemm_relu_backward(q, g, w, h, y);
}

}  // namespace partita::local
