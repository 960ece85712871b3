// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Shape checks shared by the kernels of all devices.

#include <algorithm>
#include <cstdint>
#include <string>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"

namespace partita::local {

/// Throws shape_error, naming the operation, both operands and their shapes, unless the shapes are equal.
inline void require_equal(const char* operation, const char* left_name, matrix_shape left,
                          const char* right_name, matrix_shape right) {
  if (left == right) return;
  base::throw_error<shape_error>(
      {operation, ": ", left_name, " is ", left, " but ", right_name, " is ", right});
}

/// Throws shape_error unless there is a start for every row.
inline void require_starts(const char* operation, std::size_t starts, matrix_shape to) {
  if (static_cast<global_index>(starts) == to.rows) return;
  base::throw_error<shape_error>({operation, ": ", starts, " starts for a matrix of ", to});
}

/// Shape of a dense or sparse view.
template <class View>
matrix_shape shape_of(const View& view) {
  return {view.rows, view.cols};
}

/// Throws shape_error unless the block `name` is (a.rows, heads).
template <class Pattern, class View>
void require_row_values(const char* operation, const Pattern& a, local_index heads, const char* name,
                        const View& of_rows) {
  require_equal(operation, name, shape_of(of_rows), "rows and heads", matrix_shape{a.rows, heads});
}

/// Throws shape_error unless source is (a.cols, heads) and target (a.rows, heads).
template <class Pattern, class View>
void require_scores(const char* operation, const Pattern& a, local_index heads, const View& source,
                    const View& target) {
  require_equal(operation, "source", shape_of(source), "columns and heads", matrix_shape{a.cols, heads});
  require_row_values(operation, a, heads, "target", target);
}

/// Throws shape_error unless a x is defined and y has its shape; `result` names a x in the message.
template <class Pattern, class X, class Y>
void require_product(const char* operation, const Pattern& a, const X& x, const Y& y, const char* result) {
  require_equal(operation, "y", shape_of(y), result, matrix_shape{a.rows, x.cols});
  require_equal(operation, "x", shape_of(x), "the x that a needs", matrix_shape{a.cols, x.cols});
}

/// m, n and k of c = op(a) op(b). Throws shape_error if the shapes do not match.
struct gemm_sizes {
  template <class A, class B, class C>
  gemm_sizes(const char* operation, bool ta, bool tb, const A& a, const B& b, const C& c)
      : m(ta ? a.cols : a.rows), n(tb ? b.rows : b.cols), k(ta ? a.rows : a.cols) {
    require_equal(operation, "c", shape_of(c), "op(a) op(b)", matrix_shape{m, n});
    require_equal(operation, "op(a)", matrix_shape{m, k}, "the op(a) that op(b) needs",
                  matrix_shape{m, tb ? b.cols : b.rows});
  }

  local_index m, n, k;
};

/// Leading dimension as a BLAS int. Throws shape_error if it does not fit in 32 bits.
template <class View>
int leading_size(const View& view) {
  return view.rows <= 1 ? std::max<int>(view.cols, 1)
                        : base::to_local(view.row_stride, "the stride of an operand of gemm");
}

/// Throws shape_error for a label that is not a valid class.
[[noreturn]] inline void throw_label(local_index row, local_index label, local_index classes) {
  base::throw_error<shape_error>(
      {"cross_entropy: row ", row, " has label ", label, " of ", classes, " columns"});
}

}  // namespace partita::local
