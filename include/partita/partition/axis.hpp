// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The three mesh axes, and sets of them.

#include <array>
#include <cstdint>
#include <string>

namespace partita {

/// A mesh axis.
enum class axis : std::uint8_t { row, col, depth };

namespace partition {

inline constexpr std::array<axis, 3> all_axes{axis::row, axis::col, axis::depth};

constexpr const char* name_of(axis a) { return a == axis::row ? "row" : a == axis::col ? "col" : "depth"; }

}  // namespace partition

/// A set of axes. Structural type, usable as a template argument.
struct axis_set {
  std::uint8_t bits = 0;

  constexpr axis_set() = default;
  constexpr axis_set(axis a) : bits(static_cast<std::uint8_t>(1u << static_cast<unsigned>(a))) {}
  /// Implicit because nvcc spells a template argument of this type as {bits}.
  constexpr axis_set(unsigned b) : bits(static_cast<std::uint8_t>(b)) {}

  constexpr bool contains(axis a) const { return (bits & axis_set(a).bits) != 0; }
  constexpr bool empty() const { return bits == 0; }
  friend constexpr bool operator==(axis_set, axis_set) = default;
};

constexpr axis_set operator|(axis_set a, axis_set b) { return axis_set(unsigned(a.bits | b.bits)); }
constexpr axis_set operator|(axis a, axis b) { return axis_set(a) | axis_set(b); }
constexpr axis_set operator&(axis_set a, axis_set b) { return axis_set(unsigned(a.bits & b.bits)); }
constexpr axis_set operator-(axis_set a, axis_set b) { return axis_set(unsigned(a.bits & ~b.bits)); }

namespace partition {

inline constexpr axis_set every_axis{7u};

/// "row+depth"; "none" for the empty set.
inline std::string name_of(axis_set s) {
  std::string name;
  for (axis a : all_axes)
    if (s.contains(a)) name.append(name.empty() ? "" : "+").append(name_of(a));
  if (name.empty()) name = "none";
  return name;
}

}  // namespace partition

/// Nesting order of the axes that cut a dimension, outermost first: rows by row, depth, col; columns by col,
/// depth, row.
enum class nesting : std::uint8_t { rows, cols };

namespace partition {

constexpr std::array<axis, 3> order_of(nesting n) {
  return n == nesting::rows ? std::array{axis::row, axis::depth, axis::col}
                            : std::array{axis::col, axis::depth, axis::row};
}

}  // namespace partition

}  // namespace partita
