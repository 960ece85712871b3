#pragma once
/// Steps that change every parameter by its summed gradient. Every rank does the same; nothing travels.

#include <cmath>

#include "partita/nn/parameters.hpp"

namespace partita {

namespace detail {

/// gradient += decay * value, for the parameters that decay.
template <class T, class Place>
void decay_weights(parameters<T, Place>& set) {
  for (std::size_t i = 0; i < set.list().size(); ++i)
    if (const T d = static_cast<T>(set.list()[i].decay); d != T(0))
      kernels<Place>::zip(
          set.mesh().queue(), [d](T g, T w) { return g + d * w; }, set.gradient(i), set.value(i),
          set.gradient(i));
}

template <class T>
matrix_view<T> as_row(std::span<T> values) {
  return {values.data(), 1, narrow(static_cast<global_index>(values.size()), "the number of parameters"),
          static_cast<std::ptrdiff_t>(values.size())};
}

}  // namespace detail

/// w -= rate * (g + decay * w), decay as each parameter has it.
template <class T, class Place>
class sgd {
 public:
  explicit sgd(double rate) : rate_(rate) {}

  void step(parameters<T, Place>& set) {
    detail::decay_weights(set);
    const T rate = static_cast<T>(rate_);
    kernels<Place>::zip(
        set.mesh().queue(), [rate](T w, T g) { return w - rate * g; }, detail::as_row(set.values()),
        detail::as_row(set.gradients()), detail::as_row(set.values()));
  }

 private:
  double rate_;
};

/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) +
/// epsilon), with g + decay * w in place of g for parameters that decay. Source: Kingma, Ba (ICLR 2015),
/// algorithm 1.
template <class T, class Place>
class adam {
 public:
  explicit adam(double rate = 0.01) : rate_(rate) {}

  void step(parameters<T, Place>& set) {
    const auto& q = set.mesh().queue();
    const auto value = detail::as_row(set.values()), gradient = detail::as_row(set.gradients());
    if (first_.size() != set.values().size()) {
      for (auto* moment : {&first_, &second_}) {
        *moment = buffer<T, Place>(q, set.values().size());
        kernels<Place>::fill(q, T(0), detail::as_row(moment->span()));
      }
    }
    const auto first = detail::as_row(first_.span()), second = detail::as_row(second_.span());
    detail::decay_weights(set);
    ++steps_;
    const T correct_first = static_cast<T>(1 / (1 - std::pow(beta_first, steps_)));
    const T correct_second = static_cast<T>(1 / (1 - std::pow(beta_second, steps_)));
    const T rate = static_cast<T>(rate_), b1 = T(beta_first), b2 = T(beta_second), e = T(epsilon);
    kernels<Place>::zip(
        q, [b1](T m, T g) { return b1 * m + (1 - b1) * g; }, first, gradient, first);
    kernels<Place>::zip(
        q, [b2](T v, T g) { return b2 * v + (1 - b2) * g * g; }, second, gradient, second);
    const auto direction = [=](T m, T v) {
      return rate * (m * correct_first) / (std::sqrt(v * correct_second) + e);
    };
    kernels<Place>::zip(q, direction, first, second, gradient);
    kernels<Place>::zip(
        q, [](T w, T d) { return w - d; }, value, gradient, value);
  }

 private:
  static constexpr double beta_first = 0.9, beta_second = 0.999, epsilon = 1e-8;

  double rate_;
  int steps_ = 0;
  buffer<T, Place> first_, second_;
};

}  // namespace partita
