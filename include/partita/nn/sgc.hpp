#pragma once
/// Simple graph convolution: Wu et al. (ICML 2019), eq. 8.

#include "partita/nn/hops.hpp"
#include "partita/nn/linear.hpp"

namespace partita {

/// Z = A^K X W + b (n x classes). A^K X is computed in the first forward and kept, so X must be the same each
/// time.
///
/// Every rank of the mesh must call. What travels: K products of the input's width once; then only the
/// gradients.
template <class T, class Place>
class sgc : public model<T, Place> {
 public:
  using typename model<T, Place>::matrix;
  using typename model<T, Place>::input;

  sgc(const sparse<T, dynamic_layout, Place>& a, global_index in, global_index out, int hop_count,
      const model_options& options)
      : a_(a),
        hop_count_(hop_count),
        parameters_(a.mesh()),
        linear_(parameters_, "W", "b", in, out, options.decay_of(0), options.seed),
        logits_(a.mesh(), extent{a.row_blocking().size(), out}) {}

  const matrix& forward(input& x, const dropout_pass&) override {
    if (!smoothed_) {
      x.apply({});
      const matrix whole = x.whole();  // (n/P, f)
      smoothed_.emplace(whole.mesh(), whole.row_blocking(), whole.col_blocking());
      hops<T, Place>(a_, whole.col_blocking(), hop_count_, 0).forward(whole, *smoothed_);  // (n/P, f)
    }
    linear_.forward(*smoothed_, logits_);  // (n/P, classes)
    return logits_;
  }
  void backward(const matrix& logits_gradient) override {
    linear_.backward(*smoothed_, logits_gradient, nullptr);
    parameters_.sum_gradients();
  }
  partita::parameters<T, Place>& parameters() override { return parameters_; }
  volume predicted() const override { return parameters_.predicted(); }

 private:
  sparse<T, dynamic_layout, Place> a_;
  int hop_count_;
  partita::parameters<T, Place> parameters_;
  linear<T, Place> linear_;
  std::optional<matrix> smoothed_;
  matrix logits_;
};

}  // namespace partita
