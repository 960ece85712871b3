// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A layout says which mesh axes cut the rows of a matrix and which cut its columns; an axis in neither set
/// replicates. It is a value: of a matrix either part of its type or known at run time only.
///
/// On a mesh of 3 x 2 x 1 with `layout{axis::row, axis::col}`, a matrix lies like this (rank (row, col)):
///
///            columns 0..3   columns 4..6
///   rows 0..2   (0,0)          (0,1)
///   rows 3..4   (1,0)          (1,1)
///   rows 5..6   (2,0)          (2,1)

#include "partita/base/error.hpp"
#include "partita/partition/axis.hpp"

namespace partita {

/// A structural type, so that it can be a template argument. Nesting fixes the order of the axes.
struct layout {
  axis_set rows;
  axis_set cols;

  constexpr axis_set used() const { return rows | cols; }
  friend constexpr bool operator==(layout, layout) = default;
};

/// Rows cut by every axis, full width: where the neural-network part works.
inline constexpr layout vertex_rows{every_axis, {}};
/// Every rank has everything.
inline constexpr layout replicated{};
/// As a template argument: the layout is known at run time, as std::dynamic_extent says of a span.
inline constexpr layout dynamic_layout{axis_set(0xffu), axis_set(0xffu)};

/// "rows cut by row+depth, columns by col".
inline std::string to_string(layout l) {
  return base::sentence_of({"rows cut by ", name_of(l.rows), ", columns by ", name_of(l.cols)});
}

namespace partition {

/// Whether no axis cuts both dimensions.
constexpr bool is_layout(layout l) { return (l.rows & l.cols).empty(); }

/// l's rows cut also by the axes that cut its columns, full width: where a product with a replicated weight
/// is local.
constexpr layout full_width(layout l) { return l == dynamic_layout ? l : layout{l.used(), {}}; }

/// Whether A and X can be multiplied where they lie: X's rows are cut by row when A's are; an axis that cuts
/// A's columns splits the sum, so the result has to be put together along it, over X's rows or (col only) X's
/// columns.
constexpr bool multipliable(layout a, layout x) {
  return a.rows == (x.rows & axis::row) && !x.rows.contains(axis::col) && !x.cols.contains(axis::row) &&
         !x.cols.contains(axis::depth) && (!x.rows.contains(axis::depth) || a.cols.contains(axis::depth)) &&
         (!a.cols.contains(axis::col) || x.cols.contains(axis::col));
}

}  // namespace partition

/// l's rows, full width.
constexpr layout rows_of(layout l) { return l == dynamic_layout ? l : layout{l.rows, {}}; }

namespace partition {

/// `given`, which must be a layout, and that of a type where it has one. Throws shape_error.
inline layout checked_layout(layout given, layout of_type) {
  if (of_type != dynamic_layout && given != of_type)
    throw_error<shape_error>({"a matrix whose type has ", of_type, " cannot have ", given});
  if (!partition::is_layout(given))
    throw_error<shape_error>({"an axis cuts the rows of a layout or its columns, not both: ", given});
  return given;
}

}  // namespace partition

}  // namespace partita
