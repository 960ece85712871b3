// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Element-wise layers: relu, elu and dropout. In place, in any layout. Local; no communication.

#include <memory>

#include "partita/base/exponential.hpp"
#include "partita/base/function.hpp"
#include "partita/nn/layer.hpp"

namespace partita::nn {

namespace detail {

/// Dropout of max(x, 0).
template <class T>
struct dropped_relu {
  struct in_row {
    typename base::dropped<T>::in_row drop;
    constexpr T operator()(global_index j, T x) const { return drop(j, base::positive_part{}(x)); }
  };

  base::dropped<T> drop;

  constexpr in_row row(global_index i) const { return {drop.row(i)}; }
  constexpr T operator()(global_index i, global_index j, T x) const { return row(i)(j, x); }
};

template <class T>
struct relu_gradient {
  T scale;
  constexpr T operator()(T out, T d) const { return out > T(0) ? d * scale : T(0); }
};

/// Dropout of elu(x).
template <class T>
struct dropped_elu {
  struct in_row {
    typename base::dropped<T>::in_row drop;
    constexpr T operator()(global_index j, T x) const { return drop(j, base::exponential_linear(x)); }
  };

  base::dropped<T> drop;

  constexpr in_row row(global_index i) const { return {drop.row(i)}; }
  constexpr T operator()(global_index i, global_index j, T x) const { return row(i)(j, x); }
};

/// The same of x + b(0, j).
template <class T>
struct dropped_elu_of_sum {
  struct in_row {
    typename dropped_elu<T>::in_row elu;
    const T* bias;
    constexpr T operator()(global_index j, T x) const { return elu(j, x + bias[j]); }
  };

  dropped_elu<T> elu;
  const T* bias;

  constexpr in_row row(global_index i) const { return {elu.row(i), bias}; }
  constexpr T operator()(global_index i, global_index j, T x) const { return row(i)(j, x); }
};

/// d exp(x), x <= 0, from out = (exp(x) - 1) / keep.
template <class T>
struct elu_gradient {
  T keep;
  constexpr T operator()(T out, T d) const { return out > T(0) ? d : d * (out * keep + T(1)); }
};

}  // namespace detail

/// h = dropout(max(h, 0)). The input gradient follows from the output: a nonpositive output was clamped or
/// dropped. In backward S is what h is stored as.
struct relu {
  template <class T, layout L, class Device>
  static void forward(dense<T, L, Device>& h, const dropout_mask& mask) {
    if (mask.probability == 0) return transform(h, h, base::positive_part{});
    transform_indexed(h, h, detail::dropped_relu<T>{mask.function<T>()});
  }
  /// dh: d loss / d output on entry, d loss / d input on exit.
  template <class T, layout L, class Device, class S>
  static void backward(const dense<S, L, Device>& h, dense<T, L, Device>& dh, const dropout_mask& mask) {
    zip(h, dh, dh, detail::relu_gradient<T>{mask.function<T>().scale});
  }
};

/// h = dropout(h > 0 ? h : exp(h) - 1).
struct elu {
  template <class T, layout L, class Device>
  static void forward(dense<T, L, Device>& h, const dropout_mask& mask) {
    transform_indexed(h, h, detail::dropped_elu<T>{mask.function<T>()});
  }
  /// As forward of h + b, in one pass; b is 1 x f on every rank.
  template <class T, layout L, class Device>
  static void forward(dense<T, L, Device>& h, const dense<T, replicated, Device>& b,
                      const dropout_mask& mask) {
    transform_indexed(h, h, detail::dropped_elu_of_sum<T>{{mask.function<T>()}, b.local().data});
  }
  template <class T, layout L, class Device>
  static void backward(const dense<T, L, Device>& h, dense<T, L, Device>& dh, const dropout_mask& mask) {
    algebra::zip_dropout(h, dh, mask, detail::elu_gradient<T>{static_cast<T>(1 - mask.probability)});
  }
};

/// h = dropout(h).
struct identity {
  template <class T, layout L, class Device>
  static void forward(dense<T, L, Device>& h, const dropout_mask& mask) {
    if (mask.probability > 0) partita::dropout(h, h, mask);
  }
  template <class T, layout L, class Device, class S>
  static void backward(const dense<S, L, Device>&, dense<T, L, Device>& dh, const dropout_mask& mask) {
    forward(dh, mask);
  }
};

/// h(i, j) / (1 - p), or 0 with probability p, in training only. As the first layer it keeps sparse features
/// sparse; after an activation it is fused into the same pass. Throws error unless 0 <= p < 1.
class dropout {
 public:
  template <class T, class Device>
  dropout(double probability, const builder<T, Device>& b) : dropout(probability, b, b.next_dropout()) {
    if (probability_ > 0) b.vary_input();
  }

