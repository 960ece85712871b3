// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Simple graph convolution: Wu et al. (ICML 2019), eq. 8.

#include "partita/nn/linear.hpp"
#include "partita/nn/propagation.hpp"

namespace partita::nn {

/// Z = A^K H W + b (n x out). For a constant H, A^K H is computed once. What travels: K products of the width
/// of H, once for a constant H.
template <class T, class Device>
class sgc_conv final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  sgc_conv(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index out, int hops,
           const builder<T, Device>& b)
      : input_(b.input()), smoothing_(a, in, hops, 0, b), linear_(in, out, b), smoothed_(b.rows(in)) {
    if (input_ == layer_input::varying) gradient_.emplace(b.rows(in));
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    if (!(h.constant() && smoothed_constant_)) smoothing_.forward(h, smoothed_);  // A^K H (n, in)
    smoothed_constant_ = h.constant();
    linear_.forward(smoothed_, z, p);  // (n, out)
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    if (dh != nullptr && !gradient_)
      throw error("sgc_conv was constructed for an input that needs no gradient");
    linear_.backward(smoothed_, dz, dh == nullptr ? nullptr : &*gradient_);  // (n, in)
    if (dh != nullptr) smoothing_.backward(h, *gradient_, dh);               // (A^T)^K (dZ W^T) (n, in)
  }

  global_index width() const override { return linear_.width(); }
  const matrix* hidden() const override { return &smoothed_; }
  bool fuses_relu() const override { return true; }
  traffic predicted() const override {
    return input_ == layer_input::varying ? smoothing_.predicted() : predicted_forward();
  }
  traffic predicted_forward() const override {
    return input_ == layer_input::constant ? traffic{} : smoothing_.predicted_forward();
  }

 private:
  layer_input input_;
  propagation<T, Device> smoothing_;
  linear<T, Device> linear_;
  matrix smoothed_;
  std::optional<matrix> gradient_;
  bool smoothed_constant_ = false;
};

}  // namespace partita::nn
