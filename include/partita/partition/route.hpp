// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Communication needed to redistribute a matrix from one layout to another. The ranks that differ only in
/// the axes of `group` together own every member's new block, each a different part of it.

#include "partita/partition/layout.hpp"
#include "partita/partition/mesh_shape.hpp"

namespace partita::partition {

/// Kind of communication.
enum class movement : std::uint8_t {
  slice,       ///< the new block is part of the old one: no communication
  all_gather,  ///< every member of the group needs the same block
  all_to_all   ///< members need different parts of one another's blocks
};

/// A redistribution: its kind, and the axes of the group that takes part.
struct route {
  movement kind = movement::slice;
  axis_set group;

  friend constexpr bool operator==(route, route) = default;
};

namespace detail {

/// Axes of `from` after the longest common prefix of both sets in nesting order.
constexpr axis_set beyond_common(axis_set from, axis_set to, nesting order) {
  axis_set rest;
  bool common = true;
  for (axis a : partition::order_of(order)) {
    if (from.contains(a) != to.contains(a)) common = false;
    if (!common && from.contains(a)) rest = rest | a;
  }
  return rest;
}

}  // namespace detail

/// The route from one layout to another. Newly used axes: slice locally. Axes that move between rows and
/// columns, or nest differently: all-to-all. Axes no longer used: all-gather. Source: the redistribution
/// algebra of Elemental (Poulson et al., ACM TOMS 2013), reduced to axis sets.
constexpr route route_between(layout from, layout to) {
  const axis_set group = detail::beyond_common(from.rows, to.rows, nesting::rows) |
                         detail::beyond_common(from.cols, to.cols, nesting::cols);
  if (group.empty()) return {movement::slice, group};
  if ((to.used() & group).empty()) return {movement::all_gather, group};
  return {movement::all_to_all, group};
}

/// The route on a mesh, on which axes of size 1 play no part.
constexpr route on_mesh(route r, layout to, mesh_shape m) {
  for (const axis a : all_axes)
    if (m[a] == 1) r.group = r.group - a;
  if (r.group.empty()) return {movement::slice, {}};
  return {(to.used() & r.group).empty() ? movement::all_gather : movement::all_to_all, r.group};
}

}  // namespace partita::partition
