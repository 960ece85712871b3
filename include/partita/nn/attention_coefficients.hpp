#pragma once
/// Attention coefficients of edges, where a policy multiplies with them, from two scalars a vertex and head.

#include <cmath>

#include "partita/transfer/in_edges.hpp"
#include "partita/nn/model.hpp"

namespace partita {

namespace detail {

/// The coefficient of the edge from source u to target v as dropout leaves it: exp(leaky(source(u, h) +
/// target(v, h)) - log_sum(v, h)), or its mean over the heads; heads of tiles are counted from first_head.
/// Entry e stands at (i, columns[e]). Rows of tiles are targets, in transposed tiles sources.
template <class T>
struct attention_coefficient {
  matrix_view<const T> source, target, log_sum;
  global_index first_source, first_target;
  local_index first_head;
  const local_index* columns;
  T slope;
  dropped<T> keep;
  bool drops, averaged, transposed;

  constexpr T of_head(local_index v, local_index u, local_index h) const {
    const T score = source(u, h) + target(v, h);
    const T alpha = std::exp((score > T(0) ? score : slope * score) - log_sum(v, h));
    return drops ? keep(first_target + v, (first_source + u) * source.cols + h, alpha) : alpha;
  }
  constexpr T operator()(local_index i, local_index e, local_index h) const {
    const local_index j = columns[e];
    const local_index v = transposed ? j : i, u = transposed ? i : j;
    if (!averaged) return of_head(v, u, first_head + h);
    T sum = 0;
    for (local_index k = 0; k < source.cols; ++k) sum += of_head(v, u, k);
    return sum / static_cast<T>(source.cols);
  }
};

/// The gradient of a head's coefficient from that of the mean over `heads` heads.
template <class T>
struct gradient_of_head {
  const T* of_mean;
  T heads;
  constexpr T operator()(local_index e, local_index, T) const { return of_mean[e] / heads; }
};

/// The gradient of a coefficient from that of what dropout left of it; columns are global.
template <class T>
struct gradient_before_dropout {
  dropped<T> keep;
  global_index first_target, heads;
  constexpr T operator()(local_index v, local_index u, local_index h, T gradient) const {
    return keep(first_target + v, u * heads + h, gradient);
  }
};

}  // namespace detail

/// alpha_uv = softmax over u->v of leaky(s_u + t_v) for each head, as dropout leaves it, or the mean over the
/// heads; s and t are two scalars a vertex and head (n x 2 heads: source, target).
///
/// Every rank of the mesh must construct it and call its functions. What travels: the scalars, at most 2 n
/// heads to a rank; for the transposed coefficients at most n heads more; for the gradient n heads sums. No
/// coefficient. Sources: Velickovic et al. (ICLR 2018), eq. 3; sharing scalars instead of coefficients: s_u +
/// t_v is all an edge needs.
template <class T, class Place>
class attention_coefficients {
 public:
  using matrix = dense<T, vertex_rows, Place>;

  /// `a`: the pattern as the policy cuts it; `rows`: of the same entries, columns whole; [first_kept,
  /// first_kept + kept): the heads (or the one mean) that tiles have values of.
  attention_coefficients(const sparse<T, dynamic_layout, Place>& a, const in_edges<T, Place>& rows,
                         local_index heads, bool averaged, double slope, local_index first_kept,
                         local_index kept)
      : mesh_(a.mesh()),
        forward_operator_(a),
        backward_operator_(transposed(a)),
        heads_(heads),
        averaged_(averaged),
        first_kept_(first_kept),
        slope_(static_cast<T>(slope)),
        every_{0, a.row_blocking().size()},
        range_(rows.range()),
        own_(rows.own()),
        all_rows_(rows.all_rows()),
        own_rows_(rows.own_rows()),
        gather_scores_(passage(a, 2 * heads, vertex_rows)),
        gather_log_sums_(passage(a, heads, {a.layout().rows, {}})),
        scores_(mesh_, extent{every_.size(), 2 * heads}),
        all_log_sums_(mesh_, extent{every_.size(), heads}) {
    const auto of_heads = [&](std::size_t n) {
      return buffer<T, Place>(mesh_.queue(), n * static_cast<std::size_t>(heads));
    };
    const auto each = static_cast<std::size_t>(kept);
    const std::size_t own_values = own_rows_.nonzeros * static_cast<std::size_t>(heads);
    values_ = buffer<T, Place>(mesh_.queue(), a.local()->nonzeros * each);
    transposed_ =
        buffer<T, Place>(mesh_.queue(), std::max(transposed(a).local()->nonzeros * each, own_values));
    own_gradient_ = of_heads(own_rows_.nonzeros);
    if (averaged) mean_gradient_ = buffer<T, Place>(mesh_.queue(), own_rows_.nonzeros);
    log_sums_ = of_heads(static_cast<std::size_t>(range_.size()));
    row_dots_ = of_heads(static_cast<std::size_t>(own_.size()));
    target_gradient_ = of_heads(static_cast<std::size_t>(own_.size()));
    source_gradient_ = of_heads(static_cast<std::size_t>(own_.size()));
    source_parts_ = of_heads(static_cast<std::size_t>(every_.size()));
    for (int rank = 0; rank < mesh_.size(); ++rank)
      source_counts_.push_back(a.row_blocking().block(vertex_rows.rows, mesh_.shape().at(rank)).size() *
                               heads);
  }

