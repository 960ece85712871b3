// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which block of a matrix each rank owns.

#include "partita/partition/blocking.hpp"
#include "partita/partition/layout.hpp"

namespace partita::partition {

/// A rectangle of a global matrix.
struct rectangle {
  interval rows;
  interval cols;

  constexpr global_index size() const { return rows.size() * cols.size(); }
  friend constexpr bool operator==(rectangle, rectangle) = default;
};

constexpr rectangle intersection(rectangle a, rectangle b) {
  return {intersection(a.rows, b.rows), intersection(a.cols, b.cols)};
}

/// The block of a matrix owned by the rank at `at` in layout `l`.
inline rectangle block_of(const blocking& rows, const blocking& cols, layout l, coordinates at) {
  return {rows.block(l.rows, at), cols.block(l.cols, at)};
}

/// Whether every rank has the same block in both layouts, that is, they differ only in axes of size 1.
constexpr bool same_blocks(mesh_shape m, layout a, layout b) {
  const auto alike = [m](axis_set s, axis_set t) { return m.size(s - t) == 1 && m.size(t - s) == 1; };
  return alike(a.rows, b.rows) && alike(a.cols, b.cols);
}

/// A layout with the blockings that it cuts by.
struct block_layout {
  blocking rows;
  blocking cols;
  layout axes;

  matrix_shape shape() const { return {rows.size(), cols.size()}; }
  rectangle block(coordinates at) const { return block_of(rows, cols, axes, at); }
  friend bool operator==(const block_layout&, const block_layout&) = default;
};

/// With even blocks.
inline block_layout evenly(matrix_shape shape, mesh_shape m, layout axes) {
  return {blocking::even(shape.rows, m, nesting::rows), blocking::even(shape.cols, m, nesting::cols), axes};
}

}  // namespace partita::partition
