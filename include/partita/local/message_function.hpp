// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A function of messages whose type is not known, with the same bits wherever a column stands: it works on
/// as many columns in every call.

#include <array>
#include <cstddef>

#include "partita/base/dual.hpp"
#include "partita/local/message_operands.hpp"

namespace partita::local {

/// f(source, target, edge, parameters) of 16 columns, see message_operands.
template <class T>
class message_function {
 public:
  static constexpr local_index columns = 16;
  using numbers = std::array<T, static_cast<std::size_t>(columns)>;
  /// What a message is made of, and a factor of what comes of it.
  struct inputs {
    numbers source, target, edge, factor;
    const numbers* parameters;
  };
  /// What may be asked for: the messages, or their slopes by the source, the target, the edge, and from
  /// `parameter` on by the parameters.
  enum output : std::size_t { source, target, edge, parameter };

  virtual ~message_function() = default;
  virtual std::size_t parameters() const = 0;
  virtual bool reads_targets() const = 0;
  /// factor * message.
  virtual void messages(const inputs& x, numbers& to) const = 0;
  /// factor * slope, for each of the outputs.
  virtual void slopes(const inputs& x, numbers* to) const = 0;
};

template <class F, class T>
class message_function_of final : public message_function<T> {
  using base_class = message_function<T>;
  static constexpr std::size_t count = parameter_count<F>();

 public:
  using typename base_class::inputs;
  using typename base_class::numbers;

  explicit message_function_of(const F& f) : f_(f) {}
  std::size_t parameters() const override { return count; }
  bool reads_targets() const override { return local::reads_targets<F, T>; }
  void messages(const inputs& x, numbers& to) const override {
    for (std::size_t j = 0; j < to.size(); ++j) {
      parameters_of<F, T> p{};
      for (std::size_t k = 0; k != count; ++k) p[k] = x.parameters[k][j];
      to[j] = x.factor[j] * message_of<F, T>(f_, x.source[j], x.target[j], x.edge[j], p);
    }
  }
  void slopes(const inputs& x, numbers* to) const override {
    using number = base::dual<T, 3 + static_cast<int>(count)>;
    for (std::size_t j = 0; j < x.factor.size(); ++j) {
      parameters_of<F, number> p{};
      for (std::size_t k = 0; k != count; ++k)
        p[k] = number::input(x.parameters[k][j], 3 + static_cast<int>(k));
      const number m = message_of<F, number>(f_, number::input(x.source[j], 0), number::input(x.target[j], 1),
                                             number::input(x.edge[j], 2), p);
      for (std::size_t k = 0; k < 3 + count; ++k) to[k][j] = x.factor[j] * m.slope[k];
    }
  }

 private:
  const F& f_;
};

}  // namespace partita::local
