#pragma once
/// Sampled products, and products with edge values, under every policy. A stays; the same blocks travel as in
/// spmm.

#include "partita/algebra/edge_schedule.hpp"
#include "partita/algebra/edge_values.hpp"
#include "partita/algebra/spmm.hpp"

namespace partita {

/// Plans for one pattern and one width: E = pattern o (Y X^T), Y = E X and X = E^T Y, each head its own
/// columns.
///
/// Every rank of the mesh must construct it and call its functions. What travels: X as in spmm with A in
/// place; for Y, its rows in full to the ranks that share them; sums of partial products along the axes that
/// cut a sum. Throws shape_error when the heads do not divide the width.
template <class T, class SparseLayout, class Layout, class Place>
class edge_products {
  static_assert(multipliable<SparseLayout, Layout>,
                "these layouts of the pattern and of X cannot be multiplied: the axes that cut A do not fit "
                "those that cut X");

 public:
  using matrix = dense<T, Layout, Place>;
  using edges = edge_values<T, SparseLayout, Place>;

  edge_products(const sparse<T, SparseLayout, Place>& pattern, const blocking& features,
                local_index heads = 1, spmm_options options = {})
      : pattern_(pattern),
        features_(features),
        forward_(pattern.mesh(), pattern.local(), pattern.row_blocking(), pattern.col_blocking(), features,
                 SparseLayout::value, Layout::value, heads, detail::edge_heads::all, options.rows),
        backward_(pattern.mesh(), pattern.local(), pattern.col_blocking(), features, SparseLayout::value,
                  Layout::value) {}

  /// e(v, u) = beta e(v, u) + sum over the columns j of each head of y(v, j) x(u, j).
  void sddmm(const matrix& y, const matrix& x, edges& e, T beta = T(0)) {
    require(y, pattern_.row_blocking());
    require(x, pattern_.col_blocking());
    const auto& slices = x.mesh().along(forward_.summed_axes());
    forward_.dots(y.local(), x.local(), slices.rank() > 0 ? T(0) : beta, e.values().data());
    if (slices.size() > 1) slices.all_reduce(e.values());
  }

  /// y(v, j) = sum over u of e(v, u, head of j) x(u, j).
  void multiply(const edges& e, const matrix& x, matrix& y) {
    require(x, pattern_.col_blocking());
    require(y, pattern_.row_blocking());
    forward_.multiply(e.values().data(), x.local(), y.local());
  }

  /// x(u, j) = sum over v of e(v, u, head of j) y(v, j): the same blocks read the other way.
  void multiply_transposed(const edges& e, const matrix& y, matrix& x) {
    require(y, pattern_.row_blocking());
    require(x, pattern_.col_blocking());
    backward_(e.values().data(), forward_.slice(), forward_.spread(y.local()), x.local());
  }

 private:
  void require(const matrix& x, const blocking& rows_of_x) const {
    if (!(x.row_blocking() == rows_of_x) || !(x.col_blocking() == features_))
      throw shape_error("edge products over a pattern of " + to_string(pattern_.shape()) +
                        " and a width of " + std::to_string(features_.size()) + " were given a matrix of " +
                        to_string(x.shape()) + ", or blocks cut elsewhere");
  }

  sparse<T, SparseLayout, Place> pattern_;
  blocking features_;
  detail::edge_schedule<T, Place> forward_;
  detail::transposed_edge_schedule<T, Place> backward_;
};

}  // namespace partita
