// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of vertices on edges, and sums of rows of edges at vertices, under every policy; each is the adjoint
/// of the other.
///
/// Edge matrices have whole rows here, all k columns, on every rank that holds the tile. Axes that cut
/// neither rows nor columns of A replicate the tiles and their rows.

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "partita/algebra/edge_schedule.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/chunked_edges.hpp"
#include "partita/local/chunked_products.hpp"

namespace partita::algebra {

/// The end of an edge u -> v, the entry (v, u) of a pattern: u or v.
enum class edge_end : std::uint8_t { source, target };

namespace detail {

/// x(row(e), h) or x(col(e), h), in place of any value or added to it.
template <class T>
struct value_at_end {
  matrix_view<const T> x;
  bool of_column, adds;
  constexpr T operator()(local_index row, local_index column, local_index h, T value) const {
    const T at_end = x(of_column ? column : row, h);
    return adds ? value + at_end : at_end;
  }
};

/// Where rows of vertices and rows of edges meet: the whole rows of all sources, or targets, of a pattern's
/// tiles, and the layout in which each row is on one rank, except for copies.
template <class T, class Device>
class edge_ends {
 public:
  edge_ends(sparse<T, dynamic_layout, Device> pattern, edge_end end, layout l, const blocking& features)
      : pattern_(std::move(pattern)),
        end_(end),
        layout_(l),
        features_(features),
        whole_(blocking::even(features.size(), pattern_.mesh().shape(), nesting::cols)),
        width_(base::to_local(features.size(), "the columns of an edge matrix")) {}

  const sparse<T, dynamic_layout, Device>& pattern() const { return pattern_; }
  const partita::mesh<Device>& mesh() const { return pattern_.mesh(); }
  bool at_sources() const { return end_ == edge_end::source; }
  local_index width() const { return width_; }
  const blocking& vertices() const {
    return at_sources() ? pattern_.col_blocking() : pattern_.row_blocking();
  }
  layout rows_of_tiles() const { return {pattern_.layout().rows, {}}; }
  layout distinct() const { return {partition::column_cut(pattern_.layout()), {}}; }

  /// Between the layout of X and `l`; null if they have the same blocks.
  std::unique_ptr<redistribution<T, Device>> between(layout from, layout to) const {
    if (partition::same_blocks(mesh().shape(), from, to) && features_ == whole_) return nullptr;
    const auto placed = [&](layout l) {
      return partition::block_layout{vertices(), l == layout_ ? features_ : whole_, l};
    };
    return std::make_unique<redistribution<T, Device>>(mesh(), placed(from), placed(to));
  }
  layout operand() const { return layout_; }

  /// The stages in which rows of sources are received for tiles, or sums of edges are sent to sources. Sums
  /// end in the layout distinct().
  product_stages<T, Device> stages(row_flow flow, row_exchange rows) const {
    const layout dense = flow == row_flow::rows_come ? distinct() : rows_of_tiles();
    return {
        {mesh(), pattern_.row_blocking(), pattern_.col_blocking(), whole_, pattern_.layout(), dense, flow},
        pattern_.analysed(),
        {stationary::a, rows},
        entry_values::given};
  }

  /// The layout in which sums of edges end: distinct(), or on a reproducible mesh one that A multiplies.
  layout of_sums() const {
    const layout a = pattern_.layout();
    if (reproducible_verbs_of<T>(mesh()) == nullptr) return distinct();
    return {a.rows | (a.cols & axis::depth), a.cols & axis::col};
  }
  /// Sums of edges as products with rows of 1, on a reproducible mesh; else null.
  std::unique_ptr<edge_products<T, Device>> exact_sums() const {
    const auto* const verbs = reproducible_verbs_of<T>(mesh());
    if (verbs == nullptr) return nullptr;
    const layout l = of_sums();
    return verbs->make_edge_products(std::make_shared<edge_schedule<T, Device>>(
        pattern_, l, l == layout_ ? features_ : whole_, width_, row_exchange::full));
  }

  /// Throws shape_error unless e and x are as planned.
  template <layout X>
  void require(const edge_matrix<T, Device>& e, const dense<T, X, Device>& x) const {
    if (e.pattern().local() != pattern_.local() || e.heads() != width_ || e.first_head() != 0)
      base::throw_error<shape_error>(
          {"rows of edges over a pattern of ", pattern_.shape(), " with ", width_, " columns were given ",
           e.heads(), " columns over a pattern of ", e.pattern().shape(),
           (e.pattern().local() == pattern_.local() ? "" : ", which is a different pattern")});
    if (partition::same_blocks(mesh().shape(), x.layout(), layout_) && x.row_blocking() == vertices() &&
        x.col_blocking() == features_)
      return;
    base::throw_error<shape_error>({"rows of edges over a pattern of ", pattern_.shape(), " with ", width_,
                                    " columns were given a matrix of ", x.shape(),
                                    "; shape, layout and blockings must match the plan"});
  }

