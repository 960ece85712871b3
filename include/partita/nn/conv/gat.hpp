// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Graph attention: Velickovic et al. (ICLR 2018), section 2.1; and the decoupled form of NeutronTP (VLDB
/// 2025), section 4.1.

#include "partita/nn/conv/attention_vectors.hpp"
#include "partita/nn/conv/heads.hpp"

namespace partita::nn {

/// Z_v = sum over u->v of alpha_uv X_u + b, X = H W, per head, with the heads concatenated or averaged; alpha
/// is the softmax over u of leaky(0.2)(a_src . X_u + a_dst . X_v). H (n x in), W (in x heads width), a_src
/// and a_dst (heads x width), Z (n x out), out = heads width, or width if averaged.
///
/// What travels: see algebra::attention. Throws shape_error when the heads do not divide `out`.
template <class T, class Device>
class gat_conv final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  gat_conv(const sparse<T, dynamic_layout, Device>& a, global_index in, global_index out,
           const builder<T, Device>& b, attention_heads heads = {})
      : layer<T, Device>(b),
        shape_{.heads = heads.count, .width = heads.width_of(out)},
        dropout_(b.options().dropout, b, b.next_attention()),
        weight_(b.glorot("W", {in, shape_.columns()})),
        vectors_(shape_, a.col_blocking(), b),
        bias_(b.filled("b", {1, out})),
        attention_(this->here().template plan<algebra::attention<T, Device>>(
            {}, a, shape_, b.options().products, b.options().coefficients)),
        x_(b.rows(a.col_blocking(), shape_.columns())),
        dx_(b.rows(a.col_blocking(), shape_.columns())) {
    if (!heads.averaged || heads.count == 1) return;
    average_.emplace(head_average<T>(b.mesh(), heads.count, out));
    y_.emplace(b.rows(a.row_blocking(), shape_.columns()));
  }

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    gemm(h, weight_.value(), x_);                                                   // (n, heads width)
    attention_->forward(x_, vectors_.forward(x_), y_ ? *y_ : z, dropout_.mask(p));  // (n, heads width)
    if (average_) return gemm(*y_, *average_, z, {.bias = &bias_.value()});         // (n, width)
    if (!p.elu) return add_row(bias_.value(), z);
    elu::forward(z, bias_.value(), p.drop);
    p.fused = true;
  }
  void backward(const algebra::operand<T, Device>& h, const matrix& dz, matrix* dh) override {
    algebra::column_sums_part(dz, bias_.gradient());                          // (1, out)
    if (average_) gemm(dz, transposed(*average_), *y_);                       // (n, heads width)
    attention_->backward(x_, average_ ? *y_ : dz, dx_, vectors_.gradient());  // (n, heads width)
    vectors_.backward(x_, dx_);                                               // (n, heads width)
    algebra::weight_gradient_part(h, dx_, weight_.gradient());                // (in, heads width)
    if (dh != nullptr) gemm(dx_, transposed(weight_.value()), *dh);           // (n, in)
  }

  bool writes_gradients() const override { return true; }
  bool repeats() const override { return true; }
  global_index width() const override { return bias_.shape().cols; }

 private:
  algebra::attention_shape shape_;
  dropout dropout_;  ///< of the coefficients
  parameter<T, Device>& weight_;
  attention_vectors<T, Device> vectors_;
  parameter<T, Device>& bias_;
  std::shared_ptr<algebra::attention<T, Device>> attention_;
  matrix x_, dx_;
  std::optional<matrix> y_;                              ///< Z of all heads, if these are averaged
  std::optional<dense<T, replicated, Device>> average_;  ///< likewise
};

/// Z_k = alpha Z_(k-1), k = 1..K, Z_0 = H, alpha_uv the mean over the heads of the softmax over u of
/// leaky(0.2)(a_src . H_u + a_dst . H_v); Z = Z_K (all n x width; a_src, a_dst heads x width).
///
/// What travels: see algebra::attention.
template <class T, class Device>
class gat_propagation final : public layer<T, Device> {
 public:
  using typename layer<T, Device>::matrix;

  gat_propagation(const sparse<T, dynamic_layout, Device>& a, global_index width, int heads, int hops,
                  const builder<T, Device>& b)
      : layer<T, Device>(b),
        shape_{.heads = heads,
               .width = base::to_local(width, "the width of attention"),
               .averaged = true,
               .hops = hops},
        dropout_(b.options().dropout, b, b.next_attention()),
        vectors_(shape_, a.col_blocking(), b),
        attention_(this->here().template plan<algebra::attention<T, Device>>(
            {}, a, shape_, b.options().products, b.options().coefficients)),
        scratch_(b.rows(width)) {}

  void forward(const algebra::operand<T, Device>& h, matrix& z, const pass& p) override {
    x_ = &dense_input_(h);
    attention_->forward(*x_, vectors_.forward(*x_), z, dropout_.mask(p));  // (n, width)
  }
  void backward(const algebra::operand<T, Device>&, const matrix& dz, matrix* dh) override {
    matrix& dx = dh != nullptr ? *dh : scratch_;
    attention_->backward(*x_, dz, dx, vectors_.gradient());  // (n, width)
    vectors_.backward(*x_, dx);                              // (n, width)
  }

  global_index width() const override { return shape_.width; }

 private:
  algebra::attention_shape shape_;
  dropout dropout_;
  attention_vectors<T, Device> vectors_;
  std::shared_ptr<algebra::attention<T, Device>> attention_;
  matrix scratch_;
  algebra::dense_operand<T, Device> dense_input_;
  const matrix* x_ = nullptr;
};

}  // namespace partita::nn
