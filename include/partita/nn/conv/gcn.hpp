// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph convolution of Kipf and Welling (ICLR 2017), eq. 2.

#include "partita/nn/layer.hpp"

namespace partita::nn {

/// Z = A H W + b (n x out, n x in, in x out, 1 x out), as A (H W) or (A H) W: see builder::cheaper_order.
/// What travels: products with A and with A^T of the width in this order, none for a constant A H.
template <class T, class Device>
class gcn_conv final : public layer<T, Device> {
  using layer<T, Device>::here;

 public:
  using typename layer<T, Device>::matrix;

  /// An empty bias name means no bias.
  gcn_conv(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index out,
           const builder<T, Device>& b, const weight_names& names = {})
      : layer<T, Device>(b),
        order_(here().cheaper_order(a, in, out)),
        weight_(here().glorot(names.weight, {in, out})),
        bias_(names.bias.empty() ? nullptr : &here().filled(names.bias, {1, out})),
        product_(order_.aggregates_first ? here().product_of_input(a, in) : here().product(a, out)) {
    if (order_.aggregates_first)
      aggregated_.emplace(here().kept(a.row_blocking(), in));
    else
      transformed_.emplace(here().rows(a.col_blocking(), out));
    if (order_.aggregates_first && here().input() != layer_input::varying) return;
    const global_index back = order_.narrow_backward ? in : out;
    transposed_product_ = here().transposed_product(a, back);
    backward_.emplace(here().rows(order_.narrow_backward ? a.row_blocking() : a.col_blocking(), back));
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    const auto end = p.epilogue_of(bias_ == nullptr ? nullptr : &bias_->value());
    if (aggregated_)
      return gemm((*aggregated_)(h, *product_, p.numbers), weight_.value(), z, end);  // (A H) W (n, out)
    gemm(h, weight_.value(), *transformed_);                                          // H W (n, out)
    product_->apply(*transformed_, z, end);                                           // A (H W) (n, out)
  }

  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    auto* const bias_gradient = bias_ == nullptr ? nullptr : &bias_->gradient();  // (1, out)
    if (aggregated_) {
      algebra::weight_gradient_part(aggregated_->last(), dz, weight_.gradient(),
                                    bias_gradient);  // (A H)^T dZ (in, out)
      if (!this->wants(dh)) return;
    } else if (bias_gradient != nullptr) {
      algebra::column_sums_part(dz, *bias_gradient);
    }
    if (order_.narrow_backward) {
      gemm(dz, transposed(weight_.value()), *backward_);  // dZ W^T (n, in)
      return (*transposed_product_)(*backward_, *dh);     // A^T (dZ W^T) (n, in)
    }
    (*transposed_product_)(dz, *backward_);                                              // A^T dZ (n, out)
    if (!aggregated_) algebra::weight_gradient_part(h, *backward_, weight_.gradient());  // H^T (A^T dZ)
    if (dh != nullptr) gemm(*backward_, transposed(weight_.value()), *dh);               // (n, in)
  }

  bool writes_gradients() const override { return true; }
  bool repeats() const override { return true; }
  global_index width() const override { return weight_.shape().cols; }

 private:
  product_order order_;
  parameter<T, Device>& weight_;
  parameter<T, Device>* bias_;
  std::shared_ptr<graph_product<T, Device>> product_, transposed_product_;
  std::optional<input_product<T, Device>> aggregated_;  ///< A H
  std::optional<matrix> transformed_, backward_;        ///< H W; A^T dZ or dZ W^T
};

}  // namespace partita::nn
