// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Optimisers: steps from summed gradients, replicated on every rank. Local; no communication.

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

/// Kingma and Ba's decay of the moments.
inline constexpr double adam_first = 0.9, adam_second = 0.999;

/// What Adam subtracts in step t = 1, 2, ..., with their epsilon.
template <class T>
adam_direction<T> adam_direction_at(int t, double rate) {
  return {static_cast<T>(rate), static_cast<T>(1 / (1 - std::pow(adam_first, t))),
          static_cast<T>(1 / (1 - std::pow(adam_second, t))), T(1e-8)};
}

/// gradient += decay * value, for the parameters with weight decay.
template <class T, class Device>
void decay_weights(parameters<T, Device>& set) {
  for (auto& p : set.list())
    if (const T d = static_cast<T>(p.decay()); d != T(0))
      zip(p.gradient(), p.value(), p.gradient(), linear_combination<T>{1, d});
}

}  // namespace detail

/// Gradient descent: w -= rate * (g + decay * w), with the weight decay of each parameter.
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
/// epsilon), with g + decay * w in place of g for parameters with weight decay. Source: Kingma, Ba (ICLR
/// 2015), algorithm 1.
template <class T, class Device>
class adam {
 public:
  using matrix = dense<T, replicated, Device>;

  /// Optimiser state, for checkpointing: m and v (1 x number of parameter elements) and t.
  struct state {
    matrix first_moment, second_moment;
    int steps = 0;
  };

  explicit adam(double rate = 0.01) : rate_(rate) {}

  /// The state for this parameter set; zeros before the first step.
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
    const T b1 = T(detail::adam_first), b2 = T(detail::adam_second);
    matrix& gradient = set.gradients();
    zip(first, gradient, first, linear_combination<T>{b1, 1 - b1});
    zip(second, gradient, second, detail::second_moment<T>{b2});
    zip(first, second, gradient, detail::adam_direction_at<T>(steps, rate_));
    zip(set.values(), gradient, set.values(), std::minus<>{});
  }

 private:
  double rate_;
  std::optional<state> state_;
};

}  // namespace partita::nn
