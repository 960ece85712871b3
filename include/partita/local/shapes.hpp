// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The shapes of operands, checked at the door of every kernel of every device.

#include <algorithm>
#include <cstdint>
#include <string>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/local/head_slice.hpp"

namespace partita::local {

/// Throws shape_error naming the operation, the two operands and their extents, unless they agree.
inline void require_equal(const char* operation, const char* left_name, matrix_shape left,
                          const char* right_name, matrix_shape right) {
  if (left == right) return;
  throw_error<shape_error>({operation, ": ", left_name, " is ", left, " but ", right_name, " is ", right});
}

/// Rows and columns of a view, dense or sparse.
template <class View>
matrix_shape shape_of(const View& view) {
  return {view.rows, view.cols};
}

/// Throws shape_error unless the heads have the columns of the slice.
inline void require_heads(const char* operation, const head_slice& s, local_index cols) {
  const bool fit = s.heads >= 0 && s.head_width >= 0 && s.first_col >= 0 &&
                   std::int64_t{s.first_col} + cols <= std::int64_t{s.heads} * s.head_width;
  if (fit) return;
  throw_error<shape_error>({operation, ": columns [", s.first_col, ", ", std::int64_t{s.first_col} + cols,
                            ") are not among ", s.heads, " heads of ", s.head_width});
}

/// Throws shape_error unless dense blocks fit a pattern whose rows are those of y and whose columns are the
/// rows of x, and their columns the heads.
template <class Pattern>
void require_edges(const char* operation, const Pattern& a, const head_slice& s, matrix_shape x,
                   matrix_shape y) {
  require_equal(operation, "x", x, "the x that the pattern needs", matrix_shape{a.cols, y.cols});
  require_equal(operation, "y", y, "the y that the pattern needs", matrix_shape{a.rows, x.cols});
  require_heads(operation, s, static_cast<local_index>(x.cols));
}

/// Throws shape_error unless a block called `name` has an element for each row and head of the pattern.
template <class Pattern, class View>
void require_row_values(const char* operation, const Pattern& a, local_index heads, const char* name,
                        const View& of_rows) {
  require_equal(operation, name, shape_of(of_rows), "rows and heads", matrix_shape{a.rows, heads});
}

/// Throws shape_error unless scores of the pattern's entries can be made of `source` and `target`.
template <class Pattern, class View>
void require_scores(const char* operation, const Pattern& a, local_index heads, const View& source,
                    const View& target) {
  require_equal(operation, "source", shape_of(source), "columns and heads", matrix_shape{a.cols, heads});
  require_row_values(operation, a, heads, "target", target);
}

/// Throws shape_error unless y has the shape of a x, which is called `result`.
template <class Pattern, class X, class Y>
void require_product(const char* operation, const Pattern& a, const X& x, const Y& y, const char* result) {
  require_equal(operation, "y", shape_of(y), result, matrix_shape{a.rows, x.cols});
  require_equal(operation, "x", shape_of(x), "the x that a needs", matrix_shape{a.cols, x.cols});
}

/// m, n and k of c = op(a) op(b). Throws shape_error when the shapes do not fit.
struct gemm_sizes {
  template <class Operand, class Result>
  gemm_sizes(const char* operation, bool ta, bool tb, const Operand& a, const Operand& b, const Result& c)
      : m(ta ? a.cols : a.rows), n(tb ? b.rows : b.cols), k(ta ? a.rows : a.cols) {
    require_equal(operation, "c", shape_of(c), "op(a) op(b)", matrix_shape{m, n});
    require_equal(operation, "op(a)", matrix_shape{m, k}, "the op(a) that op(b) needs",
                  matrix_shape{m, tb ? b.cols : b.rows});
  }

  local_index m, n, k;
};

/// The stride of an operand as libraries of dense products take it. Throws shape_error beyond 32 bits.
template <class View>
int leading_size(const View& view) {
  return view.rows <= 1 ? std::max<int>(view.cols, 1)
                        : to_local(view.row_stride, "the stride of an operand of gemm");
}

/// Throws shape_error: the label of a row is not below the number of classes.
[[noreturn]] inline void throw_label(local_index row, local_index label, local_index classes) {
  throw_error<shape_error>({"cross_entropy: row ", row, " has label ", label, " of ", classes, " columns"});
}

}  // namespace partita::local
