#pragma once
/// Dense layers first, then hops: APPNP (Klicpera et al., ICLR 2019) and the decoupled form of other models
/// (NeutronTP, VLDB 2025, section 4.1).

#include "partita/nn/hops.hpp"
#include "partita/nn/linear.hpp"
#include "partita/nn/stack.hpp"

namespace partita {

/// Z_0 = dense layers of X with relu between; Z_k = (1 - alpha) A Z_(k-1) + alpha Z_0, k = 1..K; the logits
/// are Z_K.
///
/// Every rank of the mesh must call. What travels in an epoch: four redistributions of n x classes, whatever
/// K and the input width are, the traffic of 2 K products (none under feature_column), and one all-reduce of
/// the gradients.
template <class T, class Place>
class appnp : public model<T, Place> {
  using layer = linear<T, Place>;

 public:
  using typename model<T, Place>::matrix;
  using typename model<T, Place>::input;

  /// widths: f, hidden widths, classes. The first layer decays. alpha = 0: A^K applied to the dense layers.
  appnp(const sparse<T, dynamic_layout, Place>& a, const std::vector<global_index>& widths, int hop_count,
        double alpha, const model_options& options)
      : dense_layers_(a.mesh(), a.row_blocking(), widths.size() - 1,
                      [&](auto& set, std::size_t l) {
                        const std::string name = std::to_string(l);
                        return std::make_unique<layer>(set, "W" + name, "b" + name, widths[l], widths[l + 1],
                                                       options.decay_of(l), options.seed);
                      }),
        hops_(a, blocking::even(widths.back(), a.mesh().shape(), nesting::cols), hop_count, alpha,
              options.products),
        logits_(a.mesh(), extent{a.row_blocking().size(), widths.back()}),
        gradient_(a.mesh(), extent{a.row_blocking().size(), widths.back()}) {}

  const matrix& forward(input& x, const dropout_pass& pass) override {
    hops_.forward(dense_layers_.forward(x, pass), logits_);  // (n/P, classes)
    return logits_;
  }
  void backward(const matrix& logits_gradient) override {
    hops_.backward(logits_gradient, gradient_);  // (n/P, classes)
    dense_layers_.backward(gradient_);
  }
  partita::parameters<T, Place>& parameters() override { return dense_layers_.parameters(); }
  volume predicted() const override { return dense_layers_.predicted() + hops_.predicted(); }

 private:
  stack<layer, activation::relu, T, Place> dense_layers_;
  hops<T, Place> hops_;
  matrix logits_, gradient_;
};

}  // namespace partita
