// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The dense layer, Z = H W + b.

#include "partita/nn/layer.hpp"

namespace partita::nn {

/// Z = H W + b (n x out, n x in, in x out, 1 x out). Local; no communication.
template <class T, class Device>
class linear final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  linear(global_index in, global_index out, const builder<T, Device>& b, const weight_names& names = {})
      : weight_(b.glorot(names.weight, {in, out})), bias_(b.filled(names.bias, {1, out})) {}

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    gemm(h, weight_.value(), z, p.epilogue_of(&bias_.value()));  // (n, out)
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    algebra::weight_gradient_part(h, dz, weight_.gradient(), &bias_.gradient());  // (in, out), (1, out)
    if (dh != nullptr) gemm(dz, transposed(weight_.value()), *dh);                // (n, in)
  }
  /// backward for H = max(Y, 0), giving the gradient of Y.
  void backward_through_relu(const algebra::operand<T, Device>& h, const matrix& dz, matrix& dy) {
    algebra::weight_gradient_part(h, dz, weight_.gradient(), &bias_.gradient());
    algebra::gemm_relu_backward(dz, weight_.value(), h, dy);  // (n, in)
  }

  bool writes_gradients() const override { return true; }
  bool repeats() const override { return true; }
  global_index width() const override { return weight_.shape().cols; }

 private:
  parameter<T, Device>&weight_, &bias_;
};

}  // namespace partita::nn
