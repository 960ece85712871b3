// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Attention on a reproducible mesh: every sum is over a whole row, on the rank that owns its vertex, in the
/// order of the global numbers of the neighbours.

#include <algorithm>
#include <cmath>
#include <deque>

#include "partita/algebra/edge_scores_gradient.hpp"
#include "partita/algebra/neighbour_rows.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/exact.hpp"

namespace partita {

namespace algebra::detail {

/// The terms of an edge's score: for in-edges, `source` has rows of a table, and the others have own
/// vertices; for out-edges it is the other way round.
template <class T>
struct score_values {
  matrix_view<const T> source, target, log_sum, dots;

  /// The values of a part of the in-edges or, if transposed, of the out-edges.
  score_values of(const local::csr_slice<T>& part, bool transposed) const {
    if (transposed) return {part.rows_of(source), target, log_sum, dots};
    return {source, part.rows_of(target), part.rows_of(log_sum), part.rows_of(dots)};
  }
};

/// alpha_uv (d_uv - sum over u'->v of alpha_u'v d_u'v) leaky'(s_u + t_v) from d_uv, before dropout if drops
/// is set; rows are targets or, transposed, sources.
template <class T>
struct score_gradient {
  score_values<T> values;
  base::dropped<T> keep;
  local_index first_row;
  T slope;
  bool drops, transposed;

  constexpr T operator()(local_index i, local_index j, local_index h, T d) const {
    const local_index v = transposed ? j : i, u = transposed ? i : j;
    if (drops)
      d = keep(transposed ? v : first_row + v,
               keep.vertex(transposed ? first_row + u : u) * values.source.cols + h, d);
    const T z = values.source(u, h) + values.target(v, h);
    const T alpha = std::exp((z > T(0) ? z : slope * z) - values.log_sum(v, h));
    return alpha * (d - values.dots(v, h)) * (z > T(0) ? T(1) : slope);
  }
};

}  // namespace algebra::detail

namespace algebra {

/// Z_k = alpha Z_(k-1), k = 1..K, Z_0 = X (all n x w), and the gradients of X and of the scalars (n x 2
/// heads), for alpha as in edge_scores: each sum is in double, over a whole row, in the order of the global
/// numbers of the neighbours, so that results have the same bits on every mesh. The policy only determines
/// which rank owns which vertices; sources have sums over their out-edges, with coefficients computed a
/// second time. On the host.
///
/// Collective over the mesh: constructor and members. What travels: index lists, once. Forward: the rows of
/// Z_(k-1) that in-edges of own vertices reference, w wide, each once per hop, and their scalars, 2 heads.
/// Backward: the same rows again, and the rows of dZ_k that out-edges of own vertices reference, both once
/// per hop, and three scalars per head of the latter. Throws error if A^T is not stored, and for masks of
/// selected vertices. Source: as edge_scores.
template <class T, class Device>
class ordered_attention final : public attention_way<T, Device> {
 public:
  using typename attention_way<T, Device>::matrix;

  /// `head_width`: columns per head, of X if heads are averaged.
  ordered_attention(const sparse<T, dynamic_layout, Device>& a, const score_shape& shape,
                    local_index head_width, int hops)
      : mesh_(a.mesh().with_exact_sums()),
        shape_(shape),
        slice_{shape.averaged ? 1 : shape.heads, head_width, 0},
        in_(transfer::in_edges<T, Device>(a)),
        out_(transfer::in_edges<T, Device>(transposed(a).stored_for("attention"))),
        log_sums_(of_rows(shape.heads)),
        dots_(of_rows(shape.heads)),
        targets_(of_rows(2 * shape.heads)) {
    const auto values = [&](const detail::neighbour_rows<T, Device>& of, local_index each) {
      return buffer<T, Device>(mesh_.queue(), of.edges() * static_cast<std::size_t>(each));
    };
    for (side* s : {&in_values_, &out_values_}) {
      const auto& of = s == &in_values_ ? in_ : out_;
      s->coefficients = values(of, slice_.heads);
      s->gradients = values(of, slice_.heads);
      if (shape.averaged) s->of_heads = values(of, shape.heads);
    }
    alpha_ = values(in_, shape.heads);
    const auto add_block = [&](std::deque<matrix>& to) {
      to.emplace_back(mesh_, a.row_blocking(), blocking::even(width(), mesh_.shape(), nesting::cols));
    };
    for (int k = 1; k < hops; ++k) add_block(between_);
    for (int k = 1; k < std::min(hops, 3); ++k) add_block(between_gradients_);
  }

