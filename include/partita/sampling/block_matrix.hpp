// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Blocks of sampled neighbours as sparse matrices.

#include <memory>
#include <utility>
#include <vector>

#include "partita/matrix/sparse.hpp"
#include "partita/partition/policies.hpp"
#include "partita/sampling/block.hpp"

namespace partita::sampling {

namespace detail {

/// A block in the memory of a device, of which plans for edges need the structure on the host as well.
template <class T, class Device>
std::shared_ptr<local::csr_tiles<T, Device>> stored(const mesh<Device>& alone, const block<T>& b) {
  const bool elsewhere = static_cast<bool>(device_memory_of(alone.queue()));
  return std::make_shared<local::csr_tiles<T, Device>>(local::make_tile<T>(
      alone.queue(), interval{0, b.rows}, std::vector<std::size_t>(b.offsets.begin(), b.offsets.end()),
      std::span<const local_index>(b.columns), b.cols, std::span<const T>(b.values), alone.tile_entries(),
      elsewhere));
}

}  // namespace detail

/// B^T. Local; no communication.
template <class T>
block<T> transposed_block(const block<T>& b) {
  block<T> t{b.cols, b.rows, std::vector<local_index>(static_cast<std::size_t>(b.cols) + 1, 0),
             std::vector<local_index>(b.columns.size()), std::vector<T>(b.values.size())};
  for (const local_index c : b.columns) ++t.offsets[static_cast<std::size_t>(c) + 1];
  for (std::size_t c = 0; c + 1 < t.offsets.size(); ++c) t.offsets[c + 1] += t.offsets[c];
  std::vector<local_index> next(t.offsets.begin(), t.offsets.end() - 1);
  for (local_index i = 0; i < b.rows; ++i)
    for (auto e = static_cast<std::size_t>(b.offsets[static_cast<std::size_t>(i)]);
         e < static_cast<std::size_t>(b.offsets[static_cast<std::size_t>(i) + 1]); ++e) {
      const auto to = static_cast<std::size_t>(next[static_cast<std::size_t>(b.columns[e])]++);
      t.columns[to] = i;
      t.values[to] = b.values[e];
    }
  return t;
}

/// Of R relations above each other (R targets x sources), each by itself (R targets x R sources): the column
/// of source u under relation r is u R + r. Local; no communication.
template <class T>
block<T> apart(block<T> b, local_index relations) {
  b.cols =
      base::to_local(global_index{b.cols} * relations, "the columns of a block with its relations apart");
  for (local_index i = 0; i < b.rows; ++i)
    for (local_index e = b.offsets[static_cast<std::size_t>(i)];
         e < b.offsets[static_cast<std::size_t>(i) + 1]; ++e) {
      local_index& column = b.columns[static_cast<std::size_t>(e)];
      column = column * relations + i % relations;
    }
  return b;
}

/// The block (rows x cols) as a sparse matrix on a mesh of one rank, in the memory of its device. Its
/// transpose is stored only where layers work on the entries of A^T. Local; no communication.
template <class T, class Device>
sparse<T, dynamic_layout, Device> block_matrix(const mesh<Device>& alone, const block<T>& b,
                                               bool stores_transpose) {
  const auto cut = [&](local_index n) { return blocking::even(n, alone.shape(), nesting::rows); };
  return sparse<T, dynamic_layout, Device>(
      alone, row_1d.sparse, row_1d.dense, cut(b.rows), cut(b.cols), detail::stored<T>(alone, b),
      stores_transpose ? detail::stored<T>(alone, transposed_block(b)) : nullptr);
}

}  // namespace partita::sampling
