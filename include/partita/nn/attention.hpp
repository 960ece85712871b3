#pragma once
/// Attention over the in-edges of every vertex, under any policy. No array of edges and features exists
/// anywhere.

#include "partita/base/random.hpp"
#include "partita/nn/destination_rows.hpp"
#include "partita/nn/model.hpp"
#include "partita/nn/propagation.hpp"

namespace partita {

/// Y_v = sum over u->v of alpha_uv X_u for each head (n x heads*width), alpha_uv = softmax over u of
/// leaky(s_u + t_v), s and t two scalars a vertex and head (n x 2 heads: source, target).
///
/// Every rank of the mesh must call. What travels forward: the scalars, at most 2 n heads to a rank, and the
/// policy's product of X, with A in place; coefficients are computed where they are used. Backward: one
/// scalar a vertex and head, the transposed product of dY, and for d alpha the rows of X that own in-edges
/// name; n heads sums of ds. Sources: Velickovic et al. (ICLR 2018), eq. 3; sharing scalars instead of
/// coefficients: s_u + t_v is all an edge needs.
template <class T, class Place>
class attention {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  /// `a`: the pattern as the policy cuts it; `complete`: the same entries, rows cut alike, columns whole.
  attention(const graph_operator<T, Place>& a, const graph_operator<T, Place>& complete, local_index heads,
            local_index width, double slope, spmm_options options = {})
      : mesh_(a.mesh()),
        forward_operator_(a),
        backward_operator_(transposed(a)),
        heads_(heads),
        width_(width),
        slope_(static_cast<T>(slope)),
        features_(blocking::even(global_index{heads} * width, a.mesh().shape(), nesting::cols)),
        forward_(a, features_, {stationary::sparse_stays, options.rows}),
        backward_(transposed(a), features_, {stationary::sparse_stays, options.rows}),
        rows_(complete),
        all_rows_(rows_.all()),
        own_rows_(rows_.own_rows()),
        halo_(rows_.make_halo()),
        own_table_rows_(rows_.own_rows(halo_)),
        gather_scores_(score_passage(a, 2 * heads)),
        gather_log_sums_(score_passage(a, heads)),
        scores_(mesh_, extent{a.row_blocking().size(), 2 * heads}),
        all_log_sums_(mesh_, extent{a.row_blocking().size(), heads}),
        products_(mesh_, a.row_blocking(), features_) {
    const auto& q = mesh_.queue();
    const auto entries = [&](std::size_t nonzeros) {
      return buffer<T, Place>(q, nonzeros * static_cast<std::size_t>(heads));
    };
    alpha_ = entries(a.local()->nonzeros);
    alpha_transposed_ = entries(transposed(a).local()->nonzeros);
    own_edges_ = entries(own_rows_.nonzeros());
    log_sums_ = entries(static_cast<std::size_t>(all_rows_.rows));
    row_dots_ = entries(static_cast<std::size_t>(own_rows_.rows));
    target_gradient_ = entries(static_cast<std::size_t>(own_rows_.rows));
    source_gradient_ = entries(static_cast<std::size_t>(own_rows_.rows));
    source_parts_ = entries(static_cast<std::size_t>(a.row_blocking().size()));
    table_ = buffer<T, Place>(
        q, static_cast<std::size_t>(halo_.table_rows()) * static_cast<std::size_t>(heads * width));
    ones_ = buffer<T, Place>(q, static_cast<std::size_t>(heads * width * heads));
    kernels<Place>::map_indexed(
        q, [width](local_index j, local_index h, T) { return j / width == h ? T(1) : T(0); }, ones(), ones());
    for (int rank = 0; rank < mesh_.size(); ++rank)
      source_counts_.push_back(
          a.row_blocking().block(vertex_rows::value.rows, mesh_.shape().at(rank)).size() * heads);
  }

