// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Adam on the rows of a distributed matrix that have a gradient. Local; no communication.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "partita/comm/self.hpp"
#include "partita/nn/optimizer.hpp"

namespace partita::nn {

namespace detail {

/// A step of Adam on column j of the i-th of some rows of X; returns the gradient. Rows differ, so entries
/// may be computed in any order.
template <class T>
struct adam_on_row {
  const global_index* rows;  ///< within the block of X; null: all of them
  T *value, *first, *second;
  global_index columns;
  adam_direction<T> direction;

  constexpr T operator()(global_index i, global_index j, T g) const {
    const global_index at = (rows == nullptr ? i : rows[i]) * columns + j;
    first[at] = base::linear_combination<T>{T(adam_first), 1 - T(adam_first)}(first[at], g);
    second[at] = second_moment<T>{T(adam_second)}(second[at], g);
    value[at] -= direction(first[at], second[at]);
    return g;
  }
};

}  // namespace detail

/// Adam (see nn::adam) on some rows of X (n x w), in any layout in which each row is on the rank that has its
/// gradient, whole or cut by columns. Rows that are not in a step keep their values and their moments, bit
/// for bit: moments decay only in steps that the row is in, while the bias correction counts all steps. Since
/// a moment of 0 stays 0 under a gradient of 0, rows that never had a gradient may be in a step or not: both
/// leave them as they are.
///
/// Local; no communication: every rank gives the rows of its own block. Memory: two matrices like X. Sources:
/// Kingma, Ba (ICLR 2015), algorithm 1; the lazy form is that of PyTorch's SparseAdam.
template <class T, class Device>
class sparse_adam {
 public:
  using matrix = dense<T, dynamic_layout, Device>;

  /// Optimiser state, for checkpointing: m and v (placed like X) and t.
  struct state {
    matrix first_moment, second_moment;
    int steps = 0;
  };

  explicit sparse_adam(double rate = 0.01) : rate_(rate) {}
  /// The learning rate of the steps to come.
  void set_rate(double rate) { rate_ = rate; }

  /// The state for X; zeros before the first step.
  template <layout L>
  state& state_of(const dense<T, L, Device>& x) {
    if (!state_ || !placed_like(state_->first_moment, x)) {
      const auto made = [&] { return matrix(x.mesh(), x.layout(), x.row_blocking(), x.col_blocking()); };
      state_.emplace(state{made(), made(), 0});
      fill(state_->first_moment, T(0));
      fill(state_->second_moment, T(0));
    }
    return *state_;
  }

  /// A step on rows of this rank's block, given as indices within it, each once, for their gradients g (rows
  /// x columns of the block, on a mesh of one rank). Every rank must call, with no rows if need be, as steps
  /// are counted. Throws shape_error unless g has this shape.
  template <layout L, layout G>
  void step(dense<T, L, Device>& x, const std::vector<global_index>& rows, dense<T, G, Device>& g) {
    const matrix_shape wanted{static_cast<global_index>(rows.size()), x.col_range().size()};
    if (g.shape() != wanted || g.mesh().size() != 1)
      base::throw_error<shape_error>({"a step on ", rows.size(), " rows of ", wanted.cols,
                                      " columns was given ", g.shape(), " on mesh ", g.mesh().shape()});
    rows_.grow(x.mesh().queue(), rows.size());
    copy(x.mesh().queue(), std::span<const global_index>(rows), rows_.span());
    move(x, rows_.data(), g);
  }
  /// A step on all rows, for a gradient placed like X. Throws shape_error otherwise.
  template <layout L, layout G>
  void step(dense<T, L, Device>& x, dense<T, G, Device>& g) {
    if (!placed_like(g, x))
      base::throw_error<shape_error>({"a gradient of ", g.shape(), ", ", g.layout(),
                                      ", is not placed like X of ", x.shape(), ", ", x.layout()});
    const mesh<Device> alone(self::world(), mesh_shape(), x.mesh().queue());
    auto block = matrix::view(alone, replicated, {x.row_range().size(), x.col_range().size()}, g.values());
    move(x, nullptr, block);
  }

 private:
  template <class Matrix, layout L>
  static bool placed_like(const Matrix& m, const dense<T, L, Device>& x) {
    return m.layout() == x.layout() && m.row_blocking() == x.row_blocking() &&
           m.col_blocking() == x.col_blocking();
  }
  template <layout L, layout G>
  void move(dense<T, L, Device>& x, const global_index* rows, dense<T, G, Device>& g) {
    auto& [first, second, steps] = state_of(x);
    ++steps;
    const detail::adam_on_row<T> step_of{rows,
                                         x.values().data(),
                                         first.values().data(),
                                         second.values().data(),
                                         x.col_range().size(),
                                         detail::adam_direction_at<T>(steps, rate_)};
    transform_indexed(g, g, step_of);
  }

  double rate_;
  std::optional<state> state_;
  buffer<global_index, Device> rows_;
};

}  // namespace partita::nn
