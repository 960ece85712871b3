#pragma once
/// The schedules behind products with values on the edges of a pattern. A stays; its cuts are values, as in
/// spmm_schedule.

#include "partita/algebra/spmm_schedule.hpp"

namespace partita::detail {

/// y(v, j) = sum over u of edges(v, u, head of j) x(u, j), in place of A's own values. A must stay. What
/// travels: see spmm_schedule.
template <class T, class Place>
void multiply_edges(spmm_schedule<T, Place>& a, head_slice slice, const std::type_identity_t<T>* edges,
                    std::type_identity_t<matrix_view<const T>> x, matrix_view<T> y) {
  a.run(x, y,
        [&](std::size_t, const tile_part<T>& part, matrix_view<const T> rows, T beta, matrix_view<T> out) {
          kernels<Place>::edge_multiply(a.queue(), part.entries, slice, part.values_in(edges, slice.heads),
                                        rows, beta, out);
        });
}
/// The same with edges(v, u, h) = of(t, part)(v, e, h), e the number of the entry in a part of tile t, for
/// the heads that this rank has columns of; they are stored in the same pass. (Where only needed rows of X
/// travel, the columns of the part count those.)
template <class T, class Place, class Of>
void apply_and_multiply_edges(spmm_schedule<T, Place>& a, head_slice slice, std::type_identity_t<T>* edges,
                              Of of, std::type_identity_t<matrix_view<const T>> x, matrix_view<T> y) {
  a.run(x, y,
        [&](std::size_t t, const tile_part<T>& part, matrix_view<const T> rows, T beta, matrix_view<T> out) {
          kernels<Place>::edge_apply_multiply(a.queue(), part.entries, slice, of(t, part),
                                              part.values_in(edges, slice.heads), rows, beta, out);
        });
}

/// Which heads an array of edges has values of on a rank: all, or those that the rank has columns of.
enum class edge_heads : std::uint8_t { all, own };

/// E = pattern o (Y X^T) in parts and Y = E X, each head its own columns of X and Y.
///
/// Every rank of the mesh must construct it and call its functions. What travels: X as in spmm with A in
/// place; for the dot products Y's rows in full to the ranks that share them; for Y sums along the axes that
/// cut A's columns. Throws shape_error when the heads do not divide the width.
template <class T, class Place>
class edge_schedule {
 public:
  edge_schedule(const mesh<Place>& m, std::shared_ptr<const tiles<T, Place>> pattern, const blocking& rows,
                const blocking& cols, const blocking& features, layout sparse_cut, layout dense_cut,
                local_index heads, edge_heads kept, exchange row_exchange)
      : mesh_(m),
        row_cut_(rows_of(sparse_cut, dense_cut)),
        schedule_(m, std::move(pattern), rows, cols, features, sparse_cut, dense_cut,
                  {stationary::sparse_stays, row_exchange}, entry_values::given) {
    if (heads < 1 || features.size() % heads != 0)
      throw shape_error(std::to_string(heads) + " heads do not divide a width of " +
                        std::to_string(features.size()));
    slice_ = schedule_.slice(heads, narrow(features.size() / heads, "the width of a head"));
    if (kept == edge_heads::own) {
      const interval mine = heads_of(features.block(summed_axes(), m.at()), slice_.head_width);
      first_head_ = static_cast<local_index>(mine.begin);
      slice_ = {static_cast<local_index>(mine.size()), slice_.head_width,
                mine.empty() ? 0 : slice_.first_col - first_head_ * slice_.head_width};
    }
    if (m.shape().size((dense_cut.rows - row_cut_.rows) | (dense_cut.cols - row_cut_.cols)) == 1) return;
    spread_.emplace(m, rows, features, dense_cut, row_cut_);
    spread_rows_ = buffer<T, Place>(m.queue(), static_cast<std::size_t>(spread_->new_block().size()));
  }

  /// Y's rows as this rank needs them beside X: all of A's rows, the columns of the X it multiplies.
  static layout rows_of(layout sparse_cut, layout dense_cut) {
    const axis_set kept = sparse_cut.cols & axis_set(axis::col);
    return {sparse_cut.rows, dense_cut.cols - kept};
  }
  /// Axes that cut the columns of a dot product, so that each rank along them has a part of the sum.
  axis_set summed_axes() const { return row_cut_.cols; }
  /// The columns of the dot products among those of the heads [first_head(), first_head() + slice().heads).
  head_slice slice() const { return slice_; }
  local_index first_head() const { return first_head_; }

