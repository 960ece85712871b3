// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The softmax of edge scores given by two scalars per vertex, evaluated on the fly inside products.

#include <cmath>
#include <optional>

#include "partita/algebra/dropout.hpp"
#include "partita/algebra/edge_matrix.hpp"
#include "partita/algebra/elementwise.hpp"
#include "partita/local/chunked_edges.hpp"
#include "partita/transfer/in_edges.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita {

namespace algebra::detail {

/// The coefficient of the edge from source u to target v after dropout: exp(leaky(source(u, h) + target(v,
/// h)) - log_sum(v, h)), or its mean over the heads; h counts from first_head, of `heads` in all. Entry e is
/// at (i, columns[e]). Rows of tiles are targets; rows of transposed tiles are sources.
template <class T>
struct edge_coefficient {
  matrix_view<const T> source, target, log_sum;
  global_index first_source, first_target;
  local_index first_head, heads;
  const local_index* columns;
  T slope;
  base::dropped<T> keep;
  bool drops, averaged, transposed;
  const local_index* global_columns = nullptr;  ///< of the columns, if they are renumbered
  bool read_later = true;                       ///< after the product; otherwise kernels need not store it

  /// Whether vertices are not renumbered and every head has its own coefficient: kernels may then keep values
  /// that depend on the row alone.
  constexpr bool plain() const { return !averaged && global_columns == nullptr && keep.vertices == nullptr; }

  constexpr T exponent_of(local_index v, local_index u, local_index h) const {
    const T score = source(u, h) + target(v, h), scaled = slope * score;
    return (score > T(0) ? score : scaled) - log_sum(v, h);
  }
  constexpr T after_dropout(local_index v, local_index u, local_index h, T alpha) const {
    if (!drops) return alpha;
    const local_index row = global_columns != nullptr && transposed ? global_columns[v] : v;
    const local_index col = global_columns != nullptr && !transposed ? global_columns[u] : u;
    return keep(first_target + row, keep.vertex(first_source + col) * heads + first_head + h, alpha);
  }

  /// For kernels that compute many exponentials at a time: the coefficient is the exponential of the score
  /// of these terms, after finished(); or, if averages() is not 0, the mean of that many of them.
  struct score_terms {
    const T *source, *target, *log_sum;
  };
  constexpr score_terms terms(local_index i, local_index e) const { return terms_at(i, columns[e]); }
  constexpr T leaky_slope() const { return slope; }
  constexpr local_index averages() const { return averaged ? source.cols : 0; }
  constexpr bool finishes() const { return drops; }
  constexpr T finished(local_index i, local_index e, local_index h, T alpha) const {
    return finished_at(i, columns[e], h, alpha);
  }
  template <class G>
  constexpr void with_constants(const G& g) const {
    edge_coefficient f = *this;
    if (global_columns != nullptr || keep.vertices != nullptr) return g(f);
    f.global_columns = nullptr, f.keep.vertices = nullptr, f.drops = true;
    if (transposed)
      f.transposed = true, g(f);
    else
      f.transposed = false, g(f);
  }
  constexpr T operator()(local_index i, local_index e, local_index h) const { return at(i, columns[e], h); }

