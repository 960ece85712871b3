// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sampled dense-dense products on in-edges, from whole rows.

#include "partita/local/chunked_edges.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/transfer/in_edges.hpp"

namespace partita::algebra {

/// e(v, u, h) = sum over the columns j of head h of y(v, j) x(u, j) for the in-edges of own vertices, in the
/// order of in_edges::own_rows (in-edges x heads); Y and X (n x f) in vertex_rows, heads side by side.
///
/// Collective over the mesh: constructor and call. What travels: the rows of X owned by other ranks and
/// referenced by in-edges of own vertices, f wide, each once.
template <class T, class Device>
class in_edge_sddmm_plan {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// For `heads` heads of `head_width` columns each.
  in_edge_sddmm_plan(const transfer::in_edges<T, Device>& edges, local_index heads, local_index head_width)
      : slice_{heads, head_width, 0},
        halo_(edges.make_halo()),
        rows_(edges.own_rows(halo_)),
        table_(edges.mesh().queue(), static_cast<std::size_t>(rows_.widths[0] * width())) {}

  void operator()(const matrix& y, const matrix& x, std::span<T> e) {
    const matrix_view<T> table{table_.data(), rows_.widths[0], x.local().cols, x.local().cols};
    halo_.gather(x.local(), table);  // (own + needed, f)
    std::size_t number = 0;
    for (const local::csr_slice<T>& part : rows_.parts(0))
      local::chunked::edge_dot(x.mesh().queue(), passes_, number++, part.entries, slice_,
                               part.rows_of(y.local()), table, T(0), part.values_in(e.data(), slice_.heads));
  }

  /// What this rank receives in one call, in closed form.
  traffic predicted() const { return halo_.predicted_gather(width()); }

 private:
  global_index width() const { return global_index{slice_.heads} * slice_.head_width; }

  local::head_slice slice_;
  transfer::halo<T, Device> halo_;
  local::csr_tiles<T, Device> rows_;    ///< a pattern: one tile without values
  local::entry_passes<Device> passes_;  ///< over its parts
  buffer<T, Device> table_;
};

}  // namespace partita::algebra