  /// y from x (n/P x heads*width) and the scalars (n/P x 2 heads).
  void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask = {}) {
    mask_ = mask;
    const auto& q = mesh_.queue();
    gather_scores_(scores.local(), scores_.local());  // (n, 2 heads) on every rank
    const interval rows = rows_.range();
    kernels<Place>::edge_log_sum(q, all_rows_.view(), heads_, slope_, sources({0, scores_.shape().rows}),
                                 targets(rows), log_sums());
    for_tiles(forward_operator_, [&](csr_view<T> tile, interval columns) {
      kernels<Place>::edge_softmax(q, tile, heads_, slope_, sources(columns), targets(rows), log_sums(),
                                   alpha_.data());
      drop(tile, alpha_.data(), rows.begin, columns.begin, false);
    });
    forward_.use_edges(alpha_.data(), heads_, width_);
    forward_(x, y);  // (n/P, heads*width)
  }

  /// dx, and the gradients of the scalars, from x, the y of the last forward and dy.
  void backward(const matrix& x, const matrix& y, const matrix& dy, matrix& dx, matrix& dscores) {
    propagate_back(dy, dx);
    const auto& q = mesh_.queue();
    const interval own = rows_.own();
    const matrix_view<T> table{table_.data(), static_cast<local_index>(halo_.table_rows()), heads_ * width_,
                               heads_ * width_};
    halo_.gather(x.local(), table);  // (own + needed, heads*width)
    kernels<Place>::edge_dot(q, own_table_rows_.view(), head_slice{heads_, width_, 0}, dy.local(), table,
                             T(0), own_edges_.data());
    drop(own_rows_.view(), own_edges_.data(), own.begin, 0, false);
    kernels<Place>::zip(
        q, [](T a, T b) { return a * b; }, y.local(), dy.local(), products_.local());
    const matrix_view<T> dots = of_own(row_dots_), dtarget = of_own(target_gradient_),
                         dsource = of_own(source_gradient_);
    kernels<Place>::gemm(q, false, false, T(1), products_.local(), ones(), T(0), dots);  // (n/P, heads)
    const matrix_view<T> parts{source_parts_.data(), own_rows_.cols, heads_, heads_};
    kernels<Place>::edge_softmax_gradient(q, own_rows_.view(), heads_, slope_,
                                          sources({0, scores_.shape().rows}), targets(own), own_log_sums(),
                                          own_edges_.data(), dots, T(0), parts, dtarget);
    if (mesh_.size() > 1)
      mesh_.along(every_axis)
          .reduce_scatter(std::span<const T>(source_parts_.span()),
                          std::span<const global_index>(source_counts_), source_gradient_.span());
    else
      kernels<Place>::copy(q, parts, dsource);
    kernels<Place>::copy(q, dsource, dscores.local().block(0, 0, dsource.rows, heads_));
    kernels<Place>::copy(q, dtarget, dscores.local().block(0, heads_, dtarget.rows, heads_));
  }

  const blocking& features() const { return features_; }

  /// What this rank receives in one forward and one backward, in closed form.
  volume predicted() const {
    collective sources;
    sources.kind = operation::reduce_scatter;
    sources.count = source_counts_[static_cast<std::size_t>(mesh_.rank())];
    return gather_scores_.predicted() + forward_.predicted() + gather_log_sums_.predicted() +
           backward_.predicted() + halo_.predicted_gather(features_.size()) +
           received(sources, mesh_.rank(), mesh_.size());
  }

 private:
  static redistribution<T, Place> score_passage(const graph_operator<T, Place>& a, global_index width) {
    return {a.mesh(), a.row_blocking(), blocking::even(width, a.mesh().shape(), nesting::cols),
            vertex_rows::value, replicated::value};
  }

  /// visitor(tile of a with columns counted from the begin of their range, range).
  template <class Visitor>
  void for_tiles(const graph_operator<T, Place>& a, Visitor visitor) const {
    const auto& block = *a.local();
    coordinates at = mesh_.at();
    for (std::size_t t = 0; t < block.count(); ++t) {
      at.row = static_cast<int>(t);
      visitor(tile_view<T>(block.structure.data(), block.values.data(), block.rows, block.count(), t,
                           block.widths[t]),
              a.col_blocking().block(column_cut(a.sparse_cut()), at));
    }
  }

