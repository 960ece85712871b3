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

  constexpr local_index head_of(local_index col) const { return (first_col + col) / head_width; }
  /// The first head after those that `cols` columns of the slice belong to, which begin with head_of(0).
  constexpr local_index heads_end(local_index cols) const {
    return cols == 0 ? head_of(0) : head_of(cols - 1) + 1;
  }
};

}  // namespace partita