  void forward(const matrix& x, const matrix& scores, matrix& y, const dropout_mask& mask) override {
    if (mask.vertices != nullptr) throw error("ordered_attention was given a mask of selected vertices");
    const auto& q = mesh_.queue();
    mask_ = mask;
    const matrix_view<const T> of_table = in_.gather(scores.local(), in_scores_);  // (own + needed, 2 heads)
    values_ = {left(of_table), right(scores_of_own(of_table)), view(log_sums_), view(dots_)};
    for (const local::csr_slice<T>& part : in_.parts()) {
      const detail::score_values<T> v = values_.of(part, false);
      edge_log_sum(q, part.entries, shape_.heads, slope(), v.source, v.target,
                   part.rows_of(view(log_sums_)));  // rows of (own, heads)
    }
    for (std::size_t k = 0; k <= between_.size(); ++k)
      multiply(in_, in_values_.coefficients, k == 0, false, values_,
               in_.gather(between(k, x).local(), table_),
               (k == between_.size() ? y : between_[k]).local());  // (n/P, w)
  }

  /// dx and dscores, for the x, the scalars and the mask of the last forward.
  void backward(const matrix& x, const matrix& dy, matrix& dx, matrix& dscores) override {
    const matrix_view<const T> scalars = gather_targets();
    const detail::score_values<T> of_out{view_of_own_scores(), left(scalars), right(scalars), {}};
    const matrix* now = &dy;
    for (std::size_t k = between_.size() + 1; k-- > 0;) {
      const bool first = k == between_.size();
      const matrix& z = between(k, x);
      matrix& next = k == 0 ? dx : between_gradients_[k % between_gradients_.size()];
      add_dots(in_, in_values_.gradients, first, now->local(), in_.gather(z.local(), table_));
      const matrix_view<const T> of_table = out_.gather(now->local(), table_);  // (own + needed, w)
      add_dots(out_, out_values_.gradients, first, z.local(), of_table);
      multiply(out_, out_values_.coefficients, first, true, of_out, of_table, next.local());  // (n/P, w)
      now = &next;
    }
    score_gradients(of_out, dscores);
  }

  /// What this rank receives in one forward, in closed form.
  traffic predicted_forward() const override {
    const auto hops = static_cast<global_index>(between_.size()) + 1;
    return hops * in_.predicted(width()) + in_.predicted(2 * shape_.heads);
  }
  /// What this rank receives in one forward and one backward, in closed form.
  traffic predicted() const override {
    const auto hops = static_cast<global_index>(between_.size()) + 1;
    return predicted_forward() + hops * in_.predicted(width()) + hops * out_.predicted(width()) +
           out_.predicted(2 * shape_.heads) + out_.predicted(shape_.heads);
  }
  coefficient_gradient form() const override { return coefficient_gradient::rows; }
  /// The coefficients that this rank computes for products, forward and backward.
  global_index coefficients() const override {
    return static_cast<global_index>(in_.edges() + out_.edges()) * shape_.heads;
  }

 private:
  using rows_type = detail::neighbour_rows<T, Device>;
  /// Values of in-edges or of out-edges.
  struct side {
    buffer<T, Device> coefficients, gradients;  ///< after dropout; of the mean if heads are averaged
    buffer<T, Device> of_heads;                 ///< gradients, if heads are averaged
  };

  global_index width() const { return global_index{slice_.heads} * slice_.head_width; }
  T slope() const { return static_cast<T>(shape_.slope); }
  buffer<T, Device> of_rows(local_index each) const {
    return buffer<T, Device>(mesh_.queue(),
                             static_cast<std::size_t>(in_.own()) * static_cast<std::size_t>(each));
  }
  matrix_view<T> view(buffer<T, Device>& b) { return {b.data(), in_.own(), shape_.heads, shape_.heads}; }
  template <class U>
  matrix_view<U> left(matrix_view<U> x) const {
    return x.block(0, 0, x.rows, shape_.heads);
  }
  template <class U>
  matrix_view<U> right(matrix_view<U> x) const {
    return x.block(0, shape_.heads, x.rows, shape_.heads);
  }
  matrix_view<const T> scores_of_own(matrix_view<const T> of_table) const {
    return of_table.block(0, 0, in_.own(), of_table.cols);
  }
  matrix_view<const T> view_of_own_scores() const {
    return values_.source.block(0, 0, in_.own(), shape_.heads);
  }
  const matrix& between(std::size_t k, const matrix& x) const { return k == 0 ? x : between_[k - 1]; }

