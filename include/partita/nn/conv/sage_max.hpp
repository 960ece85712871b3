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
 public:
  using typename layer<T, Device>::matrix;

  /// `edges`: any matrix with the pattern; its values are ignored.
  sage_max_conv(const sparse<T, dynamic_layout, Device>& edges, global_index in, global_index out,
                const builder<T, Device>& b)
      : input_(b.input()),
        neighbours_(b.glorot("Wl", {in, out})),
        bias_(b.filled("b", {1, out})),
        own_(b.glorot("Wr", {in, out})),
        maximum_(edges, in),
        largest_(b.rows(in)) {
    if (input_ == layer_input::varying) gradient_.emplace(b.rows(in));
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    if (!(h.constant() && aggregated_constant_)) maximum_.forward(written_out_(h), largest_);  // (n, in)
    if (h.constant()) written_out_.release();
    aggregated_constant_ = h.constant();
    gemm(largest_, neighbours_.value(), z);                         // (n, out)
    gemm(h, own_.value(), z, p.epilogue_of(&bias_.value(), T(1)));  // + H Wr + b
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    algebra::weight_gradient_part(largest_, dz, neighbours_.gradient(),
                                  &bias_.gradient());       // (in, out), (1, out)
    algebra::weight_gradient_part(h, dz, own_.gradient());  // (in, out)
    if (dh == nullptr) return;
    if (!gradient_) throw error("sage_max_conv was constructed for an input that needs no gradient");
    gemm(dz, transposed(neighbours_.value()), *gradient_);  // (n, in)
    maximum_.backward(*gradient_, *dh);                     // (n, in)
    gemm(dz, transposed(own_.value()), *dh, T(1));          // + dZ Wr^T
  }

  global_index width() const override { return own_.shape().cols; }
  bool fuses_relu() const override { return true; }
  traffic predicted() const override {
    return input_ == layer_input::varying ? maximum_.predicted() : predicted_forward();
  }
  traffic predicted_forward() const override {
    return input_ == layer_input::constant ? traffic{} : maximum_.predicted_forward();
  }

 private:
  layer_input input_;
  parameter<T, Device>&neighbours_, &bias_, &own_;
  max_aggregation<T, Device> maximum_;
  matrix largest_;
  std::optional<matrix> gradient_;
  algebra::dense_operand<T, Device> written_out_;
  bool aggregated_constant_ = false;
};

}  // namespace partita::nn
