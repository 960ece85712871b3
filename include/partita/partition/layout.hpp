// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Layouts: which mesh axes cut the rows of a matrix and which cut its columns.

#include "partita/base/error.hpp"
#include "partita/partition/axis.hpp"

namespace partita {

/// Which mesh axes cut the rows of a matrix and which cut its columns; it is replicated along the others. The
/// axes of each set nest in the fixed order of `nesting`. A structural value: part of a matrix type, or known
/// only at run time (dynamic_layout).
///
/// `layout{axis::row, axis::col}` on a 3 x 2 x 1 mesh, owners as (row, col):
///
///              columns 0..3   columns 4..6
///     rows 0..2   (0,0)          (0,1)
///     rows 3..4   (1,0)          (1,1)
///     rows 5..6   (2,0)          (2,1)
struct layout {
  axis_set rows;
  axis_set cols;

  constexpr axis_set used() const { return rows | cols; }
  friend constexpr bool operator==(layout, layout) = default;
};

/// Rows cut by every axis, full width: the layout of neural-network layers.
inline constexpr layout vertex_rows{partition::every_axis, {}};
/// Fully replicated: every rank holds the whole matrix.
inline constexpr layout replicated{};
/// Template argument for a layout known only at run time, like std::dynamic_extent.
inline constexpr layout dynamic_layout{axis_set(0xffu), axis_set(0xffu)};

/// "rows cut by row+depth, columns by col".
inline std::string to_string(layout l) {
  return base::sentence_of(
      {"rows cut by ", partition::name_of(l.rows), ", columns by ", partition::name_of(l.cols)});
}

namespace partition {

/// Whether the layout is valid: no axis cuts both dimensions.
constexpr bool is_layout(layout l) { return (l.rows & l.cols).empty(); }

/// Full-width layout with rows cut by all axes that l uses; a product with a replicated weight is local in
/// it.
constexpr layout full_width(layout l) { return l == dynamic_layout ? l : layout{l.used(), {}}; }

/// Whether this is a valid layout of a sparse matrix: rows cut by row only, columns by col and depth only.
constexpr bool is_sparse_layout(layout l) {
  return (l.rows - axis::row).empty() && !l.cols.contains(axis::row);
}
/// Throws shape_error unless it is.
inline void require_sparse_layout(layout l) {
  if (!is_sparse_layout(l))
    base::throw_error<shape_error>(
        {"the row axis may partition only the rows of a sparse matrix, col and depth only its columns; the "
         "layout is ",
         l});
}

/// Whether A X can be computed without redistributing the operands: row cuts X's rows if and only if it cuts
/// A's. An axis that cuts A's columns leaves partial sums, which are reduced along it, over X's rows or (col
/// only) over X's columns.
constexpr bool multipliable(layout a, layout x) {
  return a.rows == (x.rows & axis::row) && !x.rows.contains(axis::col) && !x.cols.contains(axis::row) &&
         !x.cols.contains(axis::depth) && (!x.rows.contains(axis::depth) || a.cols.contains(axis::depth)) &&
         (!a.cols.contains(axis::col) || x.cols.contains(axis::col));
}

/// Full-width layout with the row cut of l.
constexpr layout rows_of(layout l) { return l == dynamic_layout ? l : layout{l.rows, {}}; }

/// Returns `given`. Throws shape_error if it is not a valid layout or differs from a static `of_type`.
inline layout checked_layout(layout given, layout of_type) {
  if (of_type != dynamic_layout && given != of_type)
    base::throw_error<shape_error>({"a matrix whose type has ", of_type, " cannot have ", given});
  if (!partition::is_layout(given))
    base::throw_error<shape_error>({"an axis cuts the rows of a layout or its columns, not both: ", given});
  return given;
}

}  // namespace partition

}  // namespace partita
