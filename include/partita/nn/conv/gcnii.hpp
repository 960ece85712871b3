// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Deep graph convolutions with initial residual and identity mapping: Chen et al. (ICML 2020), eq. 5.

#include <cmath>

#include "partita/base/function.hpp"
#include "partita/nn/layer.hpp"

namespace partita::nn {

/// Z = (1 - beta) S + beta S W, S = (1 - alpha) A H + alpha H_0, beta = log(lambda / l + 1) (all n x f; W f x
/// f), H_0 the output of an earlier layer of the model. Eq. 5 is relu(Z) of layer l = 1, 2, ...
///
/// What travels: a product with A and one with A^T, of width f.
template <class T, class Device>
class gcnii_conv final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  /// `first`: of the skip_source of H_0.
  gcnii_conv(const sparse<T, dynamic_layout, Device>& a, std::shared_ptr<skip_connection<T, Device>> first,
             int l, double alpha, double lambda, const builder<T, Device>& b)
      : layer<T, Device>(b),
        first_(std::move(first)),
        keep_(static_cast<T>(1 - alpha)),
        initial_(static_cast<T>(alpha)),
        beta_(static_cast<T>(std::log(lambda / l + 1))),
        weight_(weight_of(*first_, l, b)),
        product_(this->here().product(a, width())),
        transposed_product_(this->here().transposed_product(a, width())),
        s_(b.kept(a.row_blocking(), width())),
        ds_(b.scratch(width())) {}

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass&) override {
    matrix& s = s_.place(ds_.get());
    if (auto* const stored = h.stored())
      product_->of_stored(*stored, s);  // A H (n, f)
    else
      (*product_)(dense_input_(h), s);
    zip(s, *first_->value, s, base::linear_combination<T>{keep_, initial_});  // S (n, f)
    s_.keep(s);
    gemm(s_.read(), weight_.value(), z);                          // S W (n, f)
    zip(s, z, z, base::linear_combination<T>{1 - beta_, beta_});  // (n, f)
  }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    algebra::weight_gradient_part(s_.read(), dz, weight_.gradient());           // S^T dZ (f, f)
    transform(weight_.gradient(), weight_.gradient(), base::scaled<T>{beta_});  // beta S^T dZ
    gemm(dz, transposed(weight_.value()), *ds_);                                // dZ W^T (n, f)
    zip(dz, *ds_, *ds_, base::linear_combination<T>{1 - beta_, beta_});         // dS (n, f)
    matrix& d_first = first_->gradient;
    zip(d_first, *ds_, d_first, base::linear_combination<T>{1, initial_});  // dH_0 += alpha dS
    if (dh == nullptr) return;
    transform(*ds_, *ds_, base::scaled<T>{keep_});
    (*transposed_product_)(*ds_, *dh);  // A^T (1 - alpha) dS (n, f)
  }

  global_index width() const override { return first_->gradient.shape().cols; }

 private:
  static parameter<T, Device>& weight_of(skip_connection<T, Device>& first, int l,
                                         const builder<T, Device>& b) {
    b.read(first);
    const global_index width = first.gradient.shape().cols;
    return b.named(std::to_string(l)).glorot("W", {width, width});
  }

  std::shared_ptr<skip_connection<T, Device>> first_;
  T keep_, initial_, beta_;
  parameter<T, Device>& weight_;
  std::shared_ptr<graph_product<T, Device>> product_, transposed_product_;
  algebra::kept_matrix<T, Device> s_;
  std::shared_ptr<matrix> ds_;
  algebra::dense_operand<T, Device> dense_input_;
};

}  // namespace partita::nn
