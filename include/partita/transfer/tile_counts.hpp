// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The sizes of sparse tiles, counted where the entries are, without distributing them.

#include <algorithm>
#include <vector>

#include "partita/matrix/sparse.hpp"
#include "partita/partition/block_finder.hpp"
#include "partita/transfer/entry_routing.hpp"

namespace partita::transfer {

/// Of the tiles of one rank.
struct tile_counts {
  std::vector<global_index> nonzeros;
  local::needed_rows needed;  ///< none of this rank's own tile
};

namespace detail {

/// Bits for the columns of A that entries have named, one set for each block of rows.
class named_columns {
 public:
  named_columns(std::size_t row_blocks, const partition::block_finder& cols) : begins_{0} {
    for (std::size_t k = 0; k < cols.count(); ++k)
      begins_.push_back(begins_.back() + words_for(cols.block(k).size()));
    words_.assign(row_blocks * begins_.back(), 0);
  }

  static std::size_t words_for(global_index columns) { return static_cast<std::size_t>((columns + 63) / 64); }
  static global_index bit(global_index column) {
    return static_cast<global_index>(std::uint64_t{1} << (column % 64));
  }
  /// Column `column` of column block k.
  void set(std::size_t row_block, std::size_t k, global_index column) {
    words_[row_block * begins_.back() + begins_[k] + static_cast<std::size_t>(column / 64)] |= bit(column);
  }
  std::span<const global_index> of_block(std::size_t row_block, std::size_t k) const {
    return std::span(words_).subspan(row_block * begins_.back() + begins_[k], begins_[k + 1] - begins_[k]);
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<global_index> words_;
};

}  // namespace detail

/// The tiles that this rank would have of A, or of A^T, in layout `l` on a mesh of this shape.
/// for_entries(visit) calls visit(row, col) for this rank's entries of A, each entry on one rank and once.
/// Holds n bits for each block of rows. Collective over `world`. What travels: an all-reduce of the number of
/// tiles, and, where the row axis cuts, for each rank's tiles except its own the bits of their columns, from
/// every rank, in slices of at most 8 MB.
template <class ForEntries>
tile_counts count_tiles(const communicator& world, mesh_shape shape, layout l, const blocking& rows,
                        const blocking& cols, side of, const ForEntries& for_entries) {
  const axis_set cut = partition::column_cut(l);
  const partition::block_finder row_block(rows, l.rows), col_block(cols, cut);
  const bool row_cut = l.rows.contains(axis::row) && shape.row > 1;
  std::vector<global_index> nonzeros(row_block.count() * col_block.count(), 0);
  detail::named_columns named(row_cut ? row_block.count() : 0, col_block);
  for_entries([&](global_index row, global_index col) {
    if (of == side::transposed) std::swap(row, col);
    const std::size_t r = row_block(row), k = col_block(col);
    ++nonzeros[r * col_block.count() + k];
    if (row_cut) named.set(r, k, col - col_block.block(k).begin);
  });
  world.all_reduce(nonzeros);

  const auto row_of = [&](coordinates at) { return row_cut ? static_cast<std::size_t>(at.row) : 0; };
  const auto column_block_of = [&](coordinates at, std::size_t t) {
    if (row_cut) at.row = static_cast<int>(t);
    return static_cast<std::size_t>(partition::rank_in_group(shape, cut, at));
  };
  const std::size_t tiles = row_cut ? static_cast<std::size_t>(shape.row) : 1;
  const coordinates here = shape.at(world.rank());
  tile_counts counts;
  for (std::size_t t = 0; t < tiles; ++t)
    counts.nonzeros.push_back(nonzeros[row_of(here) * col_block.count() + column_block_of(here, t)]);
  counts.needed.of_tile.resize(tiles);

  const auto slice = static_cast<std::size_t>(std::max(1, (1 << 20) / world.size()));
  for (std::size_t t = 0; row_cut && t < tiles; ++t) {
    std::size_t longest = 0;
    for (std::size_t k = 0; k < col_block.count(); ++k)
      longest = std::max(longest, detail::named_columns::words_for(col_block.block(k).size()));
    const auto part_for = [&](int q, std::size_t first) {
      const coordinates at = shape.at(q);
      if (row_of(at) == t) return std::span<const global_index>();
      const auto all = named.of_block(row_of(at), column_block_of(at, t));
      return all.subspan(std::min(first, all.size()),
                         std::min(slice, all.size() - std::min(first, all.size())));
    };
    for (std::size_t first = 0; first < longest; first += slice) {
      std::vector<global_index> sent, to;
      for (int q = 0; q < world.size(); ++q) {
        const auto part = part_for(q, first);
        sent.insert(sent.end(), part.begin(), part.end());
        to.push_back(static_cast<global_index>(part.size()));
      }
      const std::size_t mine = part_for(world.rank(), first).size();
      const std::vector<global_index> come = world.all_to_all(
          sent, to, std::vector(static_cast<std::size_t>(world.size()), static_cast<global_index>(mine)));
      for (std::size_t w = 0; w < mine; ++w) {
        global_index word = 0;
        for (std::size_t k = w; k < come.size(); k += mine) word |= come[k];
        for (global_index b = 0; word != 0 && b < 64; ++b)
          if ((word & detail::named_columns::bit(b)) != 0)
            counts.needed.of_tile[t].push_back(
                static_cast<local_index>(static_cast<global_index>(64 * (first + w)) + b));
      }
    }
  }
  return counts;
}

}  // namespace partita::transfer
