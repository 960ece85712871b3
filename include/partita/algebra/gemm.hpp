// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of distributed dense matrices, planned and run once; see gemm_plan.

#include "partita/algebra/gemm_plan.hpp"

namespace partita {

/// C = alpha op(A) op(B) + beta C (m x n = m x k times k x n), op(X) = X or X^T; beta = 0 overwrites C.
/// Collective over the mesh. Communication and exceptions: see gemm_plan.
template <algebra::detail::multiplicand A, algebra::detail::multiplicand B, class T, layout L, class Device>
void gemm(std::type_identity_t<T> alpha, const A& a, const B& b, std::type_identity_t<T> beta,
          dense<T, L, Device>& c, const gemm_options& options = {},
          std::source_location where = std::source_location::current()) {
  static_assert(algebra::detail::alike<A, B, dense<T, L, Device>>,
                "A, B and C of gemm have elements of one type, on one kind of device");
  gemm_plan<T, Device>(a, b, c, options, where)(alpha, a, b, beta, c, where);
}

/// C = op(A) op(B) (m x n = m x k times k x n). C has the layout of one operand if the other is replicated;
/// otherwise its rows are partitioned like the rows of op(A), and its columns, by the remaining axes, like
/// the columns of op(B). It keeps the operands' blocks, or has even blocks if they are transposed. Collective
/// over the mesh. Communication and exceptions: see gemm_plan.
template <algebra::detail::multiplicand A, algebra::detail::multiplicand B>
auto gemm(const A& a, const B& b, const gemm_options& options = {},
          std::source_location where = std::source_location::current()) {
  static_assert(algebra::detail::alike<A, B>,
                "A and B of gemm have elements of one type, on one kind of device");
  using T = algebra::detail::element_of_operand<A>;
  using Device = algebra::detail::device_of_operand<A>;
  const algebra::detail::gemm_operand<T, Device> left(a), right(b);
  const mesh<Device>& m = *left.mesh;
  if (!(m.shape() == right.mesh->shape()))
    base::throw_error<shape_error>({"gemm: A of ", left.blocks.shape(), " is on mesh ", m.shape(), ", B of ",
                                    right.blocks.shape(), " on mesh ", right.mesh->shape()});
  dense<T, algebra::detail::product_layout_of<A, B>, Device> c(
      m, algebra::detail::product_layout(left.axes(), right.axes()),
      left.transposed ? blocking::even(left.shape().rows, m.shape(), nesting::rows) : left.blocks.rows,
      right.transposed ? blocking::even(right.shape().cols, m.shape(), nesting::cols) : right.blocks.cols);
  gemm(T(1), a, b, T(0), c, options, where);
  return c;
}

/// X^T Y (f x g = (n x f)^T times n x g), on every rank: Gram matrices and weight gradients. Collective over
/// the mesh. Communication and exceptions: see gemm_plan.
template <class T, layout X, layout Y, class Device>
dense<T, replicated, Device> inner(const dense<T, X, Device>& x, const dense<T, Y, Device>& y,
                                   std::source_location where = std::source_location::current()) {
  dense<T, replicated, Device> result(x.mesh(), matrix_shape{x.shape().cols, y.shape().cols});  // (f, g)
  gemm(T(1), transposed(x), y, T(0), result, {}, where);
  return result;
}

}  // namespace partita
