// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a sampler returns: one sparse block per layer, and the vertices that they are about.

#include <cstddef>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::sampling {

/// A sampled operator in CSR: columns ascending in each row, no duplicates. Entries may have vectors of
/// `width` numbers.
template <class T>
struct block {
  local_index rows = 0, cols = 0;
  std::vector<local_index> offsets;  ///< (rows + 1)
  std::vector<local_index> columns;  ///< (nonzeros)
  std::vector<T> values;             ///< (nonzeros)
  local_index width = 0;
  std::vector<T> vectors = {};  ///< (nonzeros x width), row-major

  friend bool operator==(const block&, const block&) = default;
};

/// H_(l + 1) = blocks[l] H_l for the layers l = 0, ..., L - 1. Vertices are numbered by their places in
/// `vertices`, and every set of vertices is a prefix of it: those that H_l is about are the first
/// blocks[l].cols, so blocks[l].rows = blocks[l + 1].cols, and the roots come first, in the order given. Of a
/// graph of R relations, a block has R rows for each target, i R + r that of target i and relation r. The
/// numbers depend on what was drawn only, not on ranks or threads. Reused from call to call, it keeps its
/// memory.
template <class T>
struct sample {
  std::vector<block<T>> blocks;        ///< (L); blocks[0] is that of the first layer
  std::vector<global_index> vertices;  ///< (blocks[0].cols): the rows of X that H_0 is made of
  std::size_t sampled_edges =
      0;                        ///< entries drawn: of all blocks; a block that serves all layers counts once
  std::vector<double> weights;  ///< (roots): of the targets in the loss; empty if all are 1
  local_index relations = 1;    ///< R

  friend bool operator==(const sample&, const sample&) = default;
};

}  // namespace partita::sampling
