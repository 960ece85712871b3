#pragma once
/// Steps that change every parameter by its summed gradient. Every rank does the same; nothing travels.

#include <cmath>
#include <functional>

#include "partita/base/function.hpp"
#include "partita/nn/parameters.hpp"

namespace partita {

namespace detail {

/// gradient += decay * value, for the parameters that decay.
template <class T, class Place>
void decay_weights(parameters<T, Place>& set) {
  for (std::size_t i = 0; i < set.list().size(); ++i)
    if (const T d = static_cast<T>(set.list()[i].decay); d != T(0))
      zip(set.mesh().queue(), linear_combination<T>{1, d}, set.gradient(i), set.value(i), set.gradient(i));
}

template <class T>
matrix_view<T> as_row(std::span<T> values) {
  return {values.data(), 1, narrow(static_cast<global_index>(values.size()), "the number of parameters"),
          static_cast<std::ptrdiff_t>(values.size())};
}

/// decay v + (1 - decay) g^2.
template <class T>
struct second_moment {
  T decay;
  constexpr T operator()(T v, T g) const { return decay * v + (1 - decay) * g * g; }
};

/// rate * (m * correct_first) / (sqrt(v * correct_second) + epsilon).
template <class T>
struct adam_direction {
  T rate, correct_first, correct_second, epsilon;
  constexpr T operator()(T m, T v) const {
    return rate * (m * correct_first) / (std::sqrt(v * correct_second) + epsilon);
  }
};

}  // namespace detail

/// w -= rate * (g + decay * w), decay as each parameter has it.
template <class T, class Place>
class sgd {
 public:
  explicit sgd(double rate) : rate_(rate) {}

  void step(parameters<T, Place>& set) {
    detail::decay_weights(set);
    zip(set.mesh().queue(), linear_combination<T>{1, -static_cast<T>(rate_)}, detail::as_row(set.values()),
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
        fill(q, T(0), detail::as_row(moment->span()));
      }
    }
    const auto first = detail::as_row(first_.span()), second = detail::as_row(second_.span());
    detail::decay_weights(set);
    ++steps_;
    const T correct_first = static_cast<T>(1 / (1 - std::pow(beta_first, steps_)));
    const T correct_second = static_cast<T>(1 / (1 - std::pow(beta_second, steps_)));
    const T b1 = T(beta_first), b2 = T(beta_second);
    const detail::adam_direction<T> direction{static_cast<T>(rate_), correct_first, correct_second,
                                              T(epsilon)};
    zip(q, linear_combination<T>{b1, 1 - b1}, first, gradient, first);
    zip(q, detail::second_moment<T>{b2}, second, gradient, second);
    zip(q, direction, first, second, gradient);
    zip(q, std::minus<>{}, value, gradient, value);
  }

 private:
  static constexpr double beta_first = 0.9, beta_second = 0.999, epsilon = 1e-8;

  double rate_;
  int steps_ = 0;
  buffer<T, Place> first_, second_;
};

}  // namespace partita
