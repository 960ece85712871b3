// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Optimisers: steps from summed gradients, replicated on every rank. Local; no communication.

#include <cmath>
#include <cstddef>
#include <optional>

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

/// g + decay w; g where there is no decay.
template <class T>
constexpr T decayed(T decay, T g, T value) {
  return decay == T(0) ? g : base::linear_combination<T>{1, decay}(g, value);
}

template <class T>
struct sgd_step {
  T decay, rate;
  constexpr void operator()(T g, T& value) const {
    value = base::linear_combination<T>{1, -rate}(value, decayed(decay, g, value));
  }
};

template <class T>
struct adam_step {
  T decay;
  adam_direction<T> direction;

  constexpr void operator()(T g, T& value, T& first, T& second) const {
    const T slope = decayed(decay, g, value);
    first = base::linear_combination<T>{T(adam_first), 1 - T(adam_first)}(first, slope);
    second = second_moment<T>{T(adam_second)}(second, slope);
    value -= direction(first, second);
  }
};

/// One pass, step(decay)(gradient, value, elements of the states ...), over each run of parameters with the
/// same weight decay. States are placed like set.values().
template <class T, class Device, class Step, class... State>
void update(parameters<T, Device>& set, Step step, State&... states) {
  const auto size_of = [](const parameter<T, Device>& p) {
    return static_cast<std::size_t>(p.shape().rows * p.shape().cols);
  };
  std::size_t begin = 0;
  for (auto p = set.list().begin(); p != set.list().end();) {
    const double decay = p->decay();
    std::size_t count = 0;
    for (; p != set.list().end() && p->decay() == decay; ++p) count += size_of(*p);
    const auto part = [&](dense<T, replicated, Device>& m) {
      return dense<T, replicated, Device>::view(set.mesh(), replicated, {1, static_cast<global_index>(count)},
                                                m.values().subspan(begin, count));
    };
    [&](auto gradient, auto... views) { algebra::update(gradient, step(static_cast<T>(decay)), views...); }(
        part(set.gradients()), part(set.values()), part(states)...);
    begin += count;
  }
}

}  // namespace detail

/// Gradient descent: w -= rate * (g + decay * w), with the weight decay of each parameter.
template <class T, class Device>
class sgd {
 public:
  explicit sgd(double rate) : rate_(rate) {}

  void step(parameters<T, Device>& set) {
    detail::update(set, [&](T decay) { return detail::sgd_step<T>{decay, static_cast<T>(rate_)}; });
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
    const auto direction = detail::adam_direction_at<T>(++steps, rate_);
    const auto step_of = [&](T decay) { return detail::adam_step<T>{decay, direction}; };
    detail::update(set, step_of, first, second);
  }

 private:
  double rate_;
  std::optional<state> state_;
};

}  // namespace partita::nn
