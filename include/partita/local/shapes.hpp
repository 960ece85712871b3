#pragma once
/// The shapes of operands, checked at the door of every kernel of the host.

#include <string>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"

namespace partita::cpu {

/// Throws shape_error naming the operation, the two operands and their extents, unless they agree.
inline void require_equal(const char* operation, const char* left_name, extent left, const char* right_name,
                          extent right) {
  if (left == right) return;
  throw shape_error(std::string(operation) + ": " + left_name + " is " + to_string(left) + " but " +
                    right_name + " is " + to_string(right));
}

/// Rows and columns of a view, dense or sparse.
template <class View>
extent shape_of(const View& view) {
  return {view.rows, view.cols};
}

}  // namespace partita::cpu
