// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The sizes of the mesh axes and the place of a rank in them.

#include <array>
#include <string>

#include "partita/base/error.hpp"
#include "partita/partition/axis.hpp"

namespace partita {

/// Where a rank stands on each axis.
struct coordinates {
  int row = 0;
  int col = 0;
  int depth = 0;

  constexpr int operator[](axis a) const { return a == axis::row ? row : a == axis::col ? col : depth; }
  constexpr int& operator[](axis a) { return a == axis::row ? row : a == axis::col ? col : depth; }
  friend constexpr bool operator==(coordinates, coordinates) = default;
};

/// row x col x depth ranks. Ranks are numbered with col fastest, then depth, then row, as vertex_rows nests.
struct mesh_shape {
  int row = 1;
  int col = 1;
  int depth = 1;

  constexpr int operator[](axis a) const { return a == axis::row ? row : a == axis::col ? col : depth; }
  constexpr int size() const { return row * col * depth; }
  /// Number of ranks that differ only in the axes of `s`.
  constexpr int size(axis_set s) const {
    int n = 1;
    for (axis a : all_axes) n *= s.contains(a) ? (*this)[a] : 1;
    return n;
  }
  constexpr coordinates at(int rank) const { return {rank / (col * depth), rank % col, rank / col % depth}; }
  constexpr int rank(coordinates c) const { return (c.row * depth + c.depth) * col + c.col; }
  friend constexpr bool operator==(mesh_shape, mesh_shape) = default;
};

namespace partition {

/// Position of `at` among the ranks that differ from it only in the axes of `s`, counted as ranks are.
constexpr int rank_in_group(mesh_shape shape, axis_set s, coordinates at) {
  int p = 0;
  for (axis a : partition::order_of(nesting::rows))
    if (s.contains(a)) p = p * shape[a] + at[a];
  return p;
}

/// The inverse of position: `base` with its coordinates along `s` replaced by those of member `p`.
constexpr coordinates group_member(mesh_shape shape, axis_set s, coordinates base, int p) {
  const auto order = partition::order_of(nesting::rows);
  for (int i = 2; i >= 0; --i) {
    const axis a = order[static_cast<std::size_t>(i)];
    if (!s.contains(a)) continue;
    base[a] = p % shape[a];
    p /= shape[a];
  }
  return base;
}

}  // namespace partition

inline std::string to_string(mesh_shape m) { return base::sentence_of({m.row, "x", m.col, "x", m.depth}); }

}  // namespace partita
