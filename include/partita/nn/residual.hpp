// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A layer with a residual connection: He, Zhang, Ren, Sun (CVPR 2016), eq. 1.

#include <functional>

#include "partita/nn/layer.hpp"

namespace partita::nn {

/// Z = H + layer(H), dH = dZ + the layer's dH (all n x f). What travels: that of the layer.
template <class Layer>
class residual final : public layer<typename Layer::matrix::value_type, typename Layer::matrix::device> {
  using T = typename Layer::matrix::value_type;
  using Device = typename Layer::matrix::device;

 public:
  using matrix = typename Layer::matrix;

  explicit residual(Layer l) : layer_(std::move(l)) { this->share_record(layer_); }

  /// Throws shape_error when the layer's output width differs from its input width.
  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    if (h.shape().cols != width())
      base::throw_error<shape_error>(
          {"a residual layer needs equal input and output widths, not ", h.shape().cols, " and ", width()});
    layer_.forward(h, z, p.alone());
    h.visit([&](const auto& x) {  // (n, f)
      if constexpr (requires { zip(x, z, z, std::plus<>{}); })
        zip(x, z, z, std::plus<>{});
      else
        zip(dense_input_(h), z, z, std::plus<>{});
    });
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    layer_.backward(h, dz, dh);
    if (dh != nullptr) zip(dz, *dh, *dh, std::plus<>{});  // (n, f)
  }

  bool repeats() const override { return layer_.repeats(); }
  global_index width() const override { return layer_.width(); }
  void forget() override { layer_.forget(); }

 private:
  Layer layer_;
  algebra::dense_operand<T, Device> dense_input_;
};

}  // namespace partita::nn
