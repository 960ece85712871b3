// SPDX-License-Identifier: Apache-2.0
#pragma once
/// SpMM with an edge matrix instead of A's own values, under every policy.

#include "partita/algebra/edge_schedule.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/chunked_edges.hpp"

namespace partita {

namespace algebra {

template <class T, class Device>
class transposed_edge_spmm_plan;

}  // namespace algebra

/// A planned Y = E X: y(v, j) = sum over u of e(v, u, head of j) x(u, j). E has the pattern of A (m x k); X
/// (k x f) and Y (m x f) are in a layout that A can multiply, heads side by side. For an E over A^T pass
/// transposed(A).
///
/// Collective over the mesh: constructor and call. What travels: X as in spmm with A stationary, and sums of
/// partial products along the axes that partition A's columns; never edge values. On a reproducible mesh sums
/// are doubles, twice for double, after an all-reduce of the largest terms. Throws shape_error for layouts
/// that cannot be multiplied, heads that do not divide the width, and operands that do not match the plan.
template <class T, class Device>
class edge_spmm_plan {
 public:
  using edges = edge_matrix<T, Device>;

  /// For X and Y in layout `l`, with columns partitioned by `features`.
  template <layout A>
  edge_spmm_plan(const sparse<T, A, Device>& pattern, layout l, const blocking& features,
                 local_index heads = 1, row_exchange rows = row_exchange::automatic)
      : schedule_(std::make_shared<algebra::detail::edge_schedule<T, Device>>(
            pattern.stored_for("edge_spmm_plan"), l, features, heads, rows)) {
    if (const auto* const verbs = algebra::reproducible_verbs_of<T>(pattern.mesh()))
      exact_ = verbs->make_edge_products(schedule_);
  }
  /// For X and Y with the layout and blocking of x.
  template <layout A, layout X>
  edge_spmm_plan(const sparse<T, A, Device>& pattern, const dense<T, X, Device>& x, local_index heads = 1,
                 row_exchange rows = row_exchange::automatic)
      : edge_spmm_plan(pattern, x.layout(), x.col_blocking(), heads, rows) {
    static_assert(
        algebra::detail::may_be_multipliable<A, X>,
        "these layouts of the pattern and of X cannot be multiplied: the axes that partition A do not match "
        "those that partition X");
  }

  /// The heads whose columns this rank multiplies; edge matrices need values only for these.
  interval heads_here() const { return schedule_->heads_here(); }

  /// y = e x.
  template <layout X, layout Y>
  void operator()(const edges& e, const dense<T, X, Device>& x, dense<T, Y, Device>& y) {
    schedule_->require(e, x, y);
    if (exact_ != nullptr) return exact_->multiply(e, matrix_view<const T>(x.local()), y.local());
    multiply(e, x.local(), y.local());
  }

  /// As above with e(v, u, h) = of(t, part)(v, entry, h) for the entries of every part of tile t; rows and
  /// entries count from the start of the part, h from e's first head. The multiplying pass computes and
  /// stores e; if passes are split into chunks, of.store(passes, number, t, part, e's values), if it exists,
  /// does so in a separate pass before.
  template <class Function, layout X, layout Y>
  void compute(edges& e, const Function& of, const dense<T, X, Device>& x, dense<T, Y, Device>& y) {
    schedule_->require(e, x, y);
    compute(e, of, x.local(), y.local());
  }

  /// What this rank receives in one call, in closed form.
  traffic predicted() const {
    return exact_ != nullptr ? exact_->predicted_multiply(true) : schedule_->stages().plan().predicted();
  }

