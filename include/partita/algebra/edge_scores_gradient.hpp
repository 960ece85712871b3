// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The backward pass of edge scores: from the gradients of the coefficients to those of the scalars.

#include "partita/algebra/edge_scores.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/chunked_edges.hpp"

namespace partita {

namespace algebra::detail {

/// The gradient of one head's coefficient from that of the mean over `heads` heads.
template <class T>
struct gradient_of_head {
  const T* of_mean;
  T heads;
  constexpr T operator()(local_index e, local_index, T) const { return of_mean[e] / heads; }
};

/// The gradient of a coefficient before dropout from that after dropout; columns are global.
template <class T>
struct gradient_before_dropout {
  base::dropped<T> keep;
  global_index first_target, heads;
  const local_index* global_columns = nullptr;  ///< of the columns, if these are renumbered
  constexpr T operator()(local_index v, local_index u, local_index h, T gradient) const {
    if (global_columns != nullptr) u = global_columns[u];
    return keep(first_target + v, keep.vertex(u) * heads + h, gradient);
  }
};

}  // namespace algebra::detail

namespace algebra {

/// ds_u = sum over u->v of g_uv, dt_v = sum over u->v of g_uv, where g_uv = alpha_uv (d_uv - sum over u'->v
/// of alpha_u'v d_u'v) leaky'(s_u + t_v), for each head, from the gradients d of the coefficients.
///
/// Collective over the mesh: constructor and call. What travels: partial sums of ds, n x heads.
template <class T, class Device>
class edge_scores_gradient {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  edge_scores_gradient(const transfer::in_edges<T, Device>& rows, const score_shape& shape)
      : mesh_(rows.mesh()),
        shape_(shape),
        own_(rows.own()),
        own_sources_(rows.own_sources()),
        rows_(rows.own_rows()) {
    const auto of_heads = [&](global_index n) {
      return buffer<T, Device>(mesh_.queue(), static_cast<std::size_t>(n * shape.heads));
    };
    if (shape.averaged) of_heads_ = of_heads(static_cast<global_index>(rows_.nonzeros));
    for (std::size_t number = 0; const local::csr_slice<T>& part : rows_.parts(0))
      passes_.prepare_inverse(mesh_.queue(), number++, part.entries);
    row_dots_ = of_heads(own_.size());
    target_gradient_ = of_heads(own_.size());
    source_gradient_ = of_heads(own_sources_.size());
    source_parts_ = of_heads(rows_.widths[0]);
    for (int rank = 0; rank < mesh_.size(); ++rank)
      source_counts_.push_back(rows.sources().block(vertex_rows.rows, mesh_.shape().at(rank)).size() *
                               shape.heads);
  }

  /// The number of values of `alpha` and, unless heads are averaged, of `d`.
  std::size_t values_here() const { return rows_.nonzeros * static_cast<std::size_t>(shape_.heads); }

  /// dscores (n/P x 2 heads), for the scalars and the mask of the last forward, from the gradients d on the
  /// in-edges of own vertices (in-edges x heads, or x 1 if heads are averaged). alpha (in-edges x heads)
  /// is overwritten, and so is d.
  void operator()(const edge_scores<T, Device>& scores, std::span<T> d, std::span<T> alpha, matrix& dscores) {
    const auto& q = mesh_.queue();
    T* const gradients = shape_.averaged ? of_heads_.data() : d.data();
    if (shape_.averaged) share_among_heads(d.data());
    const auto own_sources = static_cast<local_index>(own_sources_.size());
    const auto of_scores = [&](local_index row, local_index heads_before, local_index rows) {
      return dscores.local().block(row, heads_before, rows, shape_.heads);
    };
    // One rank has the sums where they belong, unless passes go in chunks, of rows of their own.
    const bool there = mesh_.size() == 1 && local::runs_whole(q);
    const matrix_view<T> result = of_scores(0, 0, own_sources),
                         targets = of_scores(0, shape_.heads, rows_.rows),
                         dtarget = there ? targets : of_own(target_gradient_),
                         parts = there ? result
                                       : matrix_view<T>{source_parts_.data(), rows_.widths[0], shape_.heads,
                                                        shape_.heads};
    for (std::size_t number = 0; const local::csr_slice<T>& part : rows_.parts(0))
      backward(scores, number++, part, gradients, alpha.data(), parts, part.rows_of(dtarget));
    if (mesh_.size() > 1) {
      mesh_.along(partition::every_axis)
          .reduce_scatter(source_parts_.span(), source_counts_, source_gradient_.span());
      local::chunked::copy(
          q, matrix_view<const T>{source_gradient_.data(), own_sources, shape_.heads, shape_.heads}, result);
    } else if (!there) {
      local::chunked::copy(q, parts, result);
    }
    if (!there) local::chunked::copy(q, dtarget, targets);
    if (const local_index others = own_sources - dtarget.rows; others > 0)
      local::chunked::fill(q, T(0), of_scores(dtarget.rows, shape_.heads, others));
  }