  /// Prepares of() from the scalars (n/P x 2 heads): the softmax's sums are found in one pass over the
  /// scores.
  void forward(const matrix& scores, const dropout_mask& mask) {
    mask_ = mask;
    gather_scores_(scores.local(), scores_.local());  // (n, 2 heads) on every rank
    all_rows_.for_parts(0, [&](const tile_part<T>& part) {
      kernels<Place>::edge_log_sum(mesh_.queue(), part.entries, heads_, slope_, sources(every_),
                                   part.rows_of(targets(range_)), part.rows_of(log_sums()));
    });
  }
  /// Prepares of_transposed() for the same scalars.
  void transpose() {
    gather_log_sums_(log_sums(), all_log_sums_.local());  // (n, heads) on every rank
  }

  /// The coefficients of a part of tile t as a function of a row, an entry and a head.
  detail::attention_coefficient<T> of(std::size_t t, const tile_part<T>& part) {
    const auto& a = forward_operator_;
    return coefficient(columns_of(a, t), rows_of(a, part), part.rows_of(log_sums()), entries_of(a, part),
                       false);
  }
  /// The same of a transposed tile, whose rows are sources.
  detail::attention_coefficient<T> of_transposed(std::size_t t, const tile_part<T>& part) const {
    const auto& a = backward_operator_;
    const interval to = columns_of(a, t);
    return coefficient(rows_of(a, part), to, every_log_sums(to), entries_of(a, part), true);
  }

  /// The gradient of the scalars of the last forward from what own_gradient() holds. It overwrites the
  /// transposed coefficients.
  void backward(matrix& dscores) {
    const auto& q = mesh_.queue();
    if (averaged_)
      for_runs(own_rows_.nonzeros, mesh_.tile_entries(), [&](std::size_t first, local_index count) {
        const matrix_view<T> edges{own_gradient_.data() + first * static_cast<std::size_t>(heads_), count,
                                   heads_, heads_};
        const detail::gradient_of_head<T> each{mean_gradient_.data() + first, static_cast<T>(heads_)};
        kernels<Place>::map_indexed(q, each, edges, edges);
      });
    const matrix_view<T> dtarget = of_own(target_gradient_), dsource = of_own(source_gradient_),
                         parts{source_parts_.data(), own_rows_.widths[0], heads_, heads_};
    own_rows_.for_parts(
        0, [&](const tile_part<T>& part) { part_backward(part, own_gradient_.data(), parts, dtarget); });
    if (mesh_.size() > 1)
      mesh_.along(every_axis).reduce_scatter(source_parts_.span(), source_counts_, source_gradient_.span());
    else
      kernels<Place>::copy(q, parts, dsource);
    kernels<Place>::copy(q, dsource, dscores.local().block(0, 0, dsource.rows, heads_));
    kernels<Place>::copy(q, dtarget, dscores.local().block(0, heads_, dtarget.rows, heads_));
  }

  /// Where the coefficients of this rank's tiles belong; after the forward products, their gradient.
  T* values() { return values_.data(); }
  /// Where those of the transposed tiles belong, until the gradient of the scalars is computed.
  T* transposed_values() { return transposed_.data(); }
  /// Where the gradient of the coefficients of own rows belongs, of every head or of the one mean.
  T* own_gradient() { return averaged_ ? mean_gradient_.data() : own_gradient_.data(); }

  /// What this rank receives in forward, transpose and backward, in closed form.
  volume predicted() const {
    collective sums;
    sums.kind = operation::reduce_scatter;
    sums.count = source_counts_[static_cast<std::size_t>(mesh_.rank())];
    return gather_scores_.predicted() + gather_log_sums_.predicted() +
           received(sums, mesh_.rank(), mesh_.size());
  }

