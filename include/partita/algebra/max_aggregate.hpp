// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Max aggregation over in-neighbours, under any policy.

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/algebra/exact_sums.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/chunked_edges.hpp"
#include "partita/transfer/in_edges.hpp"

namespace partita {

namespace algebra::detail {

/// dH on a reproducible mesh: table rows of gradients as sums of double on a common grid, which their owners
/// add up.
///
/// Collective over the mesh: constructor and call. What travels: once for float, twice for double, what a
/// scatter_add of the halo sends, as doubles; and an all-reduce of two elements.
template <class T, class Device>
class exact_max_gradient {
 public:
  exact_max_gradient(const transfer::in_edges<T, Device>& rows, local_index table_rows)
      : mesh_(rows.mesh()),
        terms_(rows.vertices().size()),
        halo_(rows.template make_halo<double>()),
        table_rows_(table_rows) {}

  /// scatter(part, table): table (own + needed, f) += part(term) for each of this rank's terms, which are
  /// numbers of dy.
  template <class Scatter>
  void operator()(matrix_view<const T> dy, matrix_view<T> dh, Scatter scatter) {
    const auto& q = mesh_.queue();
    const base::exact_grid grid = common_grid<T>(mesh_, magnitude(q, dy), 1, terms_);
    const auto size = static_cast<std::size_t>(dh.rows) * static_cast<std::size_t>(dh.cols);
    table_.grow(q, static_cast<std::size_t>(table_rows_) * static_cast<std::size_t>(dh.cols));
    sums_.grow(q, base::exact_sums<T> * size);
    const matrix_view<double> table{table_.data(), table_rows_, dh.cols, dh.cols};
    base::for_exact_parts<T>(grid, [&](int level, auto part) {
      fill(q, 0.0, table);
      scatter(part, table);
      halo_.scatter_add(table,
                        {sums_.data() + static_cast<std::size_t>(level) * size, dh.rows, dh.cols, dh.cols});
    });
    round_sums(q, std::as_const(sums_).span().first(base::exact_sums<T> * size), 1.0,
               std::span<T>(dh.data, size));
  }

  traffic predicted(global_index width) const {
    return global_index{base::exact_sums<T>} * halo_.predicted_scatter(width) +
           predicted_all_reduce(mesh_, 2);
  }

 private:
  mesh<Device> mesh_;
  global_index terms_;
  transfer::halo<double, Device> halo_;
  local_index table_rows_;
  buffer<double, Device> table_, sums_;
};

}  // namespace algebra::detail

/// Y(v, j) = max over u->v of H(u, j), or 0 if v has no in-edges (n x f, n x f); H and Y in vertex_rows. Edge
/// values are ignored. Ties go to the neighbour with the smallest global index, at any number of ranks, and
/// it alone receives the gradient: dH(u, j) = sum of dY(v, j) over all v whose maximum is at u.
///
/// Collective over the mesh: constructor and members. What travels: index lists, once, in the constructor.
/// Forward: the rows of H owned by other ranks and referenced by in-edges of own vertices, f wide, each once.
/// Backward: the gradients of the same rows, in the opposite direction; on a reproducible mesh as doubles,
/// twice for double, and an all-reduce of two elements. A maximum needs whole rows of the graph, so the
/// policy only determines which rank owns which vertices. Throws shape_error for matrices of the wrong shape.
/// Source: the max aggregator of Hamilton, Ying, Leskovec (NeurIPS 2017), section 3.3, without its dense
/// layer.
template <class T, class Device>
class max_aggregation {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  max_aggregation(const sparse<T, dynamic_layout, Device>& edges, global_index width)
      : max_aggregation(edges, transfer::in_edges<T, Device>(edges.stored_for("max_aggregation")), width) {}

  void forward(const matrix& h, matrix& y) {
    require(h);
    require(y);
    const auto& q = mesh_.queue();
    halo_.gather(h.local(), table());  // (own + needed, f)
    std::size_t number = 0;
    for (const local::csr_slice<T>& part : rows_.parts(0))
      local::chunked::max_aggregate(q, passes_, number++, part.entries, table(), part.rows_of(y.local()),
                                    part.rows_of(winners()));  // rows of (n/P, f)
  }

