// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Mesh extents and rank coordinates.

#include <array>
#include <cstdint>
#include <string>

#include "partita/base/error.hpp"
#include "partita/partition/axis.hpp"

namespace partita {

/// Coordinates of a rank on the mesh.
struct coordinates {
  int row = 0;
  int col = 0;
  int depth = 0;

  constexpr int operator[](axis a) const { return a == axis::row ? row : a == axis::col ? col : depth; }
  constexpr int& operator[](axis a) { return a == axis::row ? row : a == axis::col ? col : depth; }
  friend constexpr bool operator==(coordinates, coordinates) = default;
};

/// A mesh of row x col x depth ranks. Ranks are numbered with col fastest, then depth, then row, the nesting
/// order of vertex_rows.
struct mesh_shape {
  int row = 1;
  int col = 1;
  int depth = 1;

  constexpr int operator[](axis a) const { return a == axis::row ? row : a == axis::col ? col : depth; }
  constexpr int size() const { return row * col * depth; }
  /// size() of extents whose product may be larger than an int; of more than 2^62, that.
  constexpr std::int64_t places() const {
    const auto of_plane = std::int64_t{row} * col, most = std::int64_t{1} << 62;
    return depth < 1 || of_plane <= most / depth ? of_plane * depth : most;
  }
  /// Number of ranks that differ only in the axes of `s`.
  constexpr int size(axis_set s) const {
    int n = 1;
    for (axis a : partition::all_axes) n *= s.contains(a) ? (*this)[a] : 1;
    return n;
  }
  constexpr coordinates at(int rank) const { return {rank / (col * depth), rank % col, rank / col % depth}; }
  constexpr int rank(coordinates c) const { return (c.row * depth + c.depth) * col + c.col; }
  friend constexpr bool operator==(mesh_shape, mesh_shape) = default;
};

namespace partition {

/// Rank of `at` within the group of ranks that differ from it only in the axes of `s`, ordered by mesh rank.
constexpr int rank_in_group(mesh_shape shape, axis_set s, coordinates at) {
  int p = 0;
  for (axis a : partition::order_of(nesting::rows))
    if (s.contains(a)) p = p * shape[a] + at[a];
  return p;
}

/// Inverse of rank_in_group: `base` with its coordinates along `s` replaced by those of group member `p`.
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
