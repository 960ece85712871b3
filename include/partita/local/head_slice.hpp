// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Column slices of multi-head blocks.

#include "partita/base/index.hpp"

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

/// The heads, of `width` columns each, that the given columns overlap.
constexpr interval heads_of(interval columns, global_index width) {
  if (columns.empty()) return {};
  return {columns.begin / width, (columns.end - 1) / width + 1};
}

}  // namespace partita::local
