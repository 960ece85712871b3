// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Steps that change every parameter by its summed gradient. Every rank does the same; nothing travels.

#include <cmath>
#include <functional>

#include "partita/base/function.hpp"
#include "partita/nn/parameters.hpp"

namespace partita::nn {

namespace detail {

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

/// gradient += decay * value, for the parameters that decay.
template <class T, class Device>
void decay_weights(parameters<T, Device>& set) {
  for (auto& p : set.list())
    if (const T d = static_cast<T>(p.decay()); d != T(0))
      zip(p.gradient(), p.value(), p.gradient(), linear_combination<T>{1, d});
}

}  // namespace detail

/// w -= rate * (g + decay * w), decay as each parameter has it.
template <class T, class Device>
class sgd {
 public:
  explicit sgd(double rate) : rate_(rate) {}

  void step(parameters<T, Device>& set) {
    detail::decay_weights(set);
    zip(set.values(), set.gradients(), set.values(), linear_combination<T>{1, -static_cast<T>(rate_)});
  }

 private:
  double rate_;
};

/// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) +
/// epsilon), with g + decay * w in place of g for parameters that decay. Source: Kingma, Ba (ICLR 2015),
/// algorithm 1.
template <class T, class Device>
class adam {
 public:
  using matrix = dense<T, replicated, Device>;

  /// What a step depends on beside the parameters, to be kept and given back: m and v (1 x as many as there
  /// are parameters) and t.
  struct state {
    matrix first_moment, second_moment;
    int steps = 0;
  };

  explicit adam(double rate = 0.01) : rate_(rate) {}

  /// The state for steps of this set: zeros before the first one.
  state& state_of(const parameters<T, Device>& set) {
    const matrix_shape shape = set.values().shape();
    if (!state_ || state_->first_moment.shape() != shape) {
      state_.emplace(state{matrix(set.mesh(), shape), matrix(set.mesh(), shape), 0});
      fill(state_->first_moment, T(0));
      fill(state_->second_moment, T(0));
    }
    return *state_;
  }

  void step(parameters<T, Device>& set) {
    auto& [first, second, steps] = state_of(set);
    detail::decay_weights(set);
    ++steps;
    const T correct_first = static_cast<T>(1 / (1 - std::pow(beta_first, steps)));
    const T correct_second = static_cast<T>(1 / (1 - std::pow(beta_second, steps)));
    const T b1 = T(beta_first), b2 = T(beta_second);
    matrix& gradient = set.gradients();
    zip(first, gradient, first, linear_combination<T>{b1, 1 - b1});
    zip(second, gradient, second, detail::second_moment<T>{b2});
    zip(first, second, gradient,
        detail::adam_direction<T>{static_cast<T>(rate_), correct_first, correct_second, T(epsilon)});
    zip(set.values(), gradient, set.values(), std::minus<>{});
  }

 private:
  static constexpr double beta_first = 0.9, beta_second = 0.999, epsilon = 1e-8;

  double rate_;
  std::optional<state> state_;
};

}  // namespace partita::nn