 private:
  sparse<T, dynamic_layout, Device> pattern_;
  edge_end end_;
  layout layout_;
  blocking features_, whole_;
  local_index width_;
};

}  // namespace detail

/// A planned gather: e(v, u, :) = x(u, :), or x(v, :), for every entry (v, u) of A's pattern (m x n). X is
/// n x k for sources, m x k for targets, in any layout; E has k columns. Its adjoint is edge_scatter_plan.
///
/// Collective over the mesh: constructor and call. What travels: X to whole rows and, for sources, rows
/// along row as in spmm with A stationary; no edge values. Throws shape_error for operands that do not match
/// the plan.
template <class T, class Device>
class edge_gather_plan {
 public:
  using edges = edge_matrix<T, Device>;

  /// For X in layout `l` with columns partitioned by `features`.
  template <layout A>
  edge_gather_plan(const sparse<T, A, Device>& pattern, edge_end end, layout l, const blocking& features,
                   row_exchange rows = row_exchange::automatic)
      : ends_(pattern.stored_for("edge_gather_plan"), end, l, features) {
    const layout to = ends_.at_sources() ? ends_.distinct() : ends_.rows_of_tiles();
    change_ = ends_.between(l, to);
    if (change_)
      rows_ = buffer<T, Device>(ends_.mesh().queue(), static_cast<std::size_t>(change_->new_block().size()));
    if (ends_.at_sources()) stages_.emplace(ends_.stages(detail::row_flow::rows_come, rows));
  }
  /// For X like x.
  template <layout A, layout X>
  edge_gather_plan(const sparse<T, A, Device>& pattern, edge_end end, const dense<T, X, Device>& x,
                   row_exchange rows = row_exchange::automatic)
      : edge_gather_plan(pattern, end, x.layout(), x.col_blocking(), rows) {}

  /// e = the rows, or e += them if `adds`.
  template <layout X>
  void operator()(const dense<T, X, Device>& x, edges& e, bool adds = false) {
    ends_.require(e, x);
    matrix_view<const T> rows = x.local();
    if (change_) {
      const matrix_view<T> changed = transfer::view_of(rows_.data(), change_->new_block());
      (*change_)(rows, changed);
      rows = changed;
    }
    std::size_t number = 0;
    if (stages_)
      stages_->for_stages(rows, {}, 0,
                          [&](std::size_t, const local::csr_slice<T>& part, auto sources, T, auto) {
                            copy_rows(number++, part, local::gathers(sources), e, adds);
                          });
    else
      e.for_parts([&](std::size_t, const local::csr_slice<T>& part) {
        copy_rows(number++, part, local::reads(part.rows_of(rows)), e, adds);
      });
  }

  /// What this rank receives in one call, in closed form.
  traffic predicted() const {
    return (change_ ? change_->predicted() : traffic{}) +
           (stages_ ? stages_->plan().predicted_stages() : traffic{});
  }

 private:
  template <class Rows>
  void copy_rows(std::size_t number, const local::csr_slice<T>& part, const Rows& rows, edges& e, bool adds) {
    const auto& q = ends_.mesh().queue();
    passes_(
        q, number, part.entries, {},
        [&](const local::edge_chunk<T>& c, matrix_view<const T> from, T* to) {
          edge_apply(q, c.pattern, e.heads(), detail::value_at_end<T>{from, ends_.at_sources(), adds}, to,
                     to);
        },
        rows,
        adds ? local::updates_entries(part.values_in(e.values().data(), e.heads()), e.heads())
             : local::writes_entries(part.values_in(e.values().data(), e.heads()), e.heads()));
  }

  detail::edge_ends<T, Device> ends_;
  std::unique_ptr<redistribution<T, Device>> change_;
  buffer<T, Device> rows_;
  std::optional<detail::product_stages<T, Device>> stages_;
  local::entry_passes<Device> passes_;
};

/// A planned scatter: x(u, :) = the sum over v of e(v, u, :), or x(v, :) = the sum over u, over the entries
/// (v, u) of A's pattern (m x n); 0 for a vertex without any. X is n x k for sources, m x k for targets, in
/// any layout; E has k columns. Its adjoint is edge_gather_plan.
///
/// Collective over the mesh: constructor and call. What travels: sums, in a reduce-scatter among the ranks
/// that share rows of A or, for sources, along row, and then to the layout of X. On a reproducible mesh sums
/// are sent as doubles, twice for double, after an all-reduce of the largest terms. Throws shape_error for
/// operands that do not match the plan.
template <class T, class Device>
class edge_scatter_plan {
 public:
  using edges = edge_matrix<T, Device>;

  /// For X in layout `l` with columns partitioned by `features`.
  template <layout A>
  edge_scatter_plan(const sparse<T, A, Device>& pattern, edge_end end, layout l, const blocking& features)
      : ends_(pattern.stored_for("edge_scatter_plan"), end, l, features),
        change_(ends_.between(ends_.of_sums(), l)),
        exact_(ends_.exact_sums()) {
    const auto& m = ends_.mesh();
    if (change_) sums_ = buffer<T, Device>(m.queue(), static_cast<std::size_t>(change_->old_block().size()));
    if (exact_ != nullptr) return;
    if (ends_.at_sources())
      plan_sources();
    else if (m.shape().size(pattern.layout().cols) > 1)
      share_.emplace(m, pattern.layout().cols, pattern.local()->rows, ends_.width(),
                     detail::pieces_along(m, pattern.layout().cols, ends_.vertices(), ends_.distinct().rows),
                     true);
  }
  /// For X like x.
  template <layout A, layout X>
  edge_scatter_plan(const sparse<T, A, Device>& pattern, edge_end end, const dense<T, X, Device>& x)
      : edge_scatter_plan(pattern, end, x.layout(), x.col_blocking()) {}

