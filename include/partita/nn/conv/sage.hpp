// SPDX-License-Identifier: Apache-2.0
#pragma once
/// GraphSAGE with mean aggregation: Hamilton, Ying, Leskovec (NeurIPS 2017), algorithm 1.

#include "partita/nn/conv/gcn.hpp"

namespace partita::nn {

/// Z = M H W_l + b + H W_r, M the mean over in-neighbours (n x out, n x in, two weights in x out, 1 x out).
/// What travels: see gcn_conv, for M H W_l.
template <class T, class Device>
class sage_conv final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  sage_conv(const sparse<T, dynamic_layout, Device>& mean, global_index in, global_index out,
            const builder<T, Device>& b)
      : layer<T, Device>(b),
        neighbours_(mean, in, out, this->here(), {"Wl", ""}),
        bias_(b.filled("b", {1, out})),
        own_(b.glorot("Wr", {in, out})) {}

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    const algebra::operand<T, Device>& targets = targets_(h, z.row_blocking());
    neighbours_.forward(h, z, p.alone());                                 // M H Wl (n, out)
    gemm(targets, own_.value(), z, p.epilogue_of(&bias_.value(), T(1)));  // + H Wr + b
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    neighbours_.backward(h, dz, dh);  // (n, in)
    algebra::weight_gradient_part(targets_(h, dz.row_blocking()), dz, own_.gradient(),
                                  &bias_.gradient());  // (in, out), (1, out)
    if (dh == nullptr) return;
    matrix of_targets = first_rows(*dh, dz.row_blocking());
    gemm(dz, transposed(own_.value()), of_targets, T(1));  // + dZ Wr^T
  }

  bool writes_gradients() const override { return true; }
  bool repeats() const override { return true; }
  global_index width() const override { return own_.shape().cols; }

 private:
  gcn_conv<T, Device> neighbours_;
  parameter<T, Device>&bias_, &own_;
  algebra::first_rows_operand<T, Device> targets_;
};

}  // namespace partita::nn
