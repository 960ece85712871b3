#pragma once
/// Columns of several heads side by side, cut anywhere.

#include "partita/base/index.hpp"

namespace partita {

/// A dense block with f columns holds the global columns [first_col, first_col + f) of heads * head_width;
/// global column j belongs to head j / head_width. The block may begin and end inside a head.
struct head_slice {
  local_index heads = 1;
  local_index head_width = 1;
  local_index first_col = 0;

  /// Of a column of the block.
  constexpr local_index head_of(local_index col) const { return (first_col + col) / head_width; }
};

}  // namespace partita