  template <layout X>
  void operator()(const edges& e, dense<T, X, Device>& x) {
    ends_.require(e, x);
    const matrix_view<T> sums = change_ ? transfer::view_of(sums_.data(), change_->old_block()) : x.local();
    if (exact_ != nullptr)
      add_exactly(e, sums);
    else if (ends_.at_sources())
      add_at_sources(e, sums);
    else
      add_at_targets(e, sums);
    if (change_) (*change_)(sums, x.local());
  }

  /// What this rank receives in one call, in closed form.
  traffic predicted() const {
    traffic v = change_ ? change_->predicted() : traffic{};
    if (exact_ != nullptr)
      return v +
             (ends_.at_sources() ? exact_->predicted_transposed(false) : exact_->predicted_multiply(false));
    if (stages_) v += stages_->plan().predicted_stages();
    if (!share_) return v;
    const auto& m = ends_.mesh();
    const axis_set along = ends_.pattern().layout().cols;
    comm::collective op;
    op.kind = operation::reduce_scatter;
    op.count = ends_.vertices().block(ends_.distinct().rows, m.at()).size() * ends_.width();
    return v + received(op, partition::rank_in_group(m.shape(), along, m.at()), m.shape().size(along));
  }

 private:
  void plan_sources() {
    stages_.emplace(ends_.stages(detail::row_flow::sums_go, row_exchange::automatic));
    const auto& q = stages_->queue();
    passes_ = local::entry_passes<Device>(ends_.pattern().analysed()->inverses());
    std::size_t most = 0;
    stages_->plan().for_parts([&](std::size_t number, const local::csr_slice<T>& part) {
      passes_.prepare_inverse(q, number, part.entries);
      most = std::max(most, static_cast<std::size_t>(part.entries.nonzeros()));
    });
    ones_ = buffer<T, Device>(q, most);
    local::chunked::fill(q, T(1), matrix_view<T>{ones_.data(), 1, static_cast<local_index>(most)});
  }
  void add_exactly(const edges& e, matrix_view<T> sums) {
    if (ends_.at_sources())
      exact_->multiply_transposed(e, {}, sums);
    else
      exact_->multiply(e, {}, sums);
  }
  /// The sums of columns, as products with the incidence matrix of columns and entries.
  void add_at_sources(const edges& e, matrix_view<T> sums) {
    const auto& q = stages_->queue();
    const local_index k = e.heads();
    std::size_t number = 0;
    stages_->for_stages(
        {}, sums, 0, [&](std::size_t, const local::csr_slice<T>& part, auto, T beta, auto out) {
          const std::size_t n = number++;
          passes_(
              q, n, part.entries, {.inverse = true},
              [&](const local::edge_chunk<T>& c, const T* of_entries, matrix_view<T> to) {
                const local::csr_inverse_view by =
                    c.is_whole ? local::csr_inverse_view(passes_.inverse(q, n, part.entries)) : c.inverse;
                const local::csr_view<T> incidence{by.cols,          by.entries,   by.offsets,
                                                   by.entry_numbers, ones_.data(), by.entries};
                spmm(q, incidence, matrix_view<const T>{of_entries, by.entries, k}, c.beta_of_columns(beta),
                     to);
              },
              local::reads_entries(part.values_in(e.values().data(), k), k), local::adds(out, beta));
        });
  }
  void add_at_targets(const edges& e, matrix_view<T> sums) {
    const auto& q = ends_.mesh().queue();
    const matrix_view<T> rows = share_ ? share_->input() : sums;
    local::chunked::fill(q, T(0), rows);
    std::size_t number = 0;
    e.for_parts([&](std::size_t, const local::csr_slice<T>& part) {
      local::chunked::edge_row_fold(q, passes_, number++, part.entries, e.heads(), std::plus<>{},
                                    part.values_in(e.values().data(), e.heads()), part.rows_of(rows));
    });
    if (share_)
      (*share_)({sums.data, static_cast<std::size_t>(sums.rows) * static_cast<std::size_t>(sums.cols)});
  }

  detail::edge_ends<T, Device> ends_;
  std::unique_ptr<redistribution<T, Device>> change_;
  buffer<T, Device> sums_, ones_;
  std::optional<detail::product_stages<T, Device>> stages_;
  std::optional<detail::scattered_sum<T, Device>> share_;
  std::unique_ptr<edge_products<T, Device>> exact_;  ///< instead of the others
  local::entry_passes<Device> passes_;
};

}  // namespace partita::algebra
