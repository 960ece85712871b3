// SPDX-License-Identifier: Apache-2.0
#pragma once
/// GraphSAGE with max aggregation: Hamilton, Ying, Leskovec (NeurIPS 2017), algorithm 1 with the aggregator
/// of eq. 3 without its dense layer.

#include "partita/algebra/max_aggregate.hpp"
#include "partita/nn/layer.hpp"

namespace partita::nn {

/// Z = Y W_l + b + H W_r, Y the feature-wise maximum over in-neighbours (n x out, n x in, two weights in x
/// out, 1 x out). What travels: see max_aggregation, of width `in`: forward unless H is constant, backward
/// when H needs a gradient.
template <class T, class Device>
class sage_max_conv final : public layer<T, Device> {
  using layer<T, Device>::here;

 public:
  using typename layer<T, Device>::matrix;

  /// `edges`: any matrix with the pattern; its values are ignored.
  sage_max_conv(const sparse<T, dynamic_layout, Device>& edges, global_index in, global_index out,
                const builder<T, Device>& b)
      : layer<T, Device>(b),
        neighbours_(here().glorot("Wl", {in, out})),
        bias_(here().filled("b", {1, out})),
        own_(here().glorot("Wr", {in, out})),
        maximum_(here().template plan<max_aggregation<T, Device>>(here().uses_of_input(), edges, in)),
        largest_(here().rows(in)) {
    if (here().input() == layer_input::varying) gradient_.emplace(here().rows(in));
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    largest_(h, [&](const matrix& x, matrix& y) { maximum_->forward(x, y); });  // (n, in)
    gemm(largest_.values(), neighbours_.value(), z);                            // (n, out)
    gemm(h, own_.value(), z, p.epilogue_of(&bias_.value(), T(1)));              // + H Wr + b
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    algebra::weight_gradient_part(largest_.values(), dz, neighbours_.gradient(),
                                  &bias_.gradient());       // (in, out), (1, out)
    algebra::weight_gradient_part(h, dz, own_.gradient());  // (in, out)
    if (!this->wants(dh)) return;
    gemm(dz, transposed(neighbours_.value()), *gradient_);  // (n, in)
    maximum_->backward(*gradient_, *dh);                    // (n, in)
    gemm(dz, transposed(own_.value()), *dh, T(1));          // + dZ Wr^T
  }

  global_index width() const override { return own_.shape().cols; }

 private:
  parameter<T, Device>&neighbours_, &bias_, &own_;
  std::shared_ptr<max_aggregation<T, Device>> maximum_;
  input_product<T, Device> largest_;
  std::optional<matrix> gradient_;
};

}  // namespace partita::nn
