// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Redistribution as a relation of two cuts. A rank at `at` needs its new block; the ranks that differ from
/// it only in the axes of `group` own all of it between them, each a different part.

#include "partita/partition/layout.hpp"

namespace partita::partition {

enum class movement : std::uint8_t {
  slice,       ///< the new block lies in the old one: nothing travels
  all_gather,  ///< every member of the group needs the same block
  all_to_all   ///< members need different parts of one another's blocks
};

struct route {
  movement kind = movement::slice;
  axis_set group;

  friend constexpr bool operator==(route, route) = default;
};

namespace detail {

/// Axes of `from` that come after the longest common beginning of both lists.
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

/// Axes newly used slice; axes that move between rows and columns, or under another nesting, all-to-all; axes
/// no longer used all-gather. Source: the algebra of distributions of Elemental (Poulson et al., ACM TOMS
/// 2013), reduced to axes.
constexpr route route_between(layout from, layout to) {
  const axis_set group = detail::beyond_common(from.rows, to.rows, nesting::rows) |
                         detail::beyond_common(from.cols, to.cols, nesting::cols);
  if (group.empty()) return {movement::slice, group};
  if ((to.used() & group).empty()) return {movement::all_gather, group};
  return {movement::all_to_all, group};
}

}  // namespace partita::partition
