// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The columns of a sparse matrix's tiles.

#include <vector>

#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita::partition {

/// The axes that partition A's columns, matching the rows of the dense operand: A's column axes, nested
/// inside its row axes.
constexpr axis_set column_cut(layout sparse_layout) { return sparse_layout.rows | sparse_layout.cols; }

/// Throws shape_error unless `l` is a sparse layout and the blockings are of this mesh.
inline void require_sparse(mesh_shape shape, layout l, const blocking& rows, const blocking& cols) {
  require_sparse_layout(l);
  for (const blocking* b : {&rows, &cols})
    if (!(b->shape() == shape))
      base::throw_error<shape_error>(
          {"blockings of mesh ", b->shape(), " given to a sparse matrix on mesh ", shape});
}

/// The global columns of tile t of the rank at `at`, and those of all its tiles.
inline interval tile_columns(layout sparse_layout, const blocking& cols, coordinates at, std::size_t t) {
  at.row = static_cast<int>(t);
  return cols.block(column_cut(sparse_layout), at);
}
inline std::vector<interval> tile_columns(layout sparse_layout, const blocking& cols, coordinates at) {
  std::vector<interval> columns(
      sparse_layout.rows.contains(axis::row) ? static_cast<std::size_t>(cols.shape().row) : 1);
  for (std::size_t t = 0; t < columns.size(); ++t) columns[t] = tile_columns(sparse_layout, cols, at, t);
  return columns;
}

}  // namespace partita::partition