  /// dh from dy, using the maxima of the last forward.
  void backward(const matrix& dy, matrix& dh) {
    require(dy);
    require(dh);
    const auto& q = mesh_.queue();
    if constexpr (local::sums_exactly<Device>)
      if (exact_)
        return (*exact_)(dy.local(), dh.local(), [&](auto part_of, matrix_view<double> sums) {
          for (const local::csr_slice<T>& part : rows_.parts(0))
            exact_max_scatter(q, part.entries, part.rows_of(winners()), part.rows_of(dy.local()), part_of,
                              sums);  // (own + needed, f)
        });
    local::chunked::fill(q, T(0), table());
    std::size_t number = 0;
    for (const local::csr_slice<T>& part : rows_.parts(0))
      local::chunked::max_scatter(q, passes_, number++, part.entries, part.rows_of(winners()),
                                  part.rows_of(dy.local()), table());  // (own + needed, f)
    halo_.scatter_add(table(), dh.local());                            // (n/P, f)
  }

  /// What this rank receives in one forward, in one backward and in both, in closed form.
  traffic predicted_forward() const { return halo_.predicted_gather(width_); }
  traffic predicted_backward() const {
    if constexpr (local::sums_exactly<Device>)
      if (exact_) return exact_->predicted(width_);
    return halo_.predicted_scatter(width_);
  }
  traffic predicted() const { return predicted_forward() + predicted_backward(); }

 private:
  /// Renumbering columns to table rows keeps the order of global columns within a row, so that the kernel,
  /// which takes the first of equals, picks the smallest global index.
  max_aggregation(const sparse<T, dynamic_layout, Device>& edges, const transfer::in_edges<T, Device>& rows,
                  global_index width)
      : mesh_(edges.mesh()),
        vertices_(edges.row_blocking()),
        width_(base::to_local(width, "the width of a maximum")),
        halo_(rows.make_halo()),
        rows_(rows.own_rows(halo_)),
        table_(mesh_.queue(), static_cast<std::size_t>(rows_.widths[0]) * static_cast<std::size_t>(width_)),
        winners_(mesh_.queue(), static_cast<std::size_t>(rows_.rows) * static_cast<std::size_t>(width_)) {
    if constexpr (local::sums_exactly<Device>)
      if (mesh_.reproducible()) exact_.emplace(rows, rows_.widths[0]);
    if constexpr (local::chunked::scatters_by_inverse<T, Device>)
      for (std::size_t number = 0; const local::csr_slice<T>& part : rows_.parts(0))
        passes_.prepare_inverse(mesh_.queue(), number++, part.entries);
  }

  void require(const matrix& x) const {
    if (!(x.row_blocking() == vertices_) || x.shape().cols != width_)
      base::throw_error<shape_error>({"a maximum over neighbours of ", matrix_shape{vertices_.size(), width_},
                                      " was given a matrix of ", x.shape(),
                                      "; shape and row blocking must match"});
  }
  matrix_view<T> table() { return {table_.data(), rows_.widths[0], width_, width_}; }
  matrix_view<local_index> winners() { return {winners_.data(), rows_.rows, width_, width_}; }

  mesh<Device> mesh_;
  blocking vertices_;
  local_index width_;
  transfer::halo<T, Device> halo_;
  local::csr_tiles<T, Device> rows_;  ///< a pattern: one tile without values
  buffer<T, Device> table_;           ///< of values, then of gradients
  buffer<local_index, Device> winners_;
  local::entry_passes<Device> passes_;  ///< over the parts of rows_
  struct no_exact_gradient {};
  std::conditional_t<local::sums_exactly<Device>,
                     std::optional<algebra::detail::exact_max_gradient<T, Device>>,
                     no_exact_gradient>
      exact_;  ///< on a reproducible mesh
};

}  // namespace partita
