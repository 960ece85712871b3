// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Optimisers: steps from summed gradients, replicated on every rank. Local; no communication.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "partita/algebra/vectors.hpp"
#include "partita/base/function.hpp"
#include "partita/memory/captured.hpp"
#include "partita/nn/parameters.hpp"

namespace partita::nn {

namespace detail {

/// decay v + (1 - decay) g^2.
template <class T>
struct second_moment {
  T decay;
  constexpr T operator()(T v, T g) const { return decay * v + (1 - decay) * g * g; }
};

/// rate * (m * correct_first) / (sqrt(v * correct_second) + epsilon). `Number`: T, or one that differs from
/// step to step of work that is done again.
template <class T, class Number = T>
struct adam_direction {
  Number rate, correct_first, correct_second;
  T epsilon;
  constexpr T operator()(T m, T v) const {
    return rate * (m * correct_first) / (std::sqrt(v * correct_second) + epsilon);
  }
};

/// Kingma and Ba's decay of the moments.
inline constexpr double adam_first = 0.9, adam_second = 0.999;

/// And epsilon; the correction of a moment with this decay in step t = 1, 2, ...
inline constexpr double adam_epsilon = 1e-8;
template <class T>
T adam_correction(double decay, int t) {
  return static_cast<T>(1 / (1 - std::pow(decay, t)));
}

/// What Adam subtracts in step t.
template <class T>
adam_direction<T> adam_direction_at(int t, double rate) {
  return {static_cast<T>(rate), adam_correction<T>(adam_first, t), adam_correction<T>(adam_second, t),
          T(adam_epsilon)};
}

/// g + decay w; g where there is no decay.
template <class T>
constexpr T decayed(T decay, T g, T value) {
  return decay == T(0) ? g : base::linear_combination<T>{1, decay}(g, value);
}

/// w - rate g.
template <class T>
constexpr T moved(T value, T rate, T g) {
  return base::linear_combination<T>{1, -rate}(value, g);
}

template <class T, class Number>
struct sgd_step {
  T decay;
  Number rate;
  constexpr void operator()(T g, T& value) const { value = moved(value, T(rate), decayed(decay, g, value)); }
};

template <class T, class Number>
struct momentum_step {
  T decay;
  Number rate;
  T momentum;
  constexpr void operator()(T g, T& value, T& velocity) const {
    velocity = momentum * velocity + decayed(decay, g, value);
    value = moved(value, T(rate), velocity);
  }
};

/// `decay`: added to the gradient; `shrinks`: the factor, at most 1, by which w is multiplied first.
template <class T, class Number>
struct adam_step {
  T decay;
  Number shrinks;
  adam_direction<T, Number> direction;

  constexpr void operator()(T g, T& value, T& first, T& second) const {
    const T slope = decayed(decay, g, value);
    first = base::linear_combination<T>{T(adam_first), 1 - T(adam_first)}(first, slope);
    second = second_moment<T>{T(adam_second)}(second, slope);
    if (const T factor = shrinks; factor != T(1)) value *= factor;
    value -= direction(first, second);
  }
};

/// One step for the elements before index `second`, another from there on.
template <class Step>
struct two_steps {
  Step before, behind;
  local_index second;

