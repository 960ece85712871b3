// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Max aggregation over in-neighbours, under any policy.

#include <memory>
#include <optional>

#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/chunked_edges.hpp"
#include "partita/transfer/in_edges.hpp"

namespace partita {

/// Y(v, j) = max over u->v of H(u, j), or 0 if v has no in-edges (n x f, n x f); H and Y in vertex_rows. Edge
/// values are ignored. Ties go to the neighbour with the smallest global index, on any number of ranks; only
/// it receives the gradient: dH(u, j) = sum of dY(v, j) over all v whose maximum is at u.
///
/// Collective over the mesh: constructor and members. What travels: index lists, once, in the constructor.
/// Forward: the rows of H (f wide) that other ranks own and in-edges of own vertices reference, each once.
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

  /// dh from dy, using the winners of the last forward.
  void backward(const matrix& dy, matrix& dh) {
    require(dy);
    require(dh);
    if (gradient_) return (*gradient_)(rows_.parts(0), winners(), dy.local(), dh.local());
    const auto& q = mesh_.queue();
    std::size_t number = 0;
    if (out_rows_) {
      for (const local::csr_slice<T>& part : out_rows_->parts(0))
        local::chunked::max_gather(q, passes_, number++, part.entries, part.first_row, winners(), dy.local(),
                                   part.rows_of(table()));  // rows of (own + needed, f)
    } else {
      local::chunked::fill(q, T(0), table());
      for (const local::csr_slice<T>& part : rows_.parts(0))
        local::chunked::max_scatter(q, passes_, number++, part.entries, part.rows_of(winners()),
                                    part.rows_of(dy.local()), table());  // (own + needed, f)
    }
    halo_.scatter_add(table(), dh.local());  // (n/P, f)
  }

  /// What this rank receives in one forward, in one backward and in both, in closed form.
  traffic predicted_forward() const { return halo_.predicted_gather(width_); }
  traffic predicted_backward() const {
    return gradient_ ? gradient_->predicted(width_) : halo_.predicted_scatter(width_);
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
    if (const auto* const verbs = algebra::reproducible_verbs_of<T>(mesh_))
      gradient_ = verbs->make_max_gradient(mesh_, rows.sources(), rows.needed(), rows.vertices().size());
    if (!gradient_ && local::chunked::gathers_maxima(mesh_.queue())) out_rows_ = rows.out_rows(halo_);
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
  local::csr_tiles<T, Device> rows_;                     ///< a pattern: one tile without values
  std::optional<local::csr_tiles<T, Device>> out_rows_;  ///< its transpose, where gradients are gathered
  buffer<T, Device> table_;                              ///< first of values, then of gradients
  buffer<local_index, Device> winners_;
  local::entry_passes<Device> passes_;                          ///< over the parts of both
  std::unique_ptr<algebra::max_gradient<T, Device>> gradient_;  ///< on a reproducible mesh, else null
};

}  // namespace partita
