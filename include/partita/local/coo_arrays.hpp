// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Entries of a sparse matrix in device memory, and their places in tiles.

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// Borrowed arrays of one rank's entries on a CUDA device, in any order, with global rows and columns. `cols`
/// and `values` are as long as `rows`.
template <class T>
struct coo_arrays {
  std::span<const global_index> rows, cols;
  std::span<const T> values;

  /// The entries of the transpose.
  coo_arrays transposed() const { return {cols, rows, values}; }
};

/// How many numbers of an ascending list are at most `most`.
template <class Number>
constexpr std::int64_t count_to(const Number* list, std::int64_t size, Number most) {
  std::int64_t low = 0, high = size;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (list[middle] <= most)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/// Consecutive blocks of a dimension, by their ends.
struct block_ends {
  const global_index* ends;
  std::int64_t blocks;

  constexpr std::int64_t block_of(global_index i) const { return count_to(ends, blocks, i); }
  constexpr global_index begin(std::int64_t block) const { return block == 0 ? 0 : ends[block - 1]; }
};

/// The entries of a slice and the tiles of all ranks that hold them, see entry_holders.
struct held_entries {
  const global_index *entry_rows, *entry_cols;
  block_ends rows, cols;
  const global_index* tiles;  ///< `copies` for each pair of blocks
  std::int64_t copies;
};

/// Keys of the places in a row of tiles, ascending by tile, row and column.
struct place_keys {
  std::int64_t rows;
  int col_bits;

  constexpr std::uint64_t key(std::int64_t tile, std::int64_t row, std::uint64_t col) const {
    return static_cast<std::uint64_t>(tile * rows + row) << col_bits | col;
  }
  /// Bits of the keys in `tiles` tiles, and of the key one past the last.
  constexpr int bits(std::int64_t tiles) const {
    return col_bits + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tiles * rows)));
  }
  constexpr local_index col(std::uint64_t key) const {
    return static_cast<local_index>(key & ((std::uint64_t{1} << col_bits) - 1));
  }
};

/// The entries of a row of tiles, sorted by tile, row and column, with one entry per place.
template <class T, class Device>
struct placed_entries {
  buffer<local_index, Device> columns;
  buffer<T, Device> values;
  std::vector<global_index> begins;  ///< see count_offsets
};

}  // namespace partita::local
