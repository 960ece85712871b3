#pragma once
/// The graph convolution of Kipf and Welling (ICLR 2017), eq. 2, and a network of them.

#include <variant>

#include "partita/nn/activation.hpp"
#include "partita/nn/initialization.hpp"
#include "partita/nn/propagation.hpp"
#include "partita/nn/weight_product.hpp"

namespace partita {

/// Z = A (H W) + b, forward and backward (n x f_out, n x f_in, f_in x f_out, 1 x f_out), H and Z in
/// vertex_rows.
///
/// Every rank of the mesh must call. What travels: the propagation of a matrix of width f_out, once each way;
/// parameter gradients are this rank's part until parameters::sum_gradients. Throws shape_error naming the
/// shapes.
template <class T, class Policy, class Place>
class gcn_convolution {
 public:
  using matrix = dense<T, vertex_rows, Place>;
  using sparse_type = sparse<T, typename Policy::sparse_layout, Place>;

  gcn_convolution(const sparse_type& a, parameters<T, Place>& set, const std::string& name, global_index in,
                  global_index out, bool decays, spmm_options options = {})
      : mesh_(a.mesh()),
        parameters_(set),
        weight_(set.add("W" + name, {in, out}, decays)),
        bias_(set.add("b" + name, {1, out}, decays)),
        features_(blocking::even(out, mesh_.shape(), nesting::cols)),
        forward_(a, features_, options),
        backward_(transposed(a), features_, options),
        product_(mesh_, a.col_blocking(), features_) {}

  /// Z from H, which is a matrix or sparse_features.
  template <class Input>
  void forward(const Input& h, matrix& z) {
    multiply_weight(h, parameters_.value(weight_), product_);  // (n/P, f_out)
    forward_(product_, z);                                     // (n/P, f_out)
    kernels<Place>::add_row(mesh_.queue(), parameters_.value(bias_).data, z.local());
  }

  /// This rank's part of dW = H^T A^T dZ and db = 1^T dZ; and dH = A^T dZ W^T where dh is given.
  template <class Input>
  void backward(const Input& h, const matrix& dz, matrix* dh) {
    kernels<Place>::column_sums(mesh_.queue(), dz.local(), parameters_.gradient(bias_).data);
    backward_(dz, product_);                                            // (n/P, f_out)
    local_weight_gradient(h, product_, parameters_.gradient(weight_));  // (f_in, f_out)
    if (dh != nullptr) multiply_transposed_weight(product_, parameters_.value(weight_), *dh);  // (n/P, f_in)
  }

  /// Cuts of the columns of Z.
  const blocking& features() const { return features_; }
  std::size_t weight() const { return weight_; }
  volume predicted_forward() const { return forward_.predicted(); }
  volume predicted_backward() const { return backward_.predicted(); }

 private:
  mesh<Place> mesh_;
  parameters<T, Place>& parameters_;
  std::size_t weight_, bias_;
  blocking features_;
  propagation<T, Policy, Place> forward_, backward_;
  matrix product_;
};

/// H_0 = dropout(X); H_l = dropout(relu(Z_l)), Z_l = A H_(l-1) W_l + b_l; the logits are Z_L.
template <class T, class Policy, class Place>
class gcn {
 public:
  using matrix = dense<T, vertex_rows, Place>;
  using sparse_type = sparse<T, typename Policy::sparse_layout, Place>;

  /// widths: f, hidden widths, classes. Glorot weights and zero biases from `seed`; the first layer decays.
  gcn(const sparse_type& a, const std::vector<global_index>& widths, std::uint64_t seed,
      spmm_options options = {})
      : parameters_(a.mesh()), seed_(seed) {
    if (widths.size() < 2) throw shape_error("a gcn needs at least the widths of its input and its output");
    layers_.reserve(widths.size() - 1);
    for (std::size_t l = 0; l + 1 < widths.size(); ++l) {
      layers_.emplace_back(a, parameters_, std::to_string(l), widths[l], widths[l + 1], l == 0, options);
      glorot(parameters_, layers_[l].weight(), seed);
      const blocking in = blocking::even(widths[l], a.mesh().shape(), nesting::cols);
      if (l == 0) continue;
      hidden_.emplace_back(a.mesh(), a.col_blocking(), in);
      input_gradients_.emplace_back(a.mesh(), a.col_blocking(), in);
    }
    logits_.emplace(a.mesh(), a.row_blocking(), layers_.back().features());
  }
  gcn(const gcn&) = delete;
  gcn& operator=(const gcn&) = delete;

  /// The logits (n x classes). With a probability, dropout masks of this epoch. X must live until backward.
  /// Every rank must call.
  const matrix& forward(const matrix& x, double dropout_probability = 0, std::uint64_t epoch = 0) {
    dropout_ = dropout_probability;
    epoch_ = epoch;
    if (dropout_ > 0) {
      if (!dropped_) dropped_.emplace(x.mesh(), x.row_blocking(), x.col_blocking());
      dropout(x, *dropped_, mask(0));
    }
    input_ = dropout_ > 0 ? &*dropped_ : &x;
    return forward_layers();
  }
  /// The same with sparse features, whose values the mask is applied to.
  const matrix& forward(sparse_features<T, Place>& x, double dropout_probability = 0,
                        std::uint64_t epoch = 0) {
    dropout_ = dropout_probability;
    epoch_ = epoch;
    x.apply(mask(0));
    input_ = &x;
    return forward_layers();
  }

  /// Every parameter's gradient, from that of the logits of the last forward. Every rank must call.
  void backward(const matrix& logits_gradient) {
    const matrix* dz = &logits_gradient;
    for (std::size_t l = layers_.size(); l-- > 1;) {
      matrix& dh = input_gradients_[l - 1];
      layers_[l].backward(hidden_[l - 1], *dz, &dh);
      relu_dropout_gradient(hidden_[l - 1], dh, dh, mask(l));
      dz = &dh;
    }
    std::visit([&](const auto* x) { layers_[0].backward(*x, *dz, nullptr); }, input_);
    parameters_.sum_gradients();
  }

  partita::parameters<T, Place>& parameters() { return parameters_; }
  /// What this rank receives in one forward and backward, in closed form.
  volume predicted() const {
    volume v = parameters_.predicted();
    for (const auto& layer : layers_) v += layer.predicted_forward() + layer.predicted_backward();
    return v;
  }

 private:
  const matrix& forward_layers() {
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const bool last = l + 1 == layers_.size();
      matrix& z = last ? *logits_ : hidden_[l];
      if (l == 0)
        std::visit([&](const auto* x) { layers_[0].forward(*x, z); }, input_);
      else
        layers_[l].forward(hidden_[l - 1], z);
      if (!last) relu_dropout(z, z, mask(l + 1));
    }
    return *logits_;
  }
  dropout_mask mask(std::size_t layer) const { return {dropout_, {seed_, epoch_, layer}}; }

  partita::parameters<T, Place> parameters_;
  std::uint64_t seed_;
  std::vector<gcn_convolution<T, Policy, Place>> layers_;
  std::variant<const matrix*, const sparse_features<T, Place>*> input_;  ///< of the first layer
  std::optional<matrix> dropped_;
  std::vector<matrix> hidden_, input_gradients_;
  std::optional<matrix> logits_;
  double dropout_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace partita