  /// Multiplies the coefficients of edges with what attention dropout keeps; `flipped` where rows are
  /// sources.
  void drop(csr_view<T> a, T* edges, global_index first_row, global_index first_col, bool flipped) const {
    if (mask_.probability == 0) return;
    const auto keep = mask_.function<T>();
    const global_index heads = heads_;
    const auto kept = [=](local_index i, local_index j, local_index h, T value) {
      const global_index row = first_row + i, col = first_col + j;
      return flipped ? keep(col, row * heads + h, value) : keep(row, col * heads + h, value);
    };
    kernels<Place>::edge_apply(mesh_.queue(), a, heads_, kept, edges, edges);
  }

  /// dx = alpha^T dy under the policy.
  void propagate_back(const matrix& dy, matrix& dx) {
    const auto& q = mesh_.queue();
    gather_log_sums_(own_log_sums(), all_log_sums_.local());  // (n, heads) on every rank
    const interval rows =
        backward_operator_.row_blocking().block(backward_operator_.sparse_cut().rows, mesh_.at());
    for_tiles(backward_operator_, [&](csr_view<T> tile, interval columns) {
      kernels<Place>::edge_scores(q, tile, heads_, slope_, targets(columns), sources(rows),
                                  alpha_transposed_.data());
      const T* log_sum = all_log_sums_.local().row(static_cast<local_index>(columns.begin));
      const local_index heads = heads_;
      const auto exponent = [=](local_index, local_index j, local_index h, T score) {
        return std::exp(score - log_sum[j * heads + h]);
      };
      kernels<Place>::edge_apply(q, tile, heads_, exponent, alpha_transposed_.data(),
                                 alpha_transposed_.data());
      drop(tile, alpha_transposed_.data(), rows.begin, columns.begin, true);
    });
    backward_.use_edges(alpha_transposed_.data(), heads_, width_);
    backward_(dy, dx);  // (n/P, heads*width)
  }

  matrix_view<const T> score_rows(interval vertices, local_index first) const {
    return scores_.local().block(static_cast<local_index>(vertices.begin), first,
                                 static_cast<local_index>(vertices.size()), heads_);
  }
  matrix_view<const T> sources(interval vertices) const { return score_rows(vertices, 0); }
  matrix_view<const T> targets(interval vertices) const { return score_rows(vertices, heads_); }
  matrix_view<T> log_sums() { return {log_sums_.data(), all_rows_.rows, heads_, heads_}; }
  matrix_view<T> own_log_sums() {
    return log_sums().block(static_cast<local_index>(rows_.own().begin - rows_.range().begin), 0,
                            own_rows_.rows, heads_);
  }
  matrix_view<T> of_own(buffer<T, Place>& b) const { return {b.data(), own_rows_.rows, heads_, heads_}; }
  matrix_view<T> ones() { return {ones_.data(), heads_ * width_, heads_, heads_}; }

  mesh<Place> mesh_;
  graph_operator<T, Place> forward_operator_, backward_operator_;
  local_index heads_, width_;
  T slope_;
  blocking features_;
  propagation<T, Place> forward_, backward_;
  complete_rows<T, Place> rows_;
  pattern<T, Place> all_rows_, own_rows_;
  halo<T, Place> halo_;
  pattern<T, Place> own_table_rows_;
  redistribution<T, Place> gather_scores_, gather_log_sums_;
  dense<T, replicated, Place> scores_, all_log_sums_;
  matrix products_;
  std::vector<global_index> source_counts_;
  buffer<T, Place> alpha_, alpha_transposed_;  ///< of the policy's tiles, and of the transposed ones
  buffer<T, Place> own_edges_;                 ///< of the own rows
  buffer<T, Place> log_sums_, row_dots_, target_gradient_, source_gradient_, source_parts_, table_, ones_;
  dropout_mask mask_;
};

}  // namespace partita
