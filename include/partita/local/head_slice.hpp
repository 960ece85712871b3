// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Columns of several heads side by side, cut anywhere.

#include "partita/base/index.hpp"

namespace partita::local {

/// A dense block with f columns holds the global columns [first_col, first_col + f) of heads * head_width;
/// global column j belongs to head j / head_width. The block may begin and end inside a head.
struct head_slice {
  local_index heads = 1;
  local_index head_width = 1;
  local_index first_col = 0;

  /// Of a column of the block.
  constexpr local_index head_of(local_index col) const { return (first_col + col) / head_width; }
};

/// The heads of `width` columns each that some of these columns belong to.
constexpr interval heads_of(interval columns, global_index width) {
  if (columns.empty()) return {};
  return {columns.begin / width, (columns.end - 1) / width + 1};
}

}  // namespace partita::local
