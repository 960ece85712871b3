#pragma once
/// Layers one after another, with an activation and dropout between them.

#include <deque>
#include <memory>
#include <type_traits>
#include <vector>

#include "partita/nn/activation.hpp"
#include "partita/nn/initialization.hpp"
#include "partita/nn/model.hpp"

namespace partita {

/// H_0 = dropout(X); H_l = dropout(activation(Z_l)), Z_l = layer_l(H_(l-1)); the logits are Z_L.
///
/// A Layer has forward(h, z, pass) and, where the activation is relu, forward(h, z, pass, whether to cut z at
/// 0), backward(h, dz, dh or null), predicted() and out(), the cuts of its columns; it adds its parameters to
/// the set it is constructed with. Only the first layer sees sparse features.
template <class Layer, class Activation, class T, class Place>
class stack : public model<T, Place> {
 public:
  using typename model<T, Place>::matrix;
  using typename model<T, Place>::input;

  /// make(l): layer number l of `count`, constructed in place.
  template <class Make>
  stack(const mesh<Place>& m, const blocking& rows, std::size_t count, Make make) : parameters_(m) {
    for (std::size_t l = 0; l < count; ++l) {
      layers_.push_back(make(parameters_, l));
      if (l + 1 == count) break;
      hidden_.emplace_back(m, rows, layers_[l]->out());
      gradients_.emplace_back(m, rows, layers_[l]->out());
    }
    logits_.emplace(m, rows, layers_.back()->out());
  }

  const matrix& forward(input& x, const dropout_pass& pass) override {
    pass_ = pass;
    input_ = &x;
    x.apply(pass.mask(0));
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      matrix& z = l < hidden_.size() ? hidden_[l] : *logits_;
      if (l == 0)
        x.visit([&](const auto& h) { run(l, h, z); });
      else
        run(l, hidden_[l - 1], z);
    }
    return *logits_;
  }

  void backward(const matrix& logits_gradient) override {
    const matrix* dz = &logits_gradient;
    for (std::size_t l = layers_.size(); l-- > 1;) {
      matrix& dh = gradients_[l - 1];
      layers_[l]->backward(hidden_[l - 1], *dz, &dh);
      Activation::backward(hidden_[l - 1], dh, pass_.mask(l));
      dz = &dh;
    }
    input_->visit([&](const auto& h) { layers_[0]->backward(h, *dz, nullptr); });
    parameters_.sum_gradients();
  }

  partita::parameters<T, Place>& parameters() override { return parameters_; }
  volume predicted() const override {
    volume v = parameters_.predicted();
    for (const auto& layer : layers_) v += layer->predicted();
    return v;
  }

 private:
  /// Layer l, with the activation and dropout behind it; a relu without dropout is the layer's own.
  template <class Input>
  void run(std::size_t l, const Input& h, matrix& z) {
    const bool hidden = l < hidden_.size();
    if constexpr (std::is_same_v<Activation, activation::relu>)
      if (hidden && pass_.probability == 0) return layers_[l]->forward(h, z, pass_, true);
    layers_[l]->forward(h, z, pass_);
    if (hidden) Activation::forward(z, pass_.mask(l + 1));
  }

  partita::parameters<T, Place> parameters_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::deque<matrix> hidden_, gradients_;
  std::optional<matrix> logits_;
  input* input_ = nullptr;
  dropout_pass pass_;
};

}  // namespace partita
