#pragma once
/// Sampled products, and products with edge values, under every policy. A stays; the same blocks travel as in
/// spmm.

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
        heads_(heads),
        head_width_(narrow(features.size() / std::max(heads, 1), "the width of a head")),
        schedule_(pattern.mesh(), pattern.local(), pattern.row_blocking(), pattern.col_blocking(), features,
                  SparseLayout::value, Layout::value, {stationary::sparse_stays, options.rows}),
        spread_rows_(pattern.mesh(), pattern.row_blocking(), features, Layout::value, row_cut()),
        return_rows_(pattern.mesh(), pattern.col_blocking(), features, partial_cut(), Layout::value) {
    if (heads < 1 || features.size() % heads != 0)
      throw shape_error(std::to_string(heads) + " heads do not divide a width of " +
                        std::to_string(features.size()));
    const auto& q = pattern.mesh().queue();
    rows_ = buffer<T, Place>(q, static_cast<std::size_t>(spread_rows_.new_block().size()));
    const global_index width = spread_rows_.new_block().cols.size();
    global_index columns = 0;
    for (local_index w : pattern.local()->widths) {
      columns += w;
      counts_.push_back(w * width);
    }
    partial_ = buffer<T, Place>(q, static_cast<std::size_t>(columns * width));
    mine_ = buffer<T, Place>(q, static_cast<std::size_t>(return_rows_.old_block().size()));
  }

  /// e(v, u) = beta e(v, u) + sum over the columns j of each head of y(v, j) x(u, j).
  void sddmm(const matrix& y, const matrix& x, edges& e, T beta = T(0)) {
    require(y, pattern_.row_blocking());
    require(x, pattern_.col_blocking());
    spread_rows_(y.local(), rows());
    const auto& slices = x.mesh().along(summed_axes());
    T* const values = e.values().data();
    const bool partial = slices.size() > 1;
    if (partial && beta != T(0) && slices.rank() > 0) beta = T(0);
    schedule_.visit(x.local(), [&](csr_view<T> tile, matrix_view<const T> x_rows) {
      kernels<Place>::edge_dot(x.mesh().queue(), tile, schedule_.slice(heads_, head_width_), rows(), x_rows,
                               beta, values);
    });
    if (partial) slices.all_reduce(e.values());
  }

  /// y(v, j) = sum over u of e(v, u, head of j) x(u, j).
  void multiply(const edges& e, const matrix& x, matrix& y) {
    require(x, pattern_.col_blocking());
    require(y, pattern_.row_blocking());
    schedule_.use_edges(e.values().data(), heads_, head_width_);
    schedule_(x.local(), y.local());
  }

  /// x(u, j) = sum over v of e(v, u, head of j) y(v, j): the same blocks read the other way.
  void multiply_transposed(const edges& e, const matrix& y, matrix& x) {
    require(y, pattern_.row_blocking());
    require(x, pattern_.col_blocking());
    const auto& q = x.mesh().queue();
    spread_rows_(y.local(), rows());
    const auto width = static_cast<local_index>(rows().cols);
    T* to = partial_.data();
    e.for_tiles([&](csr_view<T> tile) {
      kernels<Place>::edge_multiply_transposed(q, tile, schedule_.slice(heads_, head_width_),
                                               e.values().data(), rows(), T(0),
                                               matrix_view<T>{to, tile.cols, width, width});
      to += static_cast<std::ptrdiff_t>(tile.cols) * width;
    });
    const rectangle block = return_rows_.old_block();
    const matrix_view<T> mine{mine_.data(), static_cast<local_index>(block.rows.size()), width, width};
    const auto& group = x.mesh().along(axis::row);
    if (counts_.size() > 1)
      group.reduce_scatter(std::span<const T>(partial_.span()), std::span<const global_index>(counts_),
                           mine_.span());
    else
      kernels<Place>::copy(q, matrix_view<const T>{partial_.data(), mine.rows, width, width}, mine);
    return_rows_(mine, x.local());
  }

 private:
  static constexpr bool wide = SparseLayout::value.cols.contains(axis::col);
  /// Y's rows as a rank needs them: all of A's rows, the columns of the X it multiplies.
  static constexpr cut row_cut() {
    return {SparseLayout::value.rows, wide ? Layout::value.cols - axis_set(axis::col) : Layout::value.cols};
  }
  /// The block of X that a rank sums: the sub-block its own tile counts.
  static constexpr cut partial_cut() { return {column_cut(SparseLayout::value), row_cut().cols}; }
  /// Axes that cut the features of a dot product.
  static constexpr axis_set summed_axes() { return row_cut().cols; }

  matrix_view<T> rows() {
    const rectangle r = spread_rows_.new_block();
    return {rows_.data(), static_cast<local_index>(r.rows.size()), static_cast<local_index>(r.cols.size()),
            r.cols.size()};
  }
  void require(const matrix& x, const blocking& rows_of_x) const {
    if (!(x.row_blocking() == rows_of_x) || !(x.col_blocking() == features_))
      throw shape_error("edge products over a pattern of " + to_string(pattern_.shape()) +
                        " and a width of " + std::to_string(features_.size()) + " were given a matrix of " +
                        to_string(x.shape()) + ", or blocks cut elsewhere");
  }

  sparse<T, SparseLayout, Place> pattern_;
  blocking features_;
  local_index heads_, head_width_;
  detail::spmm_schedule<T, Place> schedule_;
  redistribution<T, Place> spread_rows_, return_rows_;
  std::vector<global_index> counts_;
  buffer<T, Place> rows_, partial_, mine_;
};

}  // namespace partita