  constexpr two_steps from(local_index first) const { return {before, behind, second - first}; }
  template <class T, class... State>
  constexpr void operator()(local_index j, T g, State&... states) const {
    if (j < second)
      before(g, states...);
    else
      behind(g, states...);
  }
};

/// One pass, step(decay)(gradient, value, elements of the states ...), over each run of parameters with the
/// same weight decay; on a device, where passes are short, over two at once. States are placed like
/// set.values().
template <class T, class Device, class Step, class... State>
void update(parameters<T, Device>& set, Step step, State&... states) {
  const auto size_of = [](const parameter<T, Device>& p) {
    return static_cast<std::size_t>(p.shape().rows * p.shape().cols);
  };
  const auto end = set.list().end();
  std::size_t begin = 0, count = 0;
  const auto apply = [&](const auto& f) {
    const auto part = [&](dense<T, replicated, Device>& m) {
      return dense<T, replicated, Device>::view(set.mesh(), replicated, {1, static_cast<global_index>(count)},
                                                m.values().subspan(begin, count));
    };
    [&](auto gradient, auto... views) { algebra::update(gradient, f, views...); }(
        part(set.gradients()), part(set.values()), part(states)...);
    begin += count;
  };
  auto p = set.list().begin();
  const auto step_of_run = [&] {
    const double decay = p->decay();
    for (; p != end && p->decay() == decay; ++p) count += size_of(*p);
    return step(static_cast<T>(decay));
  };
  while (p != end) {
    count = 0;
    const auto first = step_of_run();
    if constexpr (memory::enqueues<Device>)
      if (p != end) {
        const auto second = static_cast<local_index>(count);
        apply(two_steps<std::remove_const_t<decltype(first)>>{first, step_of_run(), second});
        continue;
      }
    apply(first);
  }
}

}  // namespace detail

/// The update of parameters w with gradient g, learning rate r and weight decay d in step t = 1, 2, ...:
///
/// - `adam`: with s = g + d w, m = b1 m + (1 - b1) s and v = b2 v + (1 - b2) s^2,
///   w -= r (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon), with b1 = 0.9, b2 = 0.999, epsilon = 1e-8.
///   Source: Kingma, Ba (ICLR 2015), algorithm 1.
/// - `adamw`: the same with s = g, after w -= r d w. Source: Loshchilov, Hutter (ICLR 2019), algorithm 2.
/// - `sgd`: u = momentum u + g + d w; w -= r u.
enum class update_rule : std::uint8_t { adam, adamw, sgd };

/// The update rule and learning rate of an optimiser. `momentum`: of update_rule::sgd, in [0, 1).
struct optimizer_options {
  update_rule rule = update_rule::adam;
  double rate = 0.01;
  double momentum = 0;
};

/// Steps of parameters from their gradients. Every rank has the same parameters and gradients, and takes the
/// same steps. Local; no communication.
template <class T, class Device>
class optimizer {
 public:
  using matrix = dense<T, replicated, Device>;

  /// For checkpoints: m (for sgd with momentum, u) and v, 1 x number of parameter elements, and t. A moment
  /// that the rule does not use is 1 x 0.
  struct state {
    matrix first_moment, second_moment;
    int steps = 0;
  };

  /// Throws error unless the rate is finite and not negative, and the momentum in [0, 1), and 0 but for sgd.
  explicit optimizer(const optimizer_options& options = {}) : options_(options) {
    set_rate(options.rate);
    if (!(options.momentum >= 0 && options.momentum < 1))
      base::throw_error<error>({"a momentum of ", std::to_string(options.momentum), " is not in [0, 1)"});
    if (options.momentum != 0 && options.rule != update_rule::sgd)
      base::throw_error<error>(
          {"a momentum of ", std::to_string(options.momentum), " is for sgd; Adam has its own"});
  }

  double rate() const { return options_.rate; }
  /// The learning rate of the steps to come. Throws error unless it is finite and not negative.
  void set_rate(double rate) {
    if (!(rate >= 0 && std::isfinite(rate)))
      base::throw_error<error>({"a learning rate of ", std::to_string(rate), " is negative or not finite"});
    options_.rate = rate;
  }

  /// The state for this parameter set; zeros before the first step.
  state& state_of(const parameters<T, Device>& set);

  /// `numbers`: of a recorded step. Each replay uses the learning rate that is set by then; the set and this
  /// optimiser must not move meanwhile.
  void step(parameters<T, Device>& set, memory::step_numbers* numbers = nullptr);

 private:
  using number = std::conditional_t<memory::enqueues<Device>, base::step_number<T>, T>;

