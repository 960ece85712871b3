// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sampled dense-dense products, under every policy.

#include "partita/algebra/edge_spmm.hpp"
#include "partita/local/chunked_edges.hpp"

namespace partita {

/// A planned E = A's pattern o (Y X^T): e(v, u, h) = sum over the columns j of head h of y(v, j) x(u, j). E
/// has the pattern of A (m x k); Y (m x f) and X (k x f) are in a layout that A can multiply, heads side by
/// side.
///
/// Collective over the mesh: constructor and call. What travels: X as in spmm with A stationary, all of Y's
/// rows to the ranks that share them, and an all-reduce of E's values along the axes that partition the
/// columns of a dot product. Throws shape_error for layouts that cannot be multiplied, heads that do not
/// divide the width, and operands that do not match the plan.
template <class T, class Device>
class sddmm_plan {
 public:
  using edges = edge_matrix<T, Device>;

  /// With the pattern, width and heads of another plan, sharing its row exchange of X.
  explicit sddmm_plan(const edge_spmm_plan<T, Device>& like)
      : schedule_(like.schedule_), exact_(like.exact_), spread_(*schedule_) {}
  /// For Y and X with the layout and blocking of x.
  template <layout A, layout X>
  sddmm_plan(const sparse<T, A, Device>& pattern, const dense<T, X, Device>& x, local_index heads = 1,
             row_exchange rows = row_exchange::automatic)
      : sddmm_plan(edge_spmm_plan<T, Device>(pattern.stored_for("sddmm_plan"), x, heads, rows)) {}

  /// e = beta e + pattern o (y x^T); e holds the values of all heads.
  template <layout Y, layout X>
  void operator()(const dense<T, Y, Device>& y, const dense<T, X, Device>& x, edges& e, T beta = T(0)) {
    const communicator& slices = along_slices();
    if (slices.size() > 1 && e.heads() != schedule_->heads())
      throw shape_error("a sampled product needs values of all heads where ranks share their columns");
    if (exact_ != nullptr) {
      schedule_->require(e, x, y);
      return exact_->sample(y.local(), x.local(), e, beta);
    }
    parts(y, x, e, slices.rank() > 0 ? T(0) : beta);
    if (slices.size() > 1) slices.all_reduce(e.values());
  }

  /// As above without the final all-reduce: each rank adds up only its own columns.
  template <layout Y, layout X>
  void parts(const dense<T, Y, Device>& y, const dense<T, X, Device>& x, edges& e, T beta = T(0)) {
    schedule_->require(e, x, y);
    parts(y.local(), x.local(), e, beta);
  }
  /// Axes along which ranks hold contributions to the same value.
  axis_set summed_axes() const { return schedule_->spread().cols; }

  /// What this rank receives in one call, and in one call without the final all-reduce, in closed form.
  traffic predicted() const {
    if (exact_ != nullptr) return exact_->predicted_sample();
    comm::collective sums;
    sums.kind = operation::all_reduce;
    sums.count = static_cast<global_index>(schedule_->pattern().local()->nonzeros) * schedule_->heads();
    const auto& m = schedule_->pattern().mesh();
    return predicted_parts() + received(sums, partition::rank_in_group(m.shape(), summed_axes(), m.at()),
                                        m.shape().size(summed_axes()));
  }
  traffic predicted_parts() const {
    return schedule_->stages().plan().predicted_stages() + spread_.predicted();
  }

 private:
  void parts(matrix_view<const T> y, matrix_view<const T> x, edges& e, T beta) {
    const matrix_view<const T> y_rows = spread_(y);  // (A's rows, columns here)
    T* const values = e.values().data();
    const local::head_slice slice = schedule_->slice(e);
    auto& stages = schedule_->stages();
    std::size_t number = 0;
    stages.for_stages(x, {}, 0, [&](std::size_t, const local::csr_slice<T>& part, auto x_rows, T, auto) {
      local::chunked::edge_dot(stages.queue(), schedule_->passes(), number++, part.entries, slice,
                               part.rows_of(y_rows), x_rows, beta, part.values_in(values, slice.heads));
    });
  }
  const communicator& along_slices() const { return schedule_->pattern().mesh().along(summed_axes()); }

  std::shared_ptr<algebra::detail::edge_schedule<T, Device>> schedule_;
  std::shared_ptr<algebra::edge_products<T, Device>> exact_;  ///< as in edge_spmm_plan
  algebra::detail::spread_rows<T, Device> spread_;
};

}  // namespace partita
