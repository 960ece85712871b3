// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A product with the input of a layer, computed once for an input that is constant.

#include <optional>

#include "partita/algebra/operand.hpp"
#include "partita/nn/graph_product.hpp"

namespace partita::nn {

/// Y = f(X), X the input of a layer (n x f, n x f). Collective over the mesh. What travels: that of f, in the
/// first call with a constant X, in every call with others.
template <class T, class Device>
class input_product {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using operand = algebra::operand<T, Device>;

  /// `y`: where f(X) is put.
  explicit input_product(matrix y) : y_(std::move(y)) {}

  /// f(x), with f(const matrix& x, matrix& y).
  template <class F>
  const matrix& operator()(const operand& x, F&& f) {
    if (!(x.constant() && constant_)) f(dense_input_(x), y_);
    if (x.constant()) dense_input_.release();
    constant_ = x.constant();
    return y_;
  }
  /// A x, also of column slices.
  operand operator()(const operand& x, graph_product<T, Device>& a) {
    if (auto* const slices = x.slices())
      last_ = slices->aggregated();
    else
      last_ = operator()(x, [&](const matrix& whole, matrix& y) { a(whole, y); });
    return *last_;
  }

  /// What the last call gave; that of A x.
  const matrix& values() const { return y_; }
  const operand& last() const { return *last_; }

 private:
  matrix y_;
  algebra::dense_operand<T, Device> dense_input_;
  std::optional<operand> last_;
  bool constant_ = false;
};

}  // namespace partita::nn