  /// The same for row i and column j.
  constexpr score_terms terms_at(local_index i, local_index j) const {
    const local_index v = transposed ? j : i, u = transposed ? i : j;
    return {source.row_data(u), target.row_data(v), log_sum.row_data(v)};
  }
  constexpr T finished_at(local_index i, local_index j, local_index h, T alpha) const {
    return after_dropout(transposed ? j : i, transposed ? i : j, h, alpha);
  }
  constexpr T at(local_index i, local_index j, local_index h) const {
    const local_index v = transposed ? j : i, u = transposed ? i : j;
    const local_index begin = averaged ? 0 : h, end = averaged ? source.cols : h + 1;
    T sum = 0;
    for (local_index k = begin; k < end; ++k) sum += after_dropout(v, u, k, std::exp(exponent_of(v, u, k)));
    return averaged ? sum / static_cast<T>(source.cols) : sum;
  }
};

/// For edge_apply: the coefficient of the entry in row i and column j.
template <class T>
struct coefficient_of_entry {
  edge_coefficient<T> coefficient;
  constexpr T operator()(local_index i, local_index j, local_index h, T) const {
    return coefficient.at(i, j, h);
  }
  constexpr auto terms(local_index i, local_index j) const { return coefficient.terms_at(i, j); }
  constexpr T leaky_slope() const { return coefficient.slope; }
  constexpr local_index averages() const { return coefficient.averages(); }
  constexpr bool finishes() const { return coefficient.finishes(); }
  template <class G>
  constexpr void with_constants(const G& g) const {
    coefficient.with_constants([&](const edge_coefficient<T>& known) { g(coefficient_of_entry{known}); });
  }
  constexpr T finished(local_index i, local_index j, local_index h, T alpha) const {
    return coefficient.finished_at(i, j, h, alpha);
  }
};

/// The coefficients of an edge matrix, as taken by edge_spmm_plan::compute. Refers to both.
template <class T, class Device, class Scores>
class edge_coefficients {
 public:
  edge_coefficients(const Scores& scores, const edge_matrix<T, Device>& e, bool transposed, bool read_later)
      : scores_(&scores), e_(&e), transposed_(transposed), read_later_(read_later) {}

  edge_coefficient<T> operator()(std::size_t t, const local::csr_slice<T>& part) const {
    const interval heads{e_->first_head(), e_->first_head() + e_->heads()};
    edge_coefficient<T> f = scores_->coefficient(e_->pattern(), heads, t, part, transposed_);
    f.read_later = read_later_;
    return f;
  }
  /// values = the coefficients of a part, in a separate pass.
  void store(local::entry_passes<Device>& passes, std::size_t number, std::size_t t,
             const local::csr_slice<T>& part, T* values) const {
    const edge_coefficient<T> all = (*this)(t, part);
    local::csr_view<T> pattern = part.entries;
    pattern.columns = all.columns;
    pattern.cols = static_cast<local_index>(e_->pattern().tile_columns(t).size());
    if (transposed_)
      pass(passes, number, pattern, all, values, local::reads(all.source), local::gathers(all.target),
           local::gathers(all.log_sum));
    else
      pass(passes, number, pattern, all, values, local::gathers(all.source), local::reads(all.target),
           local::reads(all.log_sum));
  }

 private:
  template <class Source, class Target, class LogSum>
  void pass(local::entry_passes<Device>& passes, std::size_t number, const local::csr_view<T>& pattern,
            const edge_coefficient<T>& all, T* values, const Source& source, const Target& target,
            const LogSum& log_sum) const {
    const auto& q = e_->mesh().queue();
    const local_index heads = e_->heads();
    passes(
        q, number, pattern, {.global_columns = all.drops},
        [&](const local::edge_chunk<T>& c, matrix_view<const T> s, matrix_view<const T> t,
            matrix_view<const T> sums, T* to) {
          edge_coefficient<T> f = all;
          f.source = s, f.target = t, f.log_sum = sums;
          f.global_columns = c.global_columns;
          (transposed_ ? f.first_source : f.first_target) += c.first_row;
          edge_apply(q, c.pattern, heads, coefficient_of_entry<T>{f}, to, to);
        },
        source, target, log_sum, local::writes_entries(values, heads));
  }

  const Scores* scores_;
  const edge_matrix<T, Device>* e_;
  bool transposed_, read_later_;
};

}  // namespace algebra::detail