  optimizer_options options_;
  std::optional<state> state_;
};

template <class T, class Device>
typename optimizer<T, Device>::state& optimizer<T, Device>::state_of(const parameters<T, Device>& set) {
  const matrix_shape all = set.values().shape(), none{1, 0};
  const bool adam = options_.rule != update_rule::sgd;
  const matrix_shape first = adam || options_.momentum != 0 ? all : none, second = adam ? all : none;
  if (!state_ || state_->first_moment.shape() != first || state_->second_moment.shape() != second) {
    state_.emplace(state{matrix(set.mesh(), first), matrix(set.mesh(), second), 0});
    fill(state_->first_moment, T(0));
    fill(state_->second_moment, T(0));
  }
  return *state_;
}

template <class T, class Device>
void optimizer<T, Device>::step(parameters<T, Device>& set, memory::step_numbers* numbers) {
  state& now = state_of(set);
  ++now.steps;
  if (numbers != nullptr) numbers->before_each([&now] { ++now.steps; });
  const auto number_of = [&](auto f) {
    return numbers == nullptr ? number(f())
                              : number(numbers->template number<T>([f](std::uint64_t) { return f(); }));
  };
  const auto rate_of_step = [this] { return static_cast<T>(options_.rate); };
  const number rate = number_of(rate_of_step);
  if (options_.rule == update_rule::sgd) {
    const T momentum = static_cast<T>(options_.momentum);
    if (momentum == T(0))
      return detail::update(set, [&](T decay) { return detail::sgd_step<T, number>{decay, rate}; });
    return detail::update(
        set,
        [&](T decay) {
          return detail::momentum_step<T, number>{decay, rate, momentum};
        },
        now.first_moment);
  }
  const auto correction = [&](double decay) {
    return number_of([&now, decay] { return detail::adam_correction<T>(decay, now.steps); });
  };
  const detail::adam_direction<T, number> direction{rate, correction(detail::adam_first),
                                                    correction(detail::adam_second), T(detail::adam_epsilon)};
  detail::update(
      set,
      [&](T decay) -> detail::adam_step<T, number> {
        if (options_.rule == update_rule::adam) return {decay, T(1), direction};
        return {0, number_of([=] { return 1 - rate_of_step() * decay; }), direction};
      },
      now.first_moment, now.second_moment);
}

/// The Euclidean norm of all gradients, which have been summed over the ranks. Local; no communication.
template <class T, class Device>
double gradient_norm(parameters<T, Device>& set) {
  // No rank has a part of the sum.
  const auto gradients = dense<T, replicated, Device>::view(
      set.mesh().with_exact_sums(), set.gradients().shape(), set.gradients().values());  // (1, elements)
  auto* const far = far_of(set.mesh().queue());
  const bool rehearsed =
      far != nullptr && far->forecast() != nullptr;  // without numbers that norm could scale
  return static_cast<double>(rehearsed ? dot(gradients, gradients) : norm(gradients));
}

/// Scales all gradients by `most` / (norm + 1e-6) if their Euclidean norm exceeds `most`, as torch does;
/// returns the norm. The gradients have been summed over the ranks; `norm` may include other gradients, such
/// as those of other stages. Local; no communication. Over far memory the traffic does not depend on the
/// norm. Throws error unless `most` is positive.
template <class T, class Device>
double clip_gradients(parameters<T, Device>& set, double most, double norm) {
  if (!(most > 0))
    base::throw_error<error>({"gradients are clipped to a positive norm, not to ", std::to_string(most)});
  const double factor = std::min(1.0, most / (norm + 1e-6));
  if (factor < 1 || far_of(set.mesh().queue()) != nullptr)
    transform(set.gradients(), set.gradients(), base::scaled<T>{static_cast<T>(factor)});
  return norm;
}
template <class T, class Device>
double clip_gradients(parameters<T, Device>& set, double most) {
  return clip_gradients(set, most, gradient_norm(set));
}

/// An optimizer with update_rule::adam.
template <class T, class Device>
class adam : public optimizer<T, Device> {
 public:
  explicit adam(double rate = 0.01) : optimizer<T, Device>({update_rule::adam, rate}) {}
};

/// An optimizer with update_rule::adamw.
template <class T, class Device>
class adamw : public optimizer<T, Device> {
 public:
  explicit adamw(double rate = 0.01) : optimizer<T, Device>({update_rule::adamw, rate}) {}
};

/// An optimizer with update_rule::sgd.
template <class T, class Device>
class sgd : public optimizer<T, Device> {
 public:
  explicit sgd(double rate, double momentum = 0) : optimizer<T, Device>({update_rule::sgd, rate, momentum}) {}
};

}  // namespace partita::nn
