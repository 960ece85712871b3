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
  using layer<T, Device>::here;

 public:
  using typename layer<T, Device>::matrix;

  sgc_conv(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index out, int hops,
           const builder<T, Device>& b)
      : layer<T, Device>(b),
        smoothing_(a, in, hops, 0, here(), here().uses_of_input()),
        linear_(in, out, here()),
        smoothed_(here().rows(in)) {
    if (here().input() == layer_input::varying) gradient_.emplace(here().rows(in));
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    smoothed_(
        h, [&](const matrix& x, matrix& y) { smoothing_.forward(x, y); }, p.numbers);  // A^K H (n, in)
    linear_.forward(smoothed_.values(), z, p);                                         // (n, out)
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    const bool to_input = this->wants(dh);
    linear_.backward(smoothed_.values(), dz, to_input ? &*gradient_ : nullptr);  // (n, in)
    if (to_input) smoothing_.backward(h, *gradient_, dh);                        // (A^T)^K (dZ W^T) (n, in)
  }

  bool repeats() const override { return true; }
  global_index width() const override { return linear_.width(); }
  const matrix* hidden() const override { return &smoothed_.values(); }

 private:
  propagation<T, Device> smoothing_;
  linear<T, Device> linear_;
  input_product<T, Device> smoothed_;
  std::optional<matrix> gradient_;
};

}  // namespace partita::nn
