// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The layer whose output later layers read beside their input.

#include <functional>

#include "partita/nn/layer.hpp"

namespace partita::nn {

/// Z = H, also read by later layers of the model; dH = dZ + the gradients that they add (all n x f). Local;
/// no communication.
template <class T, class Device>
class skip_source final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  skip_source(global_index width, const builder<T, Device>& b) : skip_(b.skip(width)) {}

  /// For the constructors of the layers that read it.
  const std::shared_ptr<skip_connection<T, Device>>& skip() const { return skip_; }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass&) override {
    copy(h, z);
    skip_->value = &z;
    fill(skip_->gradient, T(0));
  }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    if (dh != nullptr) zip(dz, skip_->gradient, *dh, std::plus<>{});  // (n, f)
  }
  global_index width() const override { return skip_->gradient.shape().cols; }

 private:
  std::shared_ptr<skip_connection<T, Device>> skip_;
};

}  // namespace partita::nn