 private:
  /// The gradients of the scalars from those of the coefficients of a part of the own rows.
  void part_backward(const tile_part<T>& part, T* gradients, matrix_view<T> dsource, matrix_view<T> dtarget) {
    const auto& q = mesh_.queue();
    T* const edges = part.values_in(gradients, heads_);
    T* const alpha = part.values_in(transposed_.data(), heads_);
    const matrix_view<const T> target = part.rows_of(targets(own_)), log_sum = part.rows_of(own_log_sums());
    const matrix_view<T> dots = part.rows_of(of_own(row_dots_));
    if (mask_.probability > 0) {
      const detail::gradient_before_dropout<T> kept{mask_.function<T>(), own_.begin + part.first_row, heads_};
      kernels<Place>::edge_apply(q, part.entries, heads_, kept, edges, edges);
    }
    kernels<Place>::edge_softmax(q, part.entries, heads_, slope_, sources(every_), target, log_sum, alpha);
    kernels<Place>::edge_row_dot(q, part.entries, heads_, alpha, edges, dots);
    const T beta = part.first_row > 0 ? T(1) : T(0);  // of the sources; targets have one part each
    if (beta != 0) kernels<Place>::fill(q, T(0), part.rows_of(dtarget));
    kernels<Place>::edge_softmax_gradient(q, part.entries, heads_, slope_, sources(every_), target, log_sum,
                                          edges, dots, beta, dsource, part.rows_of(dtarget));
  }

  static redistribution<T, Place> passage(const sparse<T, dynamic_layout, Place>& a, global_index width,
                                          layout from) {
    return {a.mesh(), a.row_blocking(), blocking::even(width, a.mesh().shape(), nesting::cols), from,
            replicated};
  }

  interval rows_of(const sparse<T, dynamic_layout, Place>& a, const tile_part<T>& part) const {
    const global_index first = a.row_blocking().block(a.layout().rows, mesh_.at()).begin + part.first_row;
    return {first, first + part.entries.rows};
  }
  interval columns_of(const sparse<T, dynamic_layout, Place>& a, std::size_t t) const {
    coordinates at = mesh_.at();
    at.row = static_cast<int>(t);
    return a.col_blocking().block(column_cut(a.layout()), at);
  }
  /// The columns of a part's entries in the block, whatever the part itself counts.
  const local_index* entries_of(const sparse<T, dynamic_layout, Place>& a, const tile_part<T>& part) const {
    return a.local()->structure.data() + a.local()->offsets_size() + part.base;
  }
  detail::attention_coefficient<T> coefficient(interval from, interval to, matrix_view<const T> log_sums,
                                               const local_index* columns, bool transposed) const {
    return {.source = sources(from),
            .target = targets(to),
            .log_sum = log_sums,
            .first_source = from.begin,
            .first_target = to.begin,
            .first_head = first_kept_,
            .columns = columns,
            .slope = slope_,
            .keep = mask_.function<T>(),
            .drops = mask_.probability > 0,
            .averaged = averaged_,
            .transposed = transposed};
  }

  matrix_view<const T> score_rows(interval vertices, local_index first) const {
    return scores_.local().block(static_cast<local_index>(vertices.begin), first,
                                 static_cast<local_index>(vertices.size()), heads_);
  }
  matrix_view<const T> sources(interval vertices) const { return score_rows(vertices, 0); }
  matrix_view<const T> targets(interval vertices) const { return score_rows(vertices, heads_); }
  matrix_view<T> log_sums() {
    return {log_sums_.data(), static_cast<local_index>(range_.size()), heads_, heads_};
  }
  matrix_view<T> own_log_sums() {
    return log_sums().block(static_cast<local_index>(own_.begin - range_.begin), 0, own_rows_.rows, heads_);
  }
  matrix_view<const T> every_log_sums(interval vertices) const {
    return all_log_sums_.local().block(static_cast<local_index>(vertices.begin), 0,
                                       static_cast<local_index>(vertices.size()), heads_);
  }
  matrix_view<T> of_own(buffer<T, Place>& b) const { return {b.data(), own_rows_.rows, heads_, heads_}; }

  mesh<Place> mesh_;
  sparse<T, dynamic_layout, Place> forward_operator_, backward_operator_;
  local_index heads_;
  bool averaged_;
  local_index first_kept_;
  T slope_;
  interval every_, range_, own_;         ///< vertices: all, of the policy's rows of A, of this rank
  tiles<T, Place> all_rows_, own_rows_;  ///< patterns: one tile without values each
  redistribution<T, Place> gather_scores_, gather_log_sums_;
  dense<T, replicated, Place> scores_, all_log_sums_;
  std::vector<global_index> source_counts_;
  buffer<T, Place> values_, transposed_;           ///< of the policy's tiles, and of the transposed ones
  buffer<T, Place> own_gradient_, mean_gradient_;  ///< of the in-edges of own vertices
  buffer<T, Place> log_sums_, row_dots_, target_gradient_, source_gradient_, source_parts_;
  dropout_mask mask_;
};

}  // namespace partita