  /// Y's block in the cut rows_of; valid until the next call.
  matrix_view<const T> spread(matrix_view<const T> y) {
    if (!spread_) return y;
    const rectangle r = spread_->new_block();
    const matrix_view<T> rows{spread_rows_.data(), static_cast<local_index>(r.rows.size()),
                              static_cast<local_index>(r.cols.size()), r.cols.size()};
    (*spread_)(y, rows);
    return rows;
  }

  /// edges(e, h) = beta edges(e, h) + sum of y(v, j) x(u, j) over the columns j of head h that this rank has,
  /// for every entry e = (v, u) of its tiles.
  void dots(matrix_view<const T> y, matrix_view<const T> x, T beta, T* edges) {
    const matrix_view<const T> rows = spread(y);
    schedule_.visit(x, [&](std::size_t, const tile_part<T>& part, matrix_view<const T> x_rows) {
      kernels<Place>::edge_dot(mesh_.queue(), part.entries, slice_, part.rows_of(rows), x_rows, beta,
                               part.values_in(edges, slice_.heads));
    });
  }

  /// See multiply_edges and apply_and_multiply_edges.
  void multiply(const T* edges, matrix_view<const T> x, matrix_view<T> y) {
    multiply_edges(schedule_, slice_, edges, x, y);
  }
  template <class Of>
  void apply_and_multiply(T* edges, Of of, matrix_view<const T> x, matrix_view<T> y) {
    apply_and_multiply_edges(schedule_, slice_, edges, of, x, y);
  }

  /// What this rank receives in one run of each, in closed form.
  volume predicted_dots() const {
    return schedule_.predicted_visit() + (spread_ ? spread_->predicted() : volume{});
  }
  volume predicted_multiply() const { return schedule_.predicted(); }

 private:
  mesh<Place> mesh_;
  layout row_cut_;
  spmm_schedule<T, Place> schedule_;
  head_slice slice_;
  local_index first_head_ = 0;
  std::optional<redistribution<T, Place>> spread_;
  buffer<T, Place> spread_rows_;
};

/// X = E^T Y from the blocks of A, read the other way: x(u, j) = sum over v of edges(v, u, head of j) y(v,
/// j).
///
/// Every rank of the mesh must construct and run it. What travels: sums of partial products along row, and X
/// to its layout.
template <class T, class Place>
class transposed_edge_schedule {
 public:
  transposed_edge_schedule(const mesh<Place>& m, std::shared_ptr<const tiles<T, Place>> pattern,
                           const blocking& cols, const blocking& features, layout sparse_cut,
                           layout dense_cut)
      : mesh_(m),
        pattern_(std::move(pattern)),
        return_rows_(m, cols, features,
                     {column_cut(sparse_cut), edge_schedule<T, Place>::rows_of(sparse_cut, dense_cut).cols},
                     dense_cut) {
    const global_index width = return_rows_.old_block().cols.size();
    global_index columns = 0;
    for (local_index w : pattern_->widths) {
      columns += w;
      counts_.push_back(w * width);
    }
    partial_ = buffer<T, Place>(m.queue(), static_cast<std::size_t>(columns * width));
    mine_ = buffer<T, Place>(m.queue(), static_cast<std::size_t>(return_rows_.old_block().size()));
  }

  /// rows: Y's block as edge_schedule::spread gives it; its columns are those of `slice`.
  void operator()(const T* edges, head_slice slice, matrix_view<const T> rows, matrix_view<T> x) {
    const auto& q = mesh_.queue();
    T* to = partial_.data();
    for (std::size_t t = 0; t < pattern_->count(); ++t) {
      const matrix_view<T> sums{to, pattern_->widths[t], rows.cols, rows.cols};
      pattern_->for_parts(t, [&](const tile_part<T>& part) {
        kernels<Place>::edge_multiply_transposed(q, part.entries, slice, part.values_in(edges, slice.heads),
                                                 part.rows_of(rows), part.first_row > 0 ? T(1) : T(0), sums);
      });
      to += counts_[t];
    }
    const auto height = static_cast<local_index>(return_rows_.old_block().rows.size());
    const matrix_view<T> mine{mine_.data(), height, rows.cols, rows.cols};
    if (counts_.size() > 1)
      mesh_.along(axis::row).reduce_scatter(partial_.span(), counts_, mine_.span());
    else
      kernels<Place>::copy(q, matrix_view<const T>{partial_.data(), height, rows.cols, rows.cols}, mine);
    return_rows_(mine, x);
  }

 private:
  mesh<Place> mesh_;
  std::shared_ptr<const tiles<T, Place>> pattern_;
  redistribution<T, Place> return_rows_;
  std::vector<global_index> counts_;
  buffer<T, Place> partial_, mine_;
};

}  // namespace partita::detail
