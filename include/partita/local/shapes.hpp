#pragma once
/// The shapes of operands, checked at the door of every kernel of every device.

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

/// Throws shape_error: the label of a row is not below the number of classes.
[[noreturn]] inline void throw_label(local_index row, local_index label, local_index classes) {
  throw_error<shape_error>({"cross_entropy: row ", row, " has label ", label, " of ", classes, " columns"});
}

}  // namespace partita::local
