// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The sizes of sparse tiles, counted where the entries are, without distributing them.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "partita/local/parallel.hpp"
#include "partita/matrix/sparse.hpp"
#include "partita/partition/block_finder.hpp"
#include "partita/transfer/scaled_pattern.hpp"

namespace partita::transfer {

/// Of the tiles of one rank.
struct tile_counts {
  std::vector<global_index> nonzeros;
  local::needed_rows needed;  ///< none of this rank's own tile
};

namespace detail {

/// Sets of columns, a bit for each.
class column_sets {
 public:
  column_sets(std::size_t sets, global_index columns)
      : words_of_set_(static_cast<std::size_t>(columns / 64 + 2)), words_(sets * words_of_set_, 0) {}

  /// By several threads at once.
  void insert(std::size_t set, global_index column) {
    const std::uint64_t bit = std::uint64_t{1} << (column % 64);
    const std::atomic_ref word(words_[set * words_of_set_ + static_cast<std::size_t>(column / 64)]);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
  }
  /// Which of the 64 columns from `first` on are in one of the sets [begin, end).
  std::uint64_t in_any(std::size_t begin, std::size_t end, global_index first) const {
    std::uint64_t found = 0;
    const auto shift = static_cast<unsigned>(first % 64);
    for (std::size_t set = begin; set < end; ++set) {
      const std::uint64_t* const word = &words_[set * words_of_set_ + static_cast<std::size_t>(first / 64)];
      found |= shift == 0 ? word[0] : word[0] >> shift | word[1] << (64 - shift);
    }
    return found;
  }

 private:
  std::size_t words_of_set_;
  std::vector<std::uint64_t> words_;
};

}  // namespace detail

/// The entries of a square matrix, or of its transpose, counted between cuts of its rows and columns, and the
/// columns that they name in the rows between two cuts: the tiles of every layout whose blocks begin and end
/// at cuts, from one pass over the entries. Holds n bits for each range of rows.
class entry_counts {
 public:
  /// `cuts`: ascending, from 0 to n. for_entries(part, visit), from each of `threads` threads, calls
  /// visit(row, col) for this rank's entries in that part, each entry on one rank and once. Collective over
  /// `world`. What travels: an all-reduce of one element for each pair of ranges.
  template <class ForEntries>
  entry_counts(const communicator& world, std::vector<global_index> cuts, int threads,
               const ForEntries& for_entries)
      : world_(world),
        cuts_(std::move(cuts)),
        named_(ranges(), cuts_.back()),
        nonzeros_(ranges() * ranges()) {
    std::vector<global_index> sizes(cuts_.size());
    std::adjacent_difference(cuts_.begin(), cuts_.end(), sizes.begin());
    sizes.erase(sizes.begin());
    const mesh_shape line{static_cast<int>(ranges()), 1, 1};
    const partition::block_finder range_of(blocking::given(std::move(sizes), line, nesting::rows), axis::row);
    std::vector<std::vector<global_index>> of_threads(static_cast<std::size_t>(threads));
    local::run_parts(threads, [&](int part) {
      std::vector<global_index> nonzeros(nonzeros_.size(), 0);
      for_entries(part, [&, all = ranges()](global_index row, global_index col) {
        const std::size_t rows = range_of(row);
        ++nonzeros[rows * all + range_of(col)];
        named_.insert(rows, col);
      });
      of_threads[static_cast<std::size_t>(part)] = std::move(nonzeros);
    });
    for (const std::vector<global_index>& of_thread : of_threads)
      std::transform(nonzeros_.begin(), nonzeros_.end(), of_thread.begin(), nonzeros_.begin(), std::plus());
    world_.all_reduce(nonzeros_);
  }

  /// Whether all finest blocks begin and end at cuts.
  bool has_cuts_of(const blocking& b) const {
    const std::vector<global_index> own = cuts_of(b);
    return std::ranges::includes(cuts_, own);
  }
  /// The ends of finest blocks, ascending, from 0 to n.
  static std::vector<global_index> cuts_of(const blocking& b) {
    std::vector<global_index> cuts{0};
    for (std::size_t k = 0; k < static_cast<std::size_t>(b.shape().size()); ++k)
      if (const global_index end = b.block(partition::every_axis, k).end; end != cuts.back())
        cuts.push_back(end);
    return cuts;
  }

  /// The tiles that this rank would have in layout `l` on a mesh of this shape. Collective over the
  /// communicator. What travels: where the row axis cuts, for each rank's tiles except its own the bits of
  /// their columns, from every rank, in slices of at most 8 MB.
  tile_counts tiles(mesh_shape shape, layout l, const blocking& blocks) const {
    const coordinates here = shape.at(world_.rank());
    const std::vector<interval> columns = partition::tile_columns(l, blocks, here);
    tile_counts counts;
    for (const interval c : columns) counts.nonzeros.push_back(entries_in(blocks.block(l.rows, here), c));
    counts.needed.of_tile.resize(columns.size());
    for (std::size_t t = 0; columns.size() > 1 && t < columns.size(); ++t)
      counts.needed.of_tile[t] = needed_columns(shape, l, blocks, t);
    return counts;
  }

