// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Column slices of multi-head blocks.

#include <cstdint>

#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::local {

/// A dense block of f columns holds the global columns [first_col, first_col + f) of heads * head_width;
/// global column j belongs to head j / head_width. The slice may begin and end inside a head.
struct head_slice {
  local_index heads = 1;
  local_index head_width = 1;
  local_index first_col = 0;

  /// Head of a local column.
  constexpr local_index head_of(local_index col) const { return (first_col + col) / head_width; }
};

/// Sums over the entries of each row that an attention keeps for its gradients, with w its coefficients after
/// dropout, alpha before it, and leaky' the slope at their scores.
template <class T>
struct attention_sums {
  matrix_view<T> y;      ///< sum of w x, as the product (rows x f, possibly padded)
  matrix_view<T> bent;   ///< sum of w leaky' x (likewise)
  matrix_view<T> terms;  ///< sum of alpha leaky' (rows x heads)
};

/// The heads, of `width` columns each, that the given columns overlap.
constexpr interval heads_of(interval columns, global_index width) {
  if (columns.empty()) return {};
  return {columns.begin / width, (columns.end - 1) / width + 1};
}

/// Throws shape_error unless the slice is within the columns of its heads.
inline void require_heads(const char* operation, const head_slice& s, local_index cols) {
  const bool fit = s.heads >= 0 && s.head_width >= 0 && s.first_col >= 0 &&
                   std::int64_t{s.first_col} + cols <= std::int64_t{s.heads} * s.head_width;
  if (fit) return;
  base::throw_error<shape_error>({operation, ": columns [", s.first_col, ", ",
                                  std::int64_t{s.first_col} + cols, ") are not among ", s.heads, " heads of ",
                                  s.head_width});
}

/// Throws shape_error unless x (a.cols, f) and y (a.rows, f) match the pattern and their columns match the
/// slice.
template <class Pattern>
void require_edges(const char* operation, const Pattern& a, const head_slice& s, matrix_shape x,
                   matrix_shape y) {
  require_equal(operation, "x", x, "the x that the pattern needs", matrix_shape{a.cols, y.cols});
  require_equal(operation, "y", y, "the y that the pattern needs", matrix_shape{a.rows, x.cols});
  require_heads(operation, s, static_cast<local_index>(x.cols));
}

}  // namespace partita::local
