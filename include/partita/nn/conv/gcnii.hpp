// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Deep graph convolutions with initial residual and identity mapping: Chen et al. (ICML 2020), eq. 5.

#include <cmath>
#include <functional>

#include "partita/base/function.hpp"
#include "partita/nn/activation.hpp"

namespace partita::nn {

/// T_l = (1 - alpha) A H_(l-1) + alpha H_0; H_l = relu((1 - beta_l) T_l + beta_l T_l W_l), beta_l =
/// log(lambda / l + 1), l = 1..L, H_0 = H; Z = H_L (all n x f; W_l f x f). Dropout after every relu.
///
/// What travels: 2 L products with A or A^T, of width f.
template <class T, class Device>
class gcnii_convs final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  /// Parameters W1 ... WL.
  gcnii_convs(const sparse<T, dynamic_layout, Device>& a, global_index width, int layers, double alpha,
              double lambda, const builder<T, Device>& b)
      : keep_(static_cast<T>(1 - alpha)),
        initial_(static_cast<T>(alpha)),
        product_(a, vertex_rows, b.columns(width), b.options().products),
        transposed_product_(transposed(a), vertex_rows, b.columns(width), b.options().products),
        mixed_(b.rows(width)),
        g_(b.rows(width)),
        first_gradient_(b.rows(width)) {
    for (int l = 1; l <= layers; ++l)
      convolutions_.push_back({b.named(std::to_string(l)).glorot("W", {width, width}),
                               static_cast<T>(std::log(lambda / l + 1)), b.rows(width), b.rows(width),
                               activation_layer<relu, T, Device>(dropout(b.options().dropout, b))});
  }

  void forward(const operand<T, Device>& h, matrix& z, const pass& p) override {
    const matrix& first = written_out_(h);
    const matrix* below = &first;
    for (convolution& c : convolutions_) {
      product_(*below, c.t);                                          // A H_(l-1) (n, f)
      zip(c.t, first, c.t, linear_combination<T>{keep_, initial_});   // T (n, f)
      gemm(c.t, c.weight.value(), c.h);                               // T W (n, f)
      zip(c.t, c.h, c.h, linear_combination<T>{1 - c.beta, c.beta});  // (n, f)
      c.behind.forward(c.h, p);                                       // relu, dropout
      below = &c.h;
    }
    copy(*below, z);
  }

  void backward(const operand<T, Device>&, const matrix& dz, matrix* dh) override {
    copy(dz, g_);
    fill(first_gradient_, T(0));
    for (auto c = convolutions_.rbegin(); c != convolutions_.rend(); ++c) {
      c->behind.backward(c->h, g_);                                               // d (1 - beta) T + beta T W
      weight_gradient_part(c->t, g_, c->weight.gradient());                       // T^T G (f, f)
      transform(c->weight.gradient(), c->weight.gradient(), scaled<T>{c->beta});  // beta T^T G
      gemm(g_, transposed(c->weight.value()), mixed_);                            // G W^T (n, f)
      zip(g_, mixed_, mixed_, linear_combination<T>{1 - c->beta, c->beta});       // dT (n, f)
      zip(first_gradient_, mixed_, first_gradient_, linear_combination<T>{1, initial_});  // dH_0 += alpha dT
      transform(mixed_, mixed_, scaled<T>{keep_});
      transposed_product_(mixed_, g_);  // A^T (1 - alpha) dT (n, f)
    }
    if (dh != nullptr) zip(g_, first_gradient_, *dh, std::plus<>{});  // (n, f)
  }

  global_index width() const override { return mixed_.shape().cols; }
  traffic predicted() const override {
    return static_cast<global_index>(convolutions_.size()) *
           (product_.predicted() + transposed_product_.predicted());
  }

 private:
  struct convolution {
    parameter<T, Device>& weight;
    T beta;
    matrix t, h;  ///< T_l and H_l
    activation_layer<relu, T, Device> behind;
  };

  T keep_, initial_;
  spmm_plan<T, Device> product_, transposed_product_;
  std::vector<convolution> convolutions_;
  matrix mixed_, g_, first_gradient_;
  dense_operand<T, Device> written_out_;
};

}  // namespace partita::nn
