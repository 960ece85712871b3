#pragma once
/// Y = A X between vertex_rows, where the neural-network part works, by way of the policy's own layout.

#include <optional>

#include "partita/algebra/spmm.hpp"

namespace partita {

/// A planned Y = A X (n x f), X and Y in vertex_rows; `Policy` says how the product is done.
///
/// Every rank of the mesh must construct and run it. What travels: X goes to the policy's dense layout, the
/// product's own traffic, and Y comes back; each way is nothing when the two layouts have the same blocks on
/// this mesh.
template <class T, class Policy, class Place>
class propagation {
  using sparse_type = sparse<T, typename Policy::sparse_layout, Place>;
  static constexpr cut outer = vertex_rows::value;
  static constexpr cut inner = Policy::dense_layout::value;
  static_assert(multipliable<typename Policy::sparse_layout, typename Policy::dense_layout>,
                "the sparse and the dense layout of this policy cannot be multiplied");

 public:
  using matrix = dense<T, vertex_rows, Place>;

  propagation(const sparse_type& a, const blocking& features, spmm_options options = {})
      : mesh_(a.mesh()),
        schedule_(a.mesh(), a.local(), a.row_blocking(), a.col_blocking(), features,
                  Policy::sparse_layout::value, inner, options) {
    if (same_blocks(mesh_.shape())) return;
    x_.emplace(mesh_, a.col_blocking(), features);
    y_.emplace(mesh_, a.row_blocking(), features);
    enter_.emplace(mesh_, a.col_blocking(), features, outer, inner);
    leave_.emplace(mesh_, a.row_blocking(), features, inner, outer);
  }

  void operator()(const matrix& x, matrix& y) {
    schedule_.require(x.row_blocking(), x.col_blocking(), y.row_blocking(), y.col_blocking());
    if (!enter_) return schedule_(x.local(), y.local());
    (*enter_)(x.local(), x_->local());
    schedule_(std::as_const(*x_).local(), y_->local());
    (*leave_)(std::as_const(*y_).local(), y.local());
  }

  /// What this rank receives in one run, in closed form.
  volume predicted() const {
    return schedule_.predicted() + (enter_ ? enter_->predicted() + leave_->predicted() : volume{});
  }

 private:
  /// The two layouts differ only in axes of one rank.
  static bool same_blocks(mesh_shape m) {
    return m.size(outer.rows - inner.rows) == 1 && m.size(inner.cols) == 1;
  }

  mesh<Place> mesh_;
  detail::spmm_schedule<T, Place> schedule_;
  std::optional<dense<T, typename Policy::dense_layout, Place>> x_, y_;
  std::optional<redistribution<T, Place>> enter_, leave_;
};

}  // namespace partita
