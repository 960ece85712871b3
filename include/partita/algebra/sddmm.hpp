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
/// cut a sum. X and Y lie where the pattern multiplies them. Throws shape_error for layouts that cannot be
/// multiplied, heads that do not divide the width, and operands that are not those planned for.
template <class T, class Place>
class edge_products {
 public:
  using edges = edge_values<T, Place>;

  /// For X and Y in layout `l`, columns cut by `features`.
  template <layout A>
  edge_products(const sparse<T, A, Place>& pattern, layout l, const blocking& features, local_index heads = 1,
                spmm_options options = {})
      : pattern_(pattern),
        layout_(l),
        features_(features),
        heads_(heads),
        forward_(pattern.mesh(), pattern.local(), pattern.row_blocking(), pattern.col_blocking(), features,
                 pattern.layout(), fitting(pattern, l), heads, detail::edge_heads::all, options.rows),
        backward_(pattern.mesh(), pattern.local(), pattern.col_blocking(), features, pattern.layout(), l) {}
  /// For matrices like x.
  template <layout A, layout X>
  edge_products(const sparse<T, A, Place>& pattern, const dense<T, X, Place>& x, local_index heads = 1,
                spmm_options options = {})
      : edge_products(pattern, x.layout(), x.col_blocking(), heads, options) {
    static_assert(
        detail::may_be_multipliable<A, X>,
        "these layouts of the pattern and of X cannot be multiplied: the axes that cut A do not fit "
        "those that cut X");
  }

  /// e(v, u) = beta e(v, u) + sum over the columns j of each head of y(v, j) x(u, j).
  template <layout Y, layout X>
  void sddmm(const dense<T, Y, Place>& y, const dense<T, X, Place>& x, edges& e, T beta = T(0)) {
    require(e);
    require(y, pattern_.row_blocking());
    require(x, pattern_.col_blocking());
    const auto& slices = x.mesh().along(forward_.summed_axes());
    forward_.dots(y.local(), x.local(), slices.rank() > 0 ? T(0) : beta, e.values().data());
    if (slices.size() > 1) slices.all_reduce(e.values());
  }

  /// y(v, j) = sum over u of e(v, u, head of j) x(u, j).
  template <layout X, layout Y>
  void multiply(const edges& e, const dense<T, X, Place>& x, dense<T, Y, Place>& y) {
    require(e);
    require(x, pattern_.col_blocking());
    require(y, pattern_.row_blocking());
    forward_.multiply(e.values().data(), x.local(), y.local());
  }

  /// x(u, j) = sum over v of e(v, u, head of j) y(v, j): the same blocks read the other way.
  template <layout Y, layout X>
  void multiply_transposed(const edges& e, const dense<T, Y, Place>& y, dense<T, X, Place>& x) {
    require(e);
    require(y, pattern_.row_blocking());
    require(x, pattern_.col_blocking());
    backward_(e.values().data(), forward_.slice(), forward_.spread(y.local()), x.local());
  }

 private:
  template <layout A>
  static layout fitting(const sparse<T, A, Place>& pattern, layout x) {
    if (!multipliable(pattern.layout(), x)) detail::throw_unfit(pattern, x);
    return x;
  }
  void require(const edges& e) const {
    if (e.pattern().local() != pattern_.local() || e.heads() != heads_)
      throw shape_error("edge products over a pattern of " + to_string(pattern_.shape()) + " and " +
                        std::to_string(heads_) + " heads were given values of " + std::to_string(e.heads()) +
                        " heads over a pattern of " + to_string(e.pattern().shape()) +
                        (e.heads() == heads_ ? ", which is another one" : ""));
  }
  template <layout X>
  void require(const dense<T, X, Place>& x, const blocking& rows_of_x) const {
    if (x.layout() != layout_ || !(x.row_blocking() == rows_of_x) || !(x.col_blocking() == features_))
      throw shape_error("edge products over a pattern of " + to_string(pattern_.shape()) +
                        " and a width of " + std::to_string(features_.size()) + " were given a matrix of " +
                        to_string(x.shape()) + ", or blocks cut elsewhere");
  }

  sparse<T, dynamic_layout, Place> pattern_;
  layout layout_;
  blocking features_;
  local_index heads_;
  detail::edge_schedule<T, Place> forward_;
  detail::transposed_edge_schedule<T, Place> backward_;
};

}  // namespace partita