  /// y = alpha of_table, with coefficients that are computed first if `fresh`.
  void multiply(const rows_type& edges, buffer<T, Device>& coefficients, bool fresh, bool transposed,
                const detail::score_values<T>& values, matrix_view<const T> of_table, matrix_view<T> y) {
    const auto& q = mesh_.queue();
    for (const local::csr_slice<T>& part : edges.parts()) {
      T* const alpha = part.values_in(coefficients.data(), slice_.heads);
      if (!fresh) {
        ordered_edge_multiply(q, part.entries, slice_, alpha, of_table, part.rows_of(y));
        continue;
      }
      const detail::score_values<T> v = values.of(part, transposed);
      const detail::edge_coefficient<T> coefficient{.source = v.source,
                                                    .target = v.target,
                                                    .log_sum = v.log_sum,
                                                    .first_source = transposed ? part.first_row : 0,
                                                    .first_target = transposed ? 0 : part.first_row,
                                                    .first_head = 0,
                                                    .heads = shape_.heads,
                                                    .columns = edges.columns_of(part),
                                                    .slope = slope(),
                                                    .keep = edges.keep(mask_),
                                                    .drops = mask_.probability > 0,
                                                    .averaged = shape_.averaged,
                                                    .transposed = transposed};
      ordered_edge_apply_multiply(q, part.entries, slice_, coefficient, alpha, of_table, part.rows_of(y));
    }
  }
  /// gradients (+)= the dot products of own rows and rows of the table.
  void add_dots(const rows_type& edges, buffer<T, Device>& gradients, bool first, matrix_view<const T> own,
                matrix_view<const T> of_table) {
    for (const local::csr_slice<T>& part : edges.parts())
      ordered_edge_dot(mesh_.queue(), part.entries, slice_, part.rows_of(own), of_table, first ? T(0) : T(1),
                       part.values_in(gradients.data(), slice_.heads));
  }
  /// The scalars t and the logarithms of the normalisers of the targets of out-edges (own + needed, 2 heads).
  matrix_view<const T> gather_targets() {
    const auto& q = mesh_.queue();
    const matrix_view<T> mine{targets_.data(), in_.own(), 2 * shape_.heads, 2 * shape_.heads};
    copy(q, values_.target, left(mine));
    copy(q, values_.log_sum, right(mine));
    return out_.gather(mine, out_targets_);
  }
  /// dscores from the gradients of all coefficients: targets have sums over in-edges, and sources have sums
  /// over out-edges, which need the targets' sums of alpha d.
  void score_gradients(detail::score_values<T> of_out, matrix& dscores) {
    const auto& q = mesh_.queue();
    const local_index heads = shape_.heads;
    T* const d = gradients_of_heads(in_values_, in_.edges());
    for (const local::csr_slice<T>& part : in_.parts()) {
      T* const gradients = part.values_in(d, heads);
      T* const alpha = part.values_in(alpha_.data(), heads);
      const detail::score_values<T> v = values_.of(part, false);
      if (mask_.probability > 0) {
        const detail::gradient_before_dropout<T> kept{in_.keep(mask_), part.first_row, heads};
        edge_apply(q, part.entries, heads, kept, gradients, gradients);
      }
      edge_softmax(q, part.entries, heads, slope(), v.source, v.target, v.log_sum, alpha);
      ordered_row_dot(q, part.entries, heads, alpha, gradients, part.rows_of(view(dots_)));
    }
    of_out.dots = out_.gather(view(dots_), out_dots_);  // (own + needed, heads)
    sum_gradients(in_, d, {values_, {}, 0, slope(), false, false}, right(dscores.local()));
    sum_gradients(out_, gradients_of_heads(out_values_, out_.edges()),
                  {of_out, out_.keep(mask_), 0, slope(), mask_.probability > 0, true}, left(dscores.local()));
  }
  /// sums = the gradients of the scores of each row, from the gradients of the coefficients.
  void sum_gradients(const rows_type& edges, T* d, const detail::score_gradient<T>& of_all,
                     matrix_view<T> sums) {
    const auto& q = mesh_.queue();
    for (const local::csr_slice<T>& part : edges.parts()) {
      detail::score_gradient<T> f = of_all;
      f.values = of_all.values.of(part, of_all.transposed);
      f.first_row = part.first_row;
      T* const gradients = part.values_in(d, shape_.heads);
      edge_apply(q, part.entries, shape_.heads, f, gradients, gradients);
      ordered_row_sum(q, part.entries, shape_.heads, gradients, part.rows_of(sums));
    }
  }
  /// The gradient of each head's coefficients.
  T* gradients_of_heads(side& of, std::size_t edges) {
    if (!shape_.averaged) return of.gradients.data();
    local::for_runs(edges, mesh_.tile_entries(), [&](std::size_t first, local_index count) {
      const matrix_view<T> all{of.of_heads.data() + first * static_cast<std::size_t>(shape_.heads), count,
                               shape_.heads, shape_.heads};
      const detail::gradient_of_head<T> each{of.gradients.data() + first, static_cast<T>(shape_.heads)};
      transform_indexed(mesh_.queue(), each, all, all);
    });
    return of.of_heads.data();
  }

  mesh<Device> mesh_;
  score_shape shape_;
  local::head_slice slice_;
  rows_type in_, out_;
  buffer<T, Device> log_sums_, dots_, targets_;  ///< of own vertices
  side in_values_, out_values_;
  buffer<T, Device> alpha_;                                       ///< of in-edges, before dropout
  buffer<T, Device> in_scores_, out_targets_, out_dots_, table_;  ///< rows of own and needed vertices
  detail::score_values<T> values_;                                ///< of in-edges
  std::deque<matrix> between_;                                    ///< Z_1 ... Z_(K-1)
  std::deque<matrix> between_gradients_;
  dropout_mask mask_;
};

}  // namespace algebra

}  // namespace partita
