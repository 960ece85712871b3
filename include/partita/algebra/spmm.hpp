#pragma once
/// Y = A X for every partition policy, from one schedule whose parts vanish when an axis has one rank.

#include "partita/algebra/spmm_schedule.hpp"

namespace partita {

/// Whether A and X can be multiplied where they lie: X's rows are cut by row when A's are; an axis that cuts
/// A's columns splits the sum, so the result has to be put together along it, over X's rows or (col only) X's
/// columns.
template <class SparseLayout, class DenseLayout>
concept multipliable =
    SparseLayout::value.rows == (DenseLayout::value.rows & axis_set(axis::row)) &&
    !DenseLayout::value.rows.contains(axis::col) && !DenseLayout::value.cols.contains(axis::row) &&
    !DenseLayout::value.cols.contains(axis::depth) &&
    (!DenseLayout::value.rows.contains(axis::depth) || SparseLayout::value.cols.contains(axis::depth)) &&
    (!SparseLayout::value.cols.contains(axis::col) || DenseLayout::value.cols.contains(axis::col));

/// A planned Y = A X (m x f = m x k times k x f), with X and Y in `Layout`. For A^T pass transposed(A).
///
/// Every rank of the mesh must construct it, and run it each time. What travels in a run: see spmm_schedule.
/// Throws shape_error naming the shapes when A and X do not fit.
template <class T, class SparseLayout, class Layout, class Place>
class spmm_plan {
  static_assert(
      multipliable<SparseLayout, Layout>,
      "these layouts of A and X cannot be multiplied: the axes that cut A do not fit those that cut X");

 public:
  /// `features` cuts the columns of X and Y.
  spmm_plan(const sparse<T, SparseLayout, Place>& a, const blocking& features, spmm_options options = {})
      : schedule_(a.mesh(), a.local(), a.row_blocking(), a.col_blocking(), features, SparseLayout::value,
                  Layout::value, options) {}

  void operator()(const dense<T, Layout, Place>& x, dense<T, Layout, Place>& y) {
    schedule_.require(x.row_blocking(), x.col_blocking(), y.row_blocking(), y.col_blocking());
    schedule_(x.local(), y.local());
  }

  /// What this rank receives in one run, in closed form.
  volume predicted() const { return schedule_.predicted(); }
  /// How many nonzeros this rank multiplies in one run, times the columns of X that it multiplies them with.
  global_index multiplications() const { return schedule_.multiplications(); }
  /// What was chosen for `automatic` options.
  spmm_options options() const { return schedule_.options(); }

 private:
  detail::spmm_schedule<T, Place> schedule_;
};

/// Y = A X, planned and run once. Every rank of the mesh must call.
template <class T, class SparseLayout, class Layout, class Place>
dense<T, Layout, Place> spmm(const sparse<T, SparseLayout, Place>& a, const dense<T, Layout, Place>& x,
                             spmm_options options = {}) {
  dense<T, Layout, Place> y(a.mesh(), a.row_blocking(), x.col_blocking());
  spmm_plan<T, SparseLayout, Layout, Place>(a, x.col_blocking(), options)(x, y);
  return y;
}

}  // namespace partita
