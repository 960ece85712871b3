#pragma once
/// Graph attention with dense layers first, then hops that share their coefficients: the decoupled form of
/// NeutronTP (VLDB 2025), section 4.1.

#include "partita/nn/gat.hpp"
#include "partita/nn/linear.hpp"

namespace partita {

/// Z_0 = dense layers of X with elu between (n x classes); alpha_uv = the mean over the heads of the softmax
/// over u of leaky(0.2)(a_src . Z_0,u + a_dst . Z_0,v); Z_k = alpha Z_(k-1), k = 1..K; the logits are Z_K.
/// a_src, a_dst (heads x classes).
///
/// Every rank of the mesh must call. What travels in an epoch: four redistributions of n x classes, whatever
/// K, the heads and the input width are; scalars a vertex and head; the traffic of 2 K products and of K
/// sampled ones (none under feature_column); parts of one value an edge, which is the gradient of its
/// coefficient; and one all-reduce of the gradients.
template <class T, class Place>
class decoupled_gat : public model<T, Place> {
  using layer = linear<T, Place>;

 public:
  using typename model<T, Place>::matrix;
  using typename model<T, Place>::input;

  /// `a` as in attention; widths: f, hidden widths, classes.
  decoupled_gat(const sparse<T, dynamic_layout, Place>& a, const std::vector<global_index>& widths, int heads,
                int hop_count, const model_options& options)
      : decoupled_gat(a, widths,
                      attention_shape{.heads = heads,
                                      .width = narrow(widths.back(), "the number of classes"),
                                      .averaged = true,
                                      .hops = hop_count},
                      options) {}

  const matrix& forward(input& x, const dropout_pass& pass) override {
    const matrix& z0 = dense_layers_.forward(x, pass);  // (n/P, classes)
    z0_ = &z0;
    attention_.forward(z0, vectors_.forward(z0), logits_,
                       pass.mask(detail::attention_stream));  // (n/P, classes)
    return logits_;
  }
  void backward(const matrix& logits_gradient) override {
    attention_.backward(*z0_, logits_gradient, gradient_, vectors_.gradient());  // (n/P, classes)
    vectors_.backward(*z0_, gradient_);                                          // (n/P, classes)
    dense_layers_.backward(gradient_);
  }
  partita::parameters<T, Place>& parameters() override { return dense_layers_.parameters(); }
  volume predicted() const override { return dense_layers_.predicted() + attention_.predicted(); }

 private:
  decoupled_gat(const sparse<T, dynamic_layout, Place>& a, const std::vector<global_index>& widths,
                const attention_shape& shape, const model_options& options)
      : dense_layers_(a.mesh(), a.row_blocking(), widths.size() - 1,
                      [&](auto& set, std::size_t l) {
                        const std::string name = std::to_string(l);
                        return std::make_unique<layer>(set, "W" + name, "b" + name, widths[l], widths[l + 1],
                                                       options.weight_decay, options.seed);
                      }),
        vectors_(dense_layers_.parameters(), a.row_blocking(), "", shape, options.weight_decay, options.seed),
        attention_(a, shape, options.products, options.coefficients),
        logits_(a.mesh(), a.row_blocking(), attention_.features()),
        gradient_(a.mesh(), a.row_blocking(), attention_.features()) {}

  stack<layer, activation::elu, T, Place> dense_layers_;
  attention_vectors<T, Place> vectors_;
  attention<T, Place> attention_;
  matrix logits_, gradient_;
  const matrix* z0_ = nullptr;
};

}  // namespace partita