namespace algebra {

/// Parameters of edge scores.
struct score_shape {
  local_index heads = 1;
  bool averaged = false;  ///< whether coefficients are averaged over the heads
  double slope = 0.2;     ///< slope of the leaky ReLU
};

/// alpha_uv = softmax over u->v of leaky(s_u + t_v) for each head, after dropout, or its mean over the heads;
/// leaky(z) = z for z > 0, slope z otherwise; s and t are two scalars per vertex and head (n x 2 heads:
/// source, target; n = A's columns, the first of which are A's rows, see in_edges). Never stored:
/// edge_spmm_plan::compute takes it as a function.
///
/// A rank computes the softmax normalisers for the heads of its products in its rows of A, and for all heads
/// of its own vertices, which edge_scores_gradient needs. Normalisers of other heads and rows are not
/// computed.
///
/// Collective over the mesh: constructor and members. What travels: an all-gather of the scalars, at most 2 n
/// heads to a rank; for transposed coefficients at most n heads more; never coefficients. Throws shape_error
/// for scalars of the wrong shape. Source: Velickovic et al. (ICLR 2018), eq. 3.
template <class T, class Device>
class edge_scores {
 public:
  using matrix = dense<T, vertex_rows, Device>;
  using edges = edge_matrix<T, Device>;

  /// `a`: the pattern in the policy's layout; `rows`: its in-edges. Coefficients of all heads.
  edge_scores(const sparse<T, dynamic_layout, Device>& a, const transfer::in_edges<T, Device>& rows,
              const score_shape& shape)
      : edge_scores(a, rows, shape, {0, shape.heads}) {}
  /// Coefficients of the heads `here` only, which may differ between ranks: edge_spmm_plan::heads_here().
  edge_scores(const sparse<T, dynamic_layout, Device>& a, const transfer::in_edges<T, Device>& rows,
              const score_shape& shape, interval here)
      : shape_(shape),
        here_(shape.averaged ? interval{0, shape.heads} : here),
        range_(rows.range()),
        own_(rows.own()),
        rows_(rows.all_rows()),
        gather_scores_(a.mesh(), a.col_blocking(), columns(a, 2), vertex_rows, replicated),
        gather_log_sums_(a.mesh(), a.row_blocking(), columns(a, 1), partition::rows_of(a.layout()),
                         replicated),
        scores_(a.mesh(), a.col_blocking(), columns(a, 2)),
        log_sums_(a.mesh(), partition::rows_of(a.layout()), a.row_blocking(), columns(a, 1)),
        all_log_sums_(gathers(a) ? dense<T, replicated, Device>(a.mesh(), a.row_blocking(), columns(a, 1))
                                 : dense<T, replicated, Device>::view(a.mesh(), a.row_blocking(),
                                                                      columns(a, 1), log_sums_.values())) {
    if (here_.size() == shape.heads) return;
    own_rows_.emplace(rows.own_rows());
    fill(log_sums_, T(0));  // sent even where not computed
    const auto numbers = [&](global_index vertices, int each) {
      return buffer<T, Device>(a.mesh().queue(), static_cast<std::size_t>(each * vertices * here_.size()));
    };
    scores_here_ = numbers(everyone().size(), 2);
    log_sums_here_ = numbers(range_.size(), 1);
    all_log_sums_here_ = numbers(everyone().size(), 1);
  }

  /// Sets the scalars (n/P x 2 heads) and the mask, and computes the softmax normalisers, each in one pass
  /// over its scores.
  void forward(const matrix& scores, const dropout_mask& mask) {
    mask_ = mask;
    gather_scores_(scores, scores_);  // (n, 2 heads) on every rank
    if (!own_rows_) return normalise(rows_, passes_, range_, here_);
    const global_index n = everyone().size();
    keep_heads_here(sources(everyone()), view_of(scores_here_, 0, n));  // (n, heads here)
    keep_heads_here(targets(everyone()), view_of(scores_here_, n, n));  // (n, heads here)
    normalise(rows_, passes_, range_, here_);
    keep_heads_here(log_sums(range_), view_of(log_sums_here_, 0, range_.size()));  // (rows of A, heads here)
    normalise(*own_rows_, own_passes_, own_, {0, shape_.heads});
  }
  /// Enables coefficients of the transposed pattern, for the same scalars.
  void transpose() {
    if (all_log_sums_.values().data() != log_sums_.values().data())
      gather_log_sums_(log_sums_, all_log_sums_);  // (n, heads) on every rank
    if (own_rows_)
      keep_heads_here(std::as_const(all_log_sums_).local(),
                      view_of(all_log_sums_here_, 0, everyone().size()));  // (n, heads here)
  }