  /// Dropout inside a layer; `number` distinguishes its mask from others.
  template <class T, class Device>
  dropout(double probability, const builder<T, Device>& b, std::uint64_t number)
      : probability_(probability), seed_(b.options().seed), number_(number) {
    if (!(probability >= 0 && probability < 1))
      base::throw_error<error>(
          {"a dropout probability must be in [0, 1), not ", std::to_string(probability)});
  }

  dropout_mask mask(const pass& p) const {
    dropout_mask found{p.training ? probability_ : 0, {seed_, p.epoch, number_}, p.vertices};
    if (p.numbers != nullptr && found.probability > 0)
      found.word = p.numbers
                       ->number<std::uint64_t>([key = found.key](std::uint64_t epoch) {
                         return random_key{key.seed, epoch, key.stream}.word();
                       })
                       .at;
    return found;
  }

 private:
  double probability_;
  std::uint64_t seed_, number_;
};

/// A layer that works in place, which it may since its gradient follows from its output.
template <class T, class Device>
class in_place_layer {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  in_place_layer() = default;
  in_place_layer(in_place_layer&&) = default;
  virtual ~in_place_layer() = default;

  virtual void forward(matrix& h, const pass& p) = 0;
  /// Turns dh from d loss / d output into d loss / d input; h is the output of the last forward. Throws error
  /// for an h in a form that the layer does not read.
  virtual void backward(const algebra::operand<T, Device>& h, matrix& dh) = 0;
  /// The pass of a preceding layer with this one fused into it, if this is a dropout of h, max(h, 0) or
  /// elu(h).
  virtual std::optional<pass> fused_into(const pass& p) const = 0;
  /// Records the pass for backward; forward was fused into the preceding layer.
  virtual void skip(const pass& p) = 0;
  /// Fuses the dropout that follows; false if it cannot.
  virtual bool absorb(const dropout& behind) = 0;
};

/// An activation such as relu, with the dropout that follows it, if any.
template <class Activation, class T, class Device>
class activation_layer final : public in_place_layer<T, Device> {
 public:
  using typename in_place_layer<T, Device>::matrix;

  activation_layer() = default;
  explicit activation_layer(const dropout& behind) : behind_(behind) {}

  void forward(matrix& h, const pass& p) override {
    skip(p);
    Activation::forward(h, mask_);
  }
  void backward(const algebra::operand<T, Device>& h, matrix& dh) override {
    h.visit_dense([&](const auto& out) {
      if constexpr (requires { Activation::backward(out, dh, mask_); })
        Activation::backward(out, dh, mask_);
      else
        throw error("backward of this activation does not read outputs that are kept as bfloat16");
    });
  }
  std::optional<pass> fused_into(const pass& p) const override {
    if constexpr (std::is_same_v<Activation, relu> || std::is_same_v<Activation, identity>)
      return p.fusing(std::is_same_v<Activation, relu>, mask_of(p));
    if constexpr (std::is_same_v<Activation, elu>) {
      pass fusing = p.fusing(false, mask_of(p));
      fusing.elu = true;
      return fusing;
    }
    return {};
  }
  void skip(const pass& p) override { mask_ = mask_of(p); }
  bool absorb(const dropout& behind) override {
    if (behind_) return false;
    behind_ = behind;
    return true;
  }

 private:
  dropout_mask mask_of(const pass& p) const { return behind_ ? behind_->mask(p) : dropout_mask{}; }

  std::optional<dropout> behind_;
  dropout_mask mask_;
};

}  // namespace partita::nn