  /// What this rank receives in one call, in closed form; the same without a plan.
  traffic predicted() const {
    return predicted(mesh_, source_counts_[static_cast<std::size_t>(mesh_.rank())]);
  }
  static traffic predicted(const transfer::in_edges<T, Device>& rows, local_index heads) {
    return predicted(rows.mesh(), rows.own_sources().size() * heads);
  }

 private:
  static traffic predicted(const mesh<Device>& m, global_index count) {
    comm::collective sums;
    sums.kind = operation::reduce_scatter;
    sums.count = count;
    return received(sums, m.rank(), m.size());
  }
  void share_among_heads(const T* of_mean) {
    local::for_runs(rows_.nonzeros, mesh_.tile_entries(), [&](std::size_t first, local_index count) {
      const matrix_view<T> edges{of_heads_.data() + first * static_cast<std::size_t>(shape_.heads), count,
                                 shape_.heads, shape_.heads};
      local::by_rows(
          mesh_.queue(), "rows: indexed transform",
          [&](local_index, matrix_view<const T> mean, matrix_view<T> of_heads) {
            const detail::gradient_of_head<T> each{mean.data, static_cast<T>(shape_.heads)};
            transform_indexed(mesh_.queue(), each, of_heads, of_heads);
          },
          local::reads(local::one_per_row(of_mean + first, count)), local::writes(edges));
    });
  }
  /// One part of the own rows: source gradients accumulate over the parts, targets belong to one part each.
  void backward(const edge_scores<T, Device>& scores, std::size_t number, const local::csr_slice<T>& part,
                T* gradients, T* alphas, matrix_view<T> dsource, matrix_view<T> dtarget) {
    const local_index heads = shape_.heads;
    // d before dropout from d after it
    const auto before = [&](local_index first, const local_index* global_columns) {
      return detail::gradient_before_dropout<T>{scores.mask().template function<T>(),
                                                own_.begin + part.first_row + first, heads, global_columns};
    };
    local::chunked::edge_softmax_gradient_of_rows(
        mesh_.queue(), passes_, number, part.entries, heads, scores.slope(),
        scores.sources(scores.everyone()), part.rows_of(scores.targets(own_)),
        part.rows_of(scores.log_sums(own_)), part.first_row > 0 ? T(1) : T(0), scores.mask().probability > 0,
        before, part.values_in(gradients, heads), dsource, dtarget,
        {part.rows_of(of_own(row_dots_)), part.values_in(alphas, heads)});
  }
  matrix_view<T> of_own(buffer<T, Device>& b) const {
    return {b.data(), rows_.rows, shape_.heads, shape_.heads};
  }

  mesh<Device> mesh_;
  score_shape shape_;
  interval own_, own_sources_;
  local::csr_tiles<T, Device> rows_;    ///< a pattern: one tile without values
  local::entry_passes<Device> passes_;  ///< over its parts
  buffer<T, Device> of_heads_;  ///< gradients per in-edge and head, when only that of the mean is given
  buffer<T, Device> row_dots_, target_gradient_, source_gradient_, source_parts_;
  std::vector<global_index> source_counts_;
};

}  // namespace algebra

}  // namespace partita
