#pragma once
/// Deep graph convolutions with initial residual and identity mapping: Chen et al. (ICML 2020), eq. 5.

#include <cmath>
#include <functional>

#include "partita/algebra/spmm.hpp"
#include "partita/base/function.hpp"
#include "partita/nn/linear.hpp"
#include "partita/nn/stack.hpp"

namespace partita {

/// H_0 = relu(X W_in + b_in); T = (1 - alpha) A H_(l-1) + alpha H_0; H_l = relu((1 - beta_l) T + beta_l T
/// W_l), beta_l = log(lambda / l + 1), l = 1..L; the logits are H_L W_out + b_out. Dropout before every
/// layer.
///
/// Every rank of the mesh must call. What travels in an epoch: 2 L propagations of the hidden width and the
/// gradients.
template <class T, class Place>
class gcnii : public model<T, Place> {
 public:
  using typename model<T, Place>::matrix;
  using typename model<T, Place>::input;

  gcnii(const sparse<T, dynamic_layout, Place>& a, global_index in, global_index hidden, global_index out,
        int layers, double alpha, double lambda, const model_options& options)
      : parameters_(a.mesh()),
        alpha_(alpha),
        lambda_(lambda),
        width_(blocking::even(hidden, a.mesh().shape(), nesting::cols)),
        in_(parameters_, "Win", "bin", in, hidden, options.weight_decay, options.seed),
        forward_(a, vertex_rows, width_, options.products),
        backward_(transposed(a), vertex_rows, width_, options.products),
        mixed_(a.mesh(), a.row_blocking(), width_),
        first_gradient_(a.mesh(), a.row_blocking(), width_),
        logits_(a.mesh(), extent{a.row_blocking().size(), out}) {
    for (int l = 0; l <= layers; ++l) {
      hidden_.emplace_back(a.mesh(), a.row_blocking(), width_);
      if (l == 0) continue;
      weights_.push_back(
          parameters_.add("W" + std::to_string(l), {hidden, hidden}, options.convolution_decay));
      glorot(parameters_, weights_.back(), options.seed);
      smoothed_.emplace_back(a.mesh(), a.row_blocking(), width_);
    }
    out_.emplace(parameters_, "Wout", "bout", hidden, out, options.weight_decay, options.seed);
    gradient_.emplace(a.mesh(), a.row_blocking(), width_);
  }

  const matrix& forward(input& x, const dropout_pass& pass) override {
    pass_ = pass;
    input_ = &x;
    x.apply(pass.mask(0));
    x.visit([&](const auto& h) { in_.forward(h, hidden_[0]); });  // (n/P, h)
    activation::relu::forward(hidden_[0], pass.mask(1));
    for (std::size_t l = 1; l < hidden_.size(); ++l) {
      matrix& t = smoothed_[l - 1];
      forward_(hidden_[l - 1], t);  // (n/P, h)
      const T keep = static_cast<T>(1 - alpha_), initial = static_cast<T>(alpha_);
      zip(t, hidden_[0], t, linear_combination<T>{keep, initial});
      multiply_weight(t, parameters_.value(weights_[l - 1]), hidden_[l]);  // (n/P, h)
      mix(t, hidden_[l], l);
      activation::relu::forward(hidden_[l], pass.mask(l + 1));
    }
    out_->forward(hidden_.back(), logits_);  // (n/P, classes)
    return logits_;
  }

  void backward(const matrix& logits_gradient) override {
    matrix& g = *gradient_;
    out_->backward(hidden_.back(), logits_gradient, &g);  // (n/P, h)
    fill(g.mesh().queue(), T(0), first_gradient_.local());
    for (std::size_t l = hidden_.size(); l-- > 1;) {
      activation::relu::backward(hidden_[l], g, pass_.mask(l + 1));
      const T beta = static_cast<T>(beta_of(l)), keep = static_cast<T>(1 - alpha_),
              initial = static_cast<T>(alpha_);
      const matrix_view<T> dw = parameters_.gradient(weights_[l - 1]);
      local_weight_gradient(smoothed_[l - 1], g, dw);  // (h, h)
      map(g.mesh().queue(), scaled<T>{beta}, dw, dw);
      multiply_transposed_weight(g, parameters_.value(weights_[l - 1]), mixed_);  // (n/P, h)
      mix(g, mixed_, l);
      zip(first_gradient_, mixed_, first_gradient_, linear_combination<T>{1, initial});
      map(mixed_, mixed_, scaled<T>{keep});
      backward_(mixed_, g);  // (n/P, h)
    }
    zip(g, first_gradient_, g, std::plus<>{});
    activation::relu::backward(hidden_[0], g, pass_.mask(1));
    input_->visit([&](const auto& h) { in_.backward(h, g, nullptr); });
    parameters_.sum_gradients();
  }

  partita::parameters<T, Place>& parameters() override { return parameters_; }
  volume predicted() const override {
    return static_cast<global_index>(weights_.size()) * (forward_.predicted() + backward_.predicted()) +
           parameters_.predicted();
  }

 private:
  double beta_of(std::size_t l) const { return std::log(lambda_ / static_cast<double>(l) + 1); }
  /// y = (1 - beta) x + beta y.
  void mix(const matrix& x, matrix& y, std::size_t l) const {
    const T beta = static_cast<T>(beta_of(l));
    zip(x, y, y, linear_combination<T>{1 - beta, beta});
  }

  partita::parameters<T, Place> parameters_;
  double alpha_, lambda_;
  blocking width_;
  linear<T, Place> in_;
  spmm_plan<T, Place> forward_, backward_;
  std::vector<std::size_t> weights_;
  std::deque<matrix> hidden_, smoothed_;
  std::optional<linear<T, Place>> out_;
  std::optional<matrix> gradient_;
  matrix mixed_, first_gradient_, logits_;
  input* input_ = nullptr;
  dropout_pass pass_;
};

}  // namespace partita
