// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Whole rows of neighbours: the rows of a matrix that the edges of own vertices need, and their places in a
/// table.

#include <vector>

#include "partita/algebra/dropout.hpp"
#include "partita/transfer/in_edges.hpp"

namespace partita::algebra::detail {

/// The in-edges of own vertices, or their out-edges: rows of a pattern whose columns are rows of a table of
/// own and needed vertices.
template <class T, class Device>
class neighbour_rows {
 public:
  explicit neighbour_rows(const transfer::in_edges<T, Device>& rows)
      : mesh_(rows.mesh()), halo_(rows.make_halo()), pattern_(rows.own_rows(halo_)) {
    std::vector<global_index> vertices;
    for (global_index v = rows.own().begin; v < rows.own().end; ++v) vertices.push_back(v);
    for (const global_index v : rows.needed()) vertices.push_back(v);
    vertices_ = buffer<global_index, Device>(mesh_.queue(), vertices.size());
    copy(mesh_.queue(), std::span<const global_index>(vertices), vertices_.span());
  }

  local_index own() const { return pattern_.rows; }
  std::size_t edges() const { return pattern_.nonzeros; }
  /// Gathers the rows of x for the table into `table`. Collective over the mesh. What travels: needed rows.
  matrix_view<const T> gather(matrix_view<const T> x, buffer<T, Device>& table) {
    table.grow(mesh_.queue(),
               static_cast<std::size_t>(pattern_.widths[0]) * static_cast<std::size_t>(x.cols));
    const matrix_view<T> rows{table.data(), pattern_.widths[0], x.cols, x.cols};
    halo_.gather(x, rows);  // (own + needed, columns of x)
    return rows;
  }
  traffic predicted(global_index width) const { return halo_.predicted_gather(width); }

  auto parts() const { return pattern_.parts(0); }
  const local_index* columns_of(const local::csr_slice<T>& part) const { return pattern_.columns_of(part); }
  /// The mask for rows of the table instead of vertices.
  base::dropped<T> keep(const dropout_mask& mask) const {
    return mask.of(vertices_.data()).template function<T>();
  }

 private:
  mesh<Device> mesh_;
  transfer::halo<T, Device> halo_;
  local::csr_tiles<T, Device> pattern_;    ///< one tile without values
  buffer<global_index, Device> vertices_;  ///< of the rows of a table
};

}  // namespace partita::algebra::detail