  /// The coefficients for e's entries and heads, as edge_spmm_plan::compute takes them, for e over the
  /// pattern (rows are targets). e must outlive the result; its values are undefined after the product unless
  /// they are read_later.
  auto by_targets(const edges& e, bool read_later = true) const {
    return coefficients(*this, e, false, read_later);
  }
  /// As above, for e over the transposed pattern (rows are sources).
  auto by_sources(const edges& e, bool read_later = true) const {
    return coefficients(*this, e, true, read_later);
  }

  /// What this rank receives in forward and transpose together, in closed form.
  traffic predicted() const { return predicted_forward() + gather_log_sums_.predicted(); }
  /// What this rank receives in forward, in closed form.
  traffic predicted_forward() const { return gather_scores_.predicted(); }

  const score_shape& shape() const { return shape_; }
  T slope() const { return static_cast<T>(shape_.slope); }
  const dropout_mask& mask() const { return mask_; }
  /// The scalars of some vertices (vertices x heads), as sources and as targets.
  matrix_view<const T> sources(interval vertices) const { return scalars(vertices, 0); }
  matrix_view<const T> targets(interval vertices) const { return scalars(vertices, shape_.heads); }
  interval everyone() const { return {0, scores_.shape().rows}; }
  /// The logarithms of the softmax normalisers (vertices x heads), for vertices among the policy's rows of A;
  /// set for own vertices, and for others only in the columns of this rank's heads.
  matrix_view<const T> log_sums(interval vertices) const {
    return rows(log_sums_.local(), {vertices.begin - range_.begin, vertices.end - range_.begin});
  }

  /// The coefficients of a part of tile t, over the pattern or its transpose (rows are sources).
  detail::edge_coefficient<T> coefficient(const sparse<T, dynamic_layout, Device>& pattern, interval heads,
                                          std::size_t t, const local::csr_slice<T>& part,
                                          bool transposed) const {
    const global_index first_row = pattern.row_range().begin + part.first_row;
    const interval of_rows{first_row, first_row + part.entries.rows}, of_columns = pattern.tile_columns(t);
    const interval from = transposed ? of_rows : of_columns, to = transposed ? of_columns : of_rows;
    const auto first_head = static_cast<local_index>(heads.begin),
               head_count = static_cast<local_index>(heads.size());
    const bool kept = own_rows_ && heads.begin >= here_.begin && heads.end <= here_.end;
    const auto of_heads = [&](matrix_view<const T> all) {
      if (shape_.averaged) return all;
      return all.block(0, static_cast<local_index>(heads.begin - (kept ? here_.begin : 0)), all.rows,
                       head_count);
    };
    const auto log_sums_of = [&] {
      if (transposed)
        return kept ? view_of(all_log_sums_here_, to.begin, to.size()) : rows(all_log_sums_.local(), to);
      return kept ? view_of(log_sums_here_, to.begin - range_.begin, to.size()) : log_sums(to);
    };
    return {.source = of_heads(kept ? view_of(scores_here_, from.begin, from.size()) : sources(from)),
            .target =
                of_heads(kept ? view_of(scores_here_, everyone().size() + to.begin, to.size()) : targets(to)),
            .log_sum = of_heads(log_sums_of()),
            .first_source = from.begin,
            .first_target = to.begin,
            .first_head = first_head,
            .heads = shape_.heads,
            .columns = pattern.local()->columns_of(part),
            .slope = slope(),
            .keep = mask_.function<T>(),
            .drops = mask_.probability > 0,
            .averaged = shape_.averaged,
            .transposed = transposed};
  }

