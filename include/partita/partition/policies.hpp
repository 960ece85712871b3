// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Partition policies for the sparse-dense product, and the meshes they accept.

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "partita/partition/layout.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita {

/// A partition policy: a layout for the sparse operand A (n x n) and one for the dense operands X, Y (n x f).
/// `spmm` derives its communication from the two. Of all pairs of layouts, 18 can be multiplied (see
/// partition::is_sparse_layout and partition::multipliable):
///
///     A's rows       by row or none; X's rows by row too, or not either
///     A's columns    by col, depth, both or none
///     X's rows       also by depth, if A's columns are cut by it
///     X's columns    by col or none; by col if A's columns are cut by it
///
/// Every axis along which a mesh has several ranks cuts A or X.
struct policy {
  std::string_view name;
  layout sparse;
  layout dense;

  /// Mesh axes that may have more than one rank.
  constexpr axis_set used() const { return sparse.used() | dense.used(); }
};

/// 1D block rows.
inline constexpr policy row_1d{"row_1d", {axis::row, {}}, {axis::row, {}}};
/// 1.5D: X is replicated c = depth times; each replica multiplies 1/c of A's columns.
inline constexpr policy replicated_1_5d{"replicated_1_5d", {axis::row, axis::depth}, {axis::row, {}}};
/// 2D grid, as in SUMMA.
inline constexpr policy grid_2d{"grid_2d", {axis::row, axis::col}, {axis::row, axis::col}};
/// 3D: one 2D grid per depth index, partial sums reduced along depth.
inline constexpr policy split_3d{
    "split_3d", {axis::row, axis::col | axis::depth}, {axis::row | axis::depth, axis::col}};
/// Feature columns cut, A replicated (tensor parallelism); the sparse product needs no communication.
inline constexpr policy feature_column{"feature_column", {}, {{}, axis::col}};
/// Feature columns cut within a node (col), rows across nodes (row).
inline constexpr policy feature_row{"feature_row", {axis::row, {}}, {axis::row, axis::col}};

/// All named policies, as searched by find_policy().
inline constexpr std::array named_policies{row_1d,   replicated_1_5d, grid_2d,
                                           split_3d, feature_column,  feature_row};

/// Finds a policy by name. Throws mesh_error if there is none.
inline const policy& find_policy(std::string_view name) {
  std::string known;
  for (const policy& p : named_policies) {
    if (p.name == name) return p;
    known += (known.empty() ? "" : ", ") + std::string(p.name);
  }
  base::throw_error<mesh_error>({"unknown policy '", name, "'; known policies: ", known});
}

/// Throws mesh_error if `shape` does not have `ranks` ranks, or extends along an axis that the policy does
/// not use (ranks along it would all do the same), and shape_error if the policy's layouts cannot be
/// multiplied.
inline void require_mesh(const policy& p, mesh_shape shape, int ranks) {
  partition::require_sparse_layout(p.sparse);
  if (!partition::multipliable(p.sparse, p.dense))
    base::throw_error<shape_error>(
        {"policy ", p.name, ": A with ", p.sparse, " and X with ", p.dense,
         " cannot be multiplied: row must cut the rows of both or of neither; col may cut X's columns, and "
         "must if it cuts A's; depth may cut X's rows if it cuts A's columns; nothing else may cut X"});
  if (ranks < 1) base::throw_error<mesh_error>({"a mesh needs at least one rank, not ", ranks});
  if (shape.row < 1 || shape.col < 1 || shape.depth < 1)
    base::throw_error<mesh_error>({"mesh ", shape, " has an axis of size less than 1"});
  if (shape.places() != ranks)
    base::throw_error<mesh_error>({"mesh ", shape, " has ", shape.places(), " places for ", ranks, " ranks"});
  for (axis a : partition::all_axes)
    if (shape[a] > 1 && !p.used().contains(a))
      base::throw_error<mesh_error>(
          {"policy ", p.name, " does not use the ", partition::name_of(a), " axis of mesh ", shape});
}

namespace partition {

/// Every mesh of `ranks` ranks that the policy allows.
inline std::vector<mesh_shape> meshes_of(const policy& p, int ranks) {
  const auto longest = [&](axis a) { return p.used().contains(a) ? ranks : 1; };
  std::vector<mesh_shape> meshes;
  for (int depth = 1; depth <= longest(axis::depth); ++depth)
    for (int col = 1; col <= longest(axis::col); ++col)
      if (ranks % (depth * col) == 0 && ranks / (depth * col) <= longest(axis::row))
        meshes.push_back({ranks / (depth * col), col, depth});
  return meshes;
}

/// The axes along which a mesh has several ranks.
constexpr axis_set axes_with_ranks(mesh_shape mesh) {
  axis_set axes;
  for (const axis a : all_axes)
    if (mesh[a] > 1) axes = axes | a;
  return axes;
}

/// The name of the first of these policies, of those before `p`, that cuts matrices on this mesh as `p` does,
/// because axes have one rank there; empty where there is none.
inline std::string_view same_policy(const policy& p, mesh_shape mesh,
                                    std::span<const policy> among = named_policies) {
  const axis_set axes = axes_with_ranks(mesh);
  const auto effective = [&](layout l) { return layout{l.rows & axes, l.cols & axes}; };
  for (const policy& other : among) {
    if (other.name == p.name) break;
    if (effective(other.sparse) == effective(p.sparse) && effective(other.dense) == effective(p.dense))
      return other.name;
  }
  return {};
}

}  // namespace partition

/// The mesh of `ranks` ranks over the policy's axes that is closest to a square or cube, longer axes first.
/// `replication` fixes the depth. Throws mesh_error if the replication does not divide the ranks or no mesh
/// fits.
inline mesh_shape default_mesh(const policy& p, int ranks, std::optional<int> replication = {}) {
  if (ranks < 1) base::throw_error<mesh_error>({"a mesh needs at least one rank, not ", ranks});
  if (replication && (*replication < 1 || ranks % *replication != 0))
    base::throw_error<mesh_error>({"replication ", *replication, " does not divide ", ranks, " ranks"});
  mesh_shape best{0, 0, 0};
  for (const mesh_shape m : partition::meshes_of(p, ranks)) {
    if (replication && m.depth != *replication) continue;
    if (best.row == 0 || m.row + m.col + m.depth < best.row + best.col + best.depth) best = m;
  }
  if (best.row == 0)
    base::throw_error<mesh_error>(
        {"policy ", p.name, " has no mesh of ", ranks, " ranks with replication ", replication.value_or(1)});
  return best;
}

}  // namespace partita