 private:
  std::size_t ranges() const { return cuts_.size() - 1; }
  /// The ranges between the cuts at the ends of an interval.
  std::pair<std::size_t, std::size_t> ranges_of(interval i) const {
    const auto at = [&](global_index cut) {
      return static_cast<std::size_t>(std::ranges::lower_bound(cuts_, cut) - cuts_.begin());
    };
    return {at(i.begin), at(i.end)};
  }
  global_index entries_in(interval rows, interval cols) const {
    const auto [row, rows_end] = ranges_of(rows);
    const auto [col, cols_end] = ranges_of(cols);
    global_index sum = 0;
    for (std::size_t r = row; r < rows_end; ++r)
      for (std::size_t c = col; c < cols_end; ++c) sum += nonzeros_[r * ranges() + c];
    return sum;
  }

  /// Columns of tile t of this rank that are not empty, relative to the tile; none of its own tile.
  std::vector<local_index> needed_columns(mesh_shape shape, layout l, const blocking& blocks,
                                          std::size_t t) const {
    const auto slice = global_index{64} * std::max(1, (1 << 20) / world_.size());
    const auto columns_of = [&](coordinates at) {
      return static_cast<std::size_t>(at.row) == t ? interval{} : partition::tile_columns(l, blocks, at, t);
    };
    const interval mine = columns_of(shape.at(world_.rank()));
    global_index widest = 0;
    for (int q = 0; q < world_.size(); ++q) widest = std::max(widest, columns_of(shape.at(q)).size());
    std::vector<local_index> needed;
    for (global_index first = 0; first < widest; first += slice) {
      const auto words_in = [&](interval columns) {
        return std::max(global_index{0}, (std::min(columns.size() - first, slice) + 63) / 64);
      };
      std::vector<global_index> sent, to;
      for (int q = 0; q < world_.size(); ++q) {
        const interval columns = columns_of(shape.at(q));
        const auto [row, rows_end] = ranges_of(blocks.block(l.rows, shape.at(q)));
        to.push_back(words_in(columns));
        for (global_index w = 0; w < to.back(); ++w)
          sent.push_back(
              static_cast<global_index>(named_.in_any(row, rows_end, columns.begin + first + 64 * w)));
      }
      const global_index words = words_in(mine);
      const std::vector<global_index> come =
          world_.all_to_all(sent, to, std::vector(static_cast<std::size_t>(world_.size()), words));
      for (global_index w = 0; w < words; ++w) {
        std::uint64_t named = 0;
        for (auto k = w; k < std::ssize(come); k += words)
          named |= static_cast<std::uint64_t>(come[static_cast<std::size_t>(k)]);
        for (global_index c = first + 64 * w; named != 0 && c < mine.size(); named >>= 1, ++c)
          if ((named & 1) != 0) needed.push_back(static_cast<local_index>(c));
      }
    }
    return needed;
  }

  communicator world_;
  std::vector<global_index> cuts_;
  detail::column_sets named_;
  std::vector<global_index> nonzeros_;
};

/// What the values of counted entries are: all `ones`, on this rank, or such with a factor for each row or
/// column or both.
struct counted_values {
  bool ones = false, row_factors = false, column_factors = false;
};

/// This rank's tiles as distribute makes them, in a layout that cuts rows and columns at these blocks,
/// without entries; null when some rank's tiles would have more entries than mesh::tile_entries(). Collective
/// over the mesh. What travels: an all-reduce of one element, and see takes_factors.
template <class T, class Device>
std::shared_ptr<local::csr_tiles<T, Device>> counted_tiles(const mesh<Device>& m, layout l,
                                                           const blocking& blocks, tile_counts counts,
                                                           counted_values values) {
  const global_index nonzeros =
      std::accumulate(counts.nonzeros.begin(), counts.nonzeros.end(), global_index{0});
  if (m.world().all_reduce(nonzeros, reduction::max) > static_cast<global_index>(m.tile_entries())) return {};
  local::tile_shape shape;
  shape.rows = base::to_local(blocks.block(l.rows, m.at()).size(), "the number of rows of a sparse block");
  for (const interval c : partition::tile_columns(l, blocks, m.at()))
    shape.widths.push_back(base::to_local(c.size(), "the number of columns of a sparse tile"));
  shape.nonzeros = static_cast<std::size_t>(nonzeros);
  shape.entries_of_parts.assign(counts.nonzeros.begin(), counts.nonzeros.end());
  shape.form = {true, values.row_factors, values.column_factors};
  if (!local::reads_factors(m.queue()) || !takes_factors(m, shape, values.ones)) shape.form = {};
  return std::make_shared<local::csr_tiles<T, Device>>(m.queue(), std::move(shape), std::move(counts.needed));
}

}  // namespace partita::transfer
