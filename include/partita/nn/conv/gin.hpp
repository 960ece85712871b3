// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph isomorphism network: Xu, Hu, Leskovec, Jegelka (ICLR 2019), eq. 4.1, with fixed epsilon.

#include "partita/nn/conv/gcn.hpp"
#include "partita/nn/linear.hpp"

namespace partita::nn {

/// Z = relu(S H W_a + b_a) W_b + b_b, S = A + (1 + epsilon) I (n x out; the inner width is also `out`).
///
/// S H W_a + b_a is a single graph convolution. What travels: see gcn_conv.
template <class T, class Device>
class gin_conv final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  gin_conv(const sparse<T, dynamic_layout, Device>& sum, global_index in, global_index out,
           const builder<T, Device>& b)
      : layer<T, Device>(b),
        first_(sum, in, out, this->here(), {"Wa", "ba"}),
        second_(out, out, b, {"Wb", "bb"}),
        inner_(b.kept(sum.row_blocking(), out)),
        inner_gradient_(b.rows(sum.row_blocking(), out)) {}

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    matrix& inner = inner_.place(&inner_gradient_);
    first_.forward(h, inner, p.fusing(true, {}));  // relu(S H Wa + ba) (n, out)
    inner_.keep(inner);
    second_.forward(inner_.read(), z, p);  // (n, out)
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    second_.backward_through_relu(inner_.read(), dz, inner_gradient_);  // (n, out)
    first_.backward(h, inner_gradient_, dh);                            // (n, in)
  }

  global_index width() const override { return second_.width(); }

 private:
  gcn_conv<T, Device> first_;
  linear<T, Device> second_;
  algebra::kept_matrix<T, Device> inner_;
  matrix inner_gradient_;
};

}  // namespace partita::nn
