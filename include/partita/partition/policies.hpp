// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A partition policy: a layout of the sparse operand A (n x n) and one of the dense operands X, Y (n x f).
/// Everything that `spmm` does follows from the two.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "partita/partition/layout.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita {

struct policy {
  std::string_view name;
  layout sparse;
  layout dense;

  /// The axes of a mesh that may have more than one rank.
  constexpr axis_set used() const { return sparse.used() | dense.used(); }
};

/// 1D block rows.
inline constexpr policy row_1d{"row_1d", {axis::row, {}}, {axis::row, {}}};
/// 1.5D: c = depth copies of X, each multiplied by 1/c of A's columns.
inline constexpr policy replicated_1_5d{"replicated_1_5d", {axis::row, axis::depth}, {axis::row, {}}};
/// 2D grid, as SUMMA has it.
inline constexpr policy grid_2d{"grid_2d", {axis::row, axis::col}, {axis::row, axis::col}};
/// 3D split: a grid for each depth, partial sums reduced over depth.
inline constexpr policy split_3d{
    "split_3d", {axis::row, axis::col | axis::depth}, {axis::row | axis::depth, axis::col}};
/// Feature columns, A everywhere: tensor parallelism; the sparse product moves nothing.
inline constexpr policy feature_column{"feature_column", {}, {{}, axis::col}};
/// Features inside the node (col), rows across nodes (row).
inline constexpr policy feature_row{"feature_row", {axis::row, {}}, {axis::row, axis::col}};

inline constexpr std::array named_policies{row_1d,   replicated_1_5d, grid_2d,
                                           split_3d, feature_column,  feature_row};

/// The named policy called `name`. Throws mesh_error when there is none.
inline const policy& find_policy(std::string_view name) {
  std::string known;
  for (const policy& p : named_policies) {
    if (p.name == name) return p;
    known += (known.empty() ? "" : ", ") + std::string(p.name);
  }
  throw_error<mesh_error>({"there is no policy '", name, "'; the policies are ", known});
}

/// Throws mesh_error when `shape` does not fill `ranks` or has ranks on an axis that the policy does not use.
inline void require_mesh(const policy& p, mesh_shape shape, int ranks) {
  if (ranks < 1) throw_error<mesh_error>({"a mesh needs at least one rank, not ", ranks});
  if (shape.row < 1 || shape.col < 1 || shape.depth < 1)
    throw_error<mesh_error>({"mesh ", shape, " has an axis without ranks"});
  if (shape.size() != ranks)
    throw_error<mesh_error>({"mesh ", shape, " has ", shape.size(), " places for ", ranks, " ranks"});
  for (axis a : all_axes)
    if (shape[a] > 1 && !p.used().contains(a))
      throw_error<mesh_error>({"policy ", p.name, " does not use the ", name_of(a), " axis of mesh ", shape});
}

/// The mesh of `ranks` ranks over the axes of the policy that is nearest to a square or a cube, the longer
/// axes first; with `replication` its depth is that. Throws mesh_error when the replication does not divide
/// the ranks.
inline mesh_shape default_mesh(const policy& p, int ranks, std::optional<int> replication = {}) {
  if (ranks < 1) throw_error<mesh_error>({"a mesh needs at least one rank, not ", ranks});
  if (replication && (*replication < 1 || ranks % *replication != 0))
    throw_error<mesh_error>({"replication ", *replication, " does not divide ", ranks, " ranks"});
  mesh_shape best{0, 0, 0};
  const auto longest = [&](axis a) { return p.used().contains(a) ? ranks : 1; };
  for (int depth = 1; depth <= longest(axis::depth); ++depth)
    for (int col = 1; col <= longest(axis::col); ++col) {
      if (ranks % (depth * col) != 0 || (replication && depth != *replication)) continue;
      const mesh_shape m{ranks / (depth * col), col, depth};
      if (m.row > longest(axis::row)) continue;
      if (best.row == 0 || m.row + m.col + m.depth < best.row + best.col + best.depth) best = m;
    }
  if (best.row == 0)
    throw_error<mesh_error>(
        {"policy ", p.name, " has no mesh of ", ranks, " ranks with replication ", replication.value_or(1)});
  return best;
}

}  // namespace partita