 private:
  void multiply(const edges& e, matrix_view<const T> x, matrix_view<T> y) {
    const T* const values = e.values().data();
    const local::head_slice slice = schedule_->slice(e);
    auto& stages = schedule_->stages();
    std::size_t number = 0;
    stages.for_stages(x, stages.begin(y), 0, [&](std::size_t, const auto& part, auto rows, T beta, auto out) {
      local::chunked::edge_multiply(stages.queue(), schedule_->passes(), number++, part.entries, slice,
                                    part.values_in(values, slice.heads), rows, beta, out);
    });
    stages.finish(y);
  }
  template <class Function>
  void compute(edges& e, const Function& of, matrix_view<const T> x, matrix_view<T> y) {
    T* const values = e.values().data();
    const local::head_slice slice = schedule_->slice(e);
    auto& stages = schedule_->stages();
    auto& passes = schedule_->passes();
    const auto& q = stages.queue();
    std::size_t number = 0;
    stages.for_stages(
        x, stages.begin(y), 0, [&](std::size_t t, const auto& part, auto rows, T beta, auto out) {
          T* const of_part = part.values_in(values, slice.heads);
          if constexpr (requires { of.store(passes, number, t, part, of_part); })
            local::chunked::edge_apply_multiply(
                q, passes, number++, part.entries, slice, of(t, part),
                [&](std::size_t n) { of.store(passes, n, t, part, of_part); }, of_part, rows, beta, out);
          else
            edge_apply_multiply(q, part.entries, slice, of(t, part), of_part, rows, beta, out);
        });
    stages.finish(y);
  }

  template <class, class>
  friend class sddmm_plan;
  template <class, class>
  friend class algebra::transposed_edge_spmm_plan;

  std::shared_ptr<algebra::detail::edge_schedule<T, Device>> schedule_;
  std::shared_ptr<algebra::edge_products<T, Device>> exact_;  ///< on a reproducible mesh, else null
};

namespace algebra {

/// A planned X = E^T Y from the tiles of E, without a stored transpose: x(u, j) = sum over v of e(v, u, head
/// of j) y(v, j). X (k x f), E (m x k), Y (m x f). If values over transposed(A) are available, use
/// edge_spmm_plan instead.
///
/// Collective over the mesh: constructor and call. What travels: all of Y's rows to the ranks that share
/// them, sums of partial products along row, and X, redistributed to its layout. Throws shape_error for
/// operands that do not match the plan.
template <class T, class Device>
class transposed_edge_spmm_plan {
 public:
  using edges = edge_matrix<T, Device>;

  /// With the pattern, width and heads of another plan.
  explicit transposed_edge_spmm_plan(const edge_spmm_plan<T, Device>& like) : exact_(like.exact_) {
    const auto& other = *like.schedule_;
    schedule_ = std::make_unique<detail::edge_schedule<T, Device>>(
        other.pattern(), other.operands(), other.features(), other.heads(), row_exchange::automatic,
        detail::row_flow::sums_go);
    schedule_->stages().plan().for_parts([&](std::size_t number, const local::csr_slice<T>& part) {
      schedule_->passes().prepare_inverse(schedule_->stages().queue(), number, part.entries);
    });
  }

  /// x = e^T y.
  template <layout Y, layout X>
  void operator()(const edges& e, const dense<T, Y, Device>& y, dense<T, X, Device>& x) {
    schedule_->require(e, x, y);
    if (exact_ != nullptr) return exact_->multiply_transposed(e, matrix_view<const T>(y.local()), x.local());
    multiply(e, y.local(), x.local());
  }

  /// What this rank receives in one call, in closed form.
  traffic predicted() const {
    return exact_ != nullptr ? exact_->predicted_transposed(true) : schedule_->stages().plan().predicted();
  }

 private:
  void multiply(const edges& e, matrix_view<const T> y, matrix_view<T> x) {
    const T* const values = e.values().data();
    const local::head_slice slice = schedule_->slice(e);
    auto& stages = schedule_->stages();
    std::size_t number = 0;
    stages.for_stages(y, stages.begin(x), 0, [&](std::size_t, const auto& part, auto rows, T beta, auto out) {
      local::chunked::edge_multiply_transposed(stages.queue(), schedule_->passes(), number++, part.entries,
                                               slice, part.values_in(values, slice.heads), rows, beta, out);
    });
    stages.finish(x);
  }

  std::unique_ptr<detail::edge_schedule<T, Device>> schedule_;
  std::shared_ptr<edge_products<T, Device>> exact_;  ///< as in edge_spmm_plan
};

}  // namespace algebra

}  // namespace partita