 private:
  using coefficients = detail::edge_coefficients<T, Device, edge_scores>;

  /// Whether log_sums_ do not yet hold all vertices, and must be gathered in the memory of passes.
  static bool gathers(const sparse<T, dynamic_layout, Device>& a) {
    return a.mesh().size() > 1 || !local::runs_whole(a.mesh().queue());
  }
  blocking columns(const sparse<T, dynamic_layout, Device>& a, local_index each) const {
    return blocking::even(global_index{each} * shape_.heads, a.mesh().shape(), nesting::cols);
  }
  static matrix_view<const T> rows(matrix_view<const T> of, interval r) {
    return of.block(static_cast<local_index>(r.begin), 0, static_cast<local_index>(r.size()), of.cols);
  }
  /// Copies the heads of products next to each other per vertex: passes over edges read them in random order.
  void keep_heads_here(matrix_view<const T> all, matrix_view<T> here) {
    if (here_.empty()) return;
    local::chunked::copy(scores_.mesh().queue(),
                         all.block(0, static_cast<local_index>(here_.begin), all.rows, here.cols), here);
  }
  template <class Buffer>
  auto view_of(Buffer& numbers, global_index first, global_index vertices) const {
    const auto heads = static_cast<local_index>(here_.size());
    using number = std::remove_reference_t<decltype(*numbers.data())>;
    return matrix_view<number>{numbers.data() + first * heads, static_cast<local_index>(vertices), heads,
                               heads};
  }

  /// The normalisers of some heads, for the rows of a pattern.
  void normalise(const local::csr_tiles<T, Device>& pattern, local::entry_passes<Device>& passes,
                 interval vertices, interval heads) {
    if (heads.empty()) return;
    const bool kept = own_rows_ && heads == here_;
    const global_index n = everyone().size();
    const matrix_view<const T> source =
                                   kept ? view_of(std::as_const(scores_here_), 0, n) : sources(everyone()),
                               target = kept ? view_of(std::as_const(scores_here_), n + vertices.begin,
                                                       vertices.size())
                                             : targets(vertices);
    const auto first = static_cast<local_index>(vertices.begin - range_.begin),
               count = static_cast<local_index>(heads.size());
    const matrix_view<T> sums = log_sums_.local().block(first, static_cast<local_index>(heads.begin),
                                                        static_cast<local_index>(vertices.size()), count);
    std::size_t number = 0;
    for (const local::csr_slice<T>& part : pattern.parts(0))
      local::chunked::edge_log_sum(log_sums_.mesh().queue(), passes, number++, part.entries, count, slope(),
                                   source, part.rows_of(target), part.rows_of(sums),
                                   shape_.heads);  // rows of (vertices, heads)
  }
  matrix_view<const T> scalars(interval vertices, local_index first) const {
    const matrix_view<const T> of = rows(scores_.local(), vertices);
    return of.block(0, first, of.rows, shape_.heads);
  }

  score_shape shape_;
  interval here_;                     ///< the heads of the products on this rank
  interval range_, own_;              ///< the policy's rows of A, and the own vertices among them
  local::csr_tiles<T, Device> rows_;  ///< the pattern of these rows: one tile, without values
  redistribution<T, Device> gather_scores_, gather_log_sums_;
  dense<T, replicated, Device> scores_;
  dense<T, dynamic_layout, Device> log_sums_;
  dense<T, replicated, Device> all_log_sums_;
  local::entry_passes<Device> passes_;                   ///< over the parts of rows_
  std::optional<local::csr_tiles<T, Device>> own_rows_;  ///< rows of own vertices, if they need more heads
  local::entry_passes<Device> own_passes_;               ///< over its parts
  buffer<T, Device> scores_here_, log_sums_here_, all_log_sums_here_;  ///< of this rank's heads, if not all
  dropout_mask mask_;
};

}  // namespace algebra

}  // namespace partita
