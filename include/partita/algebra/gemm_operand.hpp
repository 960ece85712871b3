// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Operands of gemm: dense matrices and their transposes.

#include <concepts>

#include "partita/matrix/dense.hpp"
#include "partita/partition/block_layout.hpp"

namespace partita {

namespace algebra {

/// A^T of a dense A, which must outlive it.
template <class T, layout L, class Device>
struct transposed_dense {
  const dense<T, L, Device>& matrix;
};

}  // namespace algebra

/// A^T, as an operand of gemm; no copy.
template <class T, layout L, class Device>
algebra::transposed_dense<T, L, Device> transposed(const dense<T, L, Device>& a) {
  return {a};
}

namespace algebra::detail {

/// A matrix, or the transpose of one, whatever its layout.
template <class T, class Device>
struct gemm_operand {
  using value_type = T;
  using device = Device;

  template <layout L>
  gemm_operand(const dense<T, L, Device>& x, bool transpose = false)
      : mesh(&x.mesh()),
        blocks{x.row_blocking(), x.col_blocking(), x.layout()},
        transposed(transpose),
        local(x.local()) {}
  template <layout L>
  gemm_operand(const algebra::transposed_dense<T, L, Device>& x) : gemm_operand(x.matrix, true) {}

  /// "A of 3 x 4", "the transpose of A of 4 x 3".
  std::string described(const char* name) const {
    return base::sentence_of({transposed ? "the transpose of " : "", name, " of ", blocks.shape()});
  }
  matrix_shape shape() const {
    const matrix_shape stored = blocks.shape();
    return transposed ? matrix_shape{stored.cols, stored.rows} : stored;
  }
  /// The layout of op(A).
  layout axes() const { return transposed ? layout{blocks.axes.cols, blocks.axes.rows} : blocks.axes; }

  const partita::mesh<Device>* mesh;
  partition::block_layout blocks;
  bool transposed;
  matrix_view<const T> local;
};

template <class T, layout L, class Device>
gemm_operand<T, Device> operand_of(const dense<T, L, Device>& x) {
  return x;
}
template <class T, layout L, class Device>
gemm_operand<T, Device> operand_of(const algebra::transposed_dense<T, L, Device>& x) {
  return x;
}
/// A dense matrix, or the transpose of one.
template <class X>
concept multiplicand = requires(const X& x) {
  detail::operand_of(x);
};
template <multiplicand X>
using element_of_operand = typename decltype(detail::operand_of(std::declval<const X&>()))::value_type;
template <multiplicand X>
using device_of_operand = typename decltype(detail::operand_of(std::declval<const X&>()))::device;

/// Whether elements and devices are the same as those of A.
template <multiplicand A, multiplicand... Others>
inline constexpr bool alike = ((std::same_as<element_of_operand<A>, element_of_operand<Others>> &&
                                std::same_as<device_of_operand<A>, device_of_operand<Others>>)&&...);

/// The layout of op(A), as far as its type gives it.
template <class T, layout L, class Device>
constexpr layout static_layout(const dense<T, L, Device>*) {
  return L;
}
template <class T, layout L, class Device>
constexpr layout static_layout(const algebra::transposed_dense<T, L, Device>*) {
  return L == dynamic_layout ? L : layout{L.cols, L.rows};
}

/// The layout of op(A) op(B): that of one operand if the other is replicated; otherwise rows as in op(A) and
/// columns as in op(B), without the axes that partition the rows.
constexpr layout product_layout(layout a, layout b) {
  if (a == dynamic_layout || b == dynamic_layout) return dynamic_layout;
  if (b.used().empty()) return a;
  if (a.used().empty()) return b;
  return {a.rows, b.cols - a.rows};
}
template <multiplicand A, multiplicand B>
inline constexpr layout product_layout_of = product_layout(static_layout(static_cast<const A*>(nullptr)),
                                                           static_layout(static_cast<const B*>(nullptr)));

}  // namespace algebra::detail

}  // namespace partita
