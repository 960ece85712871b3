// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parameters of messages, column by column, and the sums of their gradients.

#include <utility>

#include "partita/local/chunked.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita::algebra::detail {

/// x(i, j / each).
template <class T>
struct repeated_columns {
  matrix_view<const T> x;
  local_index each;
  constexpr T operator()(local_index i, local_index j, T) const { return x(i, j / each); }
};

/// y(i, j) + the sum over k < each of x(i, j each + k).
template <class T>
struct summed_columns {
  matrix_view<const T> x;
  local_index each;
  constexpr T operator()(local_index i, local_index j, T y) const {
    T sum = 0;
    for (local_index k = 0; k < each; ++k) sum += x(i, j * each + k);
    return y + sum;
  }
};

/// The parameters of f, K x c, for K x w columns where c divides w, and their gradients.
///
/// What travels in finish: an all-reduce of K w elements over the ranks that have different entries or
/// columns, if the sum over the ranks is wanted.
template <class T, class Device>
class message_parameters {
 public:
  using matrix = dense<T, replicated, Device>;

  /// `axes`: along which ranks have different entries or columns; `here`: the columns of this rank.
  message_parameters(const mesh<Device>& m, matrix_shape shape, axis_set axes, interval here)
      : axes_(axes), here_(here), all_(m, shape), gradient_(m, shape) {}

  /// Throws shape_error unless p fits.
  void require(const matrix* p) const {
    const matrix_shape wanted = all_.shape();
    if (wanted.rows == 0 && p == nullptr) return;
    if (p != nullptr && p->shape().rows == wanted.rows && p->shape().cols > 0 &&
        wanted.cols % p->shape().cols == 0)
      return;
    base::throw_error<shape_error>({"messages with ", wanted.rows, " parameters and a width of ", wanted.cols,
                                    " were given parameters of ", p == nullptr ? matrix_shape{} : p->shape(),
                                    "; their columns must divide the width"});
  }
  /// The parameters of the columns here.
  matrix_view<const T> columns(const matrix* p) {
    if (p == nullptr) return {nullptr, 0, static_cast<local_index>(here_.size()), 0};
    if (p->shape() == all_.shape()) return here(p->local());
    local::chunked::transform_indexed(queue(), repeated_columns<T>{p->local(), each(*p)}, all_.local(),
                                      all_.local());
    return here(std::as_const(all_).local());
  }
  /// Begins sums for the columns here.
  matrix_view<T> begin() {
    if (all_.shape().rows > 0) local::chunked::fill(queue(), T(0), gradient_.local());
    return here(gradient_.local());
  }
  /// dp += these sums, or the sums of all ranks.
  void finish(matrix& dp, bool of_all_ranks) {
    const mesh<Device>& m = all_.mesh();
    if (of_all_ranks)
      m.sum_along(axes_, gradient_.values());
    else if (partition::rank_in_group(m.shape(), partition::every_axis - axes_, m.at()) > 0)
      return;  // another rank has the same
    add(dp);
  }
  /// The sums of all columns, and dp += these.
  matrix_view<T> all_sums() { return gradient_.local(); }
  void add(matrix& dp) {
    local::chunked::transform_indexed(queue(), summed_columns<T>{std::as_const(gradient_).local(), each(dp)},
                                      dp.local(), dp.local());
  }
  global_index rows() const { return all_.shape().rows; }
  global_index elements() const { return rows() * all_.shape().cols; }
  traffic predicted() const { return all_.mesh().all_reduced(axes_, elements()); }

 private:
  const device_queue<Device>& queue() const { return all_.mesh().queue(); }
  local_index each(const matrix& p) const {
    return static_cast<local_index>(all_.shape().cols / p.shape().cols);
  }
  template <class View>
  View here(View x) const {
    return x.block(0, static_cast<local_index>(here_.begin), x.rows, static_cast<local_index>(here_.size()));
  }

  axis_set axes_;
  interval here_;
  matrix all_, gradient_;
};

}  // namespace partita::algebra::detail
