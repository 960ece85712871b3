// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sends the entries of a sparse matrix to the ranks that hold them, in slices of bounded size.

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "partita/local/parallel.hpp"
#include "partita/matrix/sparse.hpp"
#include "partita/memory/large_list.hpp"
#include "partita/partition/block_finder.hpp"
#include "partita/transfer/entry_checks.hpp"

namespace partita::transfer {

/// Whether entries describe A (`straight`) or A^T, with rows and columns swapped (`transposed`).
enum class side : std::uint8_t { straight, transposed };

/// How a rank sends and keeps entries.
struct routing_options {
  int threads = 1;
  bool sorted = false;  ///< by place and value, so that their order depends on the entries alone
  global_index slice = global_index{1} << 19;  ///< entries that a rank sends at a time: 6 MB of floats
  comm::progress observe = {};  ///< told after each slice how many of this rank's entries have been sent
  local::list_allocator<std::byte> memory = {};  ///< of the lists of entries that have arrived
};

namespace detail {

/// Which tiles hold an entry, and where in them it is. Tiles are numbered over all ranks: rank q has the
/// tiles q * tiles() + t.
class entry_holders {
 public:
  entry_holders(mesh_shape shape, layout l, const blocking& rows, const blocking& cols)
      : rows_(rows, l.rows), cols_(cols, partition::column_cut(l)) {
    partition::require_sparse(shape, l, rows, cols);
    const bool row_cut = l.rows.contains(axis::row);
    const axis_set copies = partition::every_axis - l.used();
    tiles_ = row_cut ? static_cast<std::size_t>(shape.row) : 1;
    copies_ = static_cast<std::size_t>(shape.size(copies));
    for (std::size_t r = 0; r < rows_.count(); ++r)
      base::to_local(rows_.block(r).size(), "the number of rows of a sparse block");
    for (std::size_t k = 0; k < cols_.count(); ++k)
      base::to_local(cols_.block(k).size(), "the number of columns of a sparse tile");
    for (std::size_t r = 0; r < rows_.count(); ++r)
      for (std::size_t k = 0; k < cols_.count(); ++k) {
        coordinates at = partition::group_member(shape, partition::column_cut(l), {}, static_cast<int>(k));
        const std::size_t tile = row_cut ? static_cast<std::size_t>(at.row) : 0;
        at.row = row_cut ? static_cast<int>(r) : 0;
        for (int c = 0; c < shape.size(copies); ++c)
          holders_.push_back(
              static_cast<std::size_t>(shape.rank(partition::group_member(shape, copies, at, c))) * tiles_ +
              tile);
      }
  }

  /// Of one rank.
  std::size_t tiles() const { return tiles_; }

  /// visit(tile, place) for every tile that holds the entry; see local::packed_place.
  template <class Visit>
  void for_tiles(global_index row, global_index col, const Visit& visit) const {
    const std::size_t r = rows_(row), k = cols_(col);
    const global_index place = local::packed_place(row - rows_.block(r).begin, col - cols_.block(k).begin);
    const std::size_t* const first = &holders_[(r * cols_.count() + k) * copies_];
    for (const std::size_t* tile = first; tile != first + copies_; ++tile) visit(*tile, place);
  }

 private:
  partition::block_finder rows_, cols_;
  std::size_t tiles_ = 1, copies_ = 1;
  std::vector<std::size_t> holders_;  ///< copies_ tiles for each pair of blocks
};

/// The entries of this rank, sent slice by slice.
template <class T, class Entries>
class entry_routing {
 public:
  entry_routing(const communicator& world, const entry_holders& holders, const Entries& entries, side of,
                const routing_options& options)
      : world_(world),
        holders_(holders),
        of_(of),
        threads_(options.threads),
        ones_(has_ones(entries)),
        arrived_(holders.tiles(), options.memory) {
    const auto count = static_cast<global_index>(std::distance(std::begin(entries), std::end(entries)));
    global_index slices[] = {(count + options.slice - 1) / options.slice};
    world.all_reduce(slices, reduction::max);
    auto next = std::begin(entries);
    for (global_index s = 0; s < slices[0]; ++s) {
      const global_index sent = std::min(count, s * options.slice);
      next = send_slice(next, std::min(count - sent, options.slice));
      transfer::forget(entries);
      if (options.observe) options.observe(std::min(count, sent + options.slice), count);
    }
  }

  /// Whether all values are 1.
  bool ones() const { return ones_; }
  local::arrived_entries<T> take() { return std::move(arrived_); }

 private:
  static bool has_ones(const Entries& entries) {
    if constexpr (requires { entries.has_ones(); })
      return entries.has_ones();
    else
      return false;
  }

  template <class Iterator>
  Iterator send_slice(Iterator first, global_index count) {
    const auto all_tiles = static_cast<std::size_t>(world_.size()) * holders_.tiles();
    const std::vector<Iterator> begins = cuts(first, count, threads_);
    std::vector<std::vector<std::size_t>> next(static_cast<std::size_t>(threads_));  // per thread and tile
    const auto for_part = [&](int part, const auto& visit) {
      const auto p = static_cast<std::size_t>(part);
      for (Iterator e = begins[p]; e != begins[p + 1]; ++e) {
        const triplet<T> entry = *e;
        const bool swap = of_ == side::transposed;
        holders_.for_tiles(swap ? entry.col : entry.row, swap ? entry.row : entry.col,
                           [&](std::size_t tile, global_index place) { visit(next[p][tile], place, entry); });
      }
    };
    local::run_parts(threads_, [&](int part) {
      next[static_cast<std::size_t>(part)].assign(all_tiles, 0);
      for_part(part, [](std::size_t& count_of, global_index, const triplet<T>&) { ++count_of; });
    });
    std::vector<global_index> to_tiles(all_tiles, 0);
    std::size_t position = 0;
    for (std::size_t tile = 0; tile < all_tiles; ++tile)
      for (auto& of_thread : next) {
        const std::size_t here = std::exchange(of_thread[tile], position);
        position += here;
        to_tiles[tile] += static_cast<global_index>(here);
      }
    places_.resize(position);
    if (!ones_) values_.resize(position);
    local::run_parts(threads_, [&](int part) {
      for_part(part, [&](std::size_t& at, global_index place, const triplet<T>& entry) {
        places_[at] = place;
        if (!ones_) values_[at] = entry.value;
        ++at;
      });
    });
    exchange(to_tiles);
    return begins.back();
  }

  void exchange(const std::vector<global_index>& to_tiles) {
    const std::vector<global_index> from_ranks = world_.all_to_all(to_tiles);
    const auto per_rank = [&](const std::vector<global_index>& of_tiles) {
      std::vector<global_index> counts;
      for (auto tile = of_tiles.begin(); tile != of_tiles.end();
           tile += static_cast<std::ptrdiff_t>(holders_.tiles()))
        counts.push_back(
            std::accumulate(tile, tile + static_cast<std::ptrdiff_t>(holders_.tiles()), global_index{0}));
      return counts;
    };
    const std::vector<global_index> send = per_rank(to_tiles), recv = per_rank(from_ranks);
    const auto count = static_cast<std::size_t>(std::accumulate(recv.begin(), recv.end(), global_index{0}));
    const auto receive = [&](std::span<global_index> places, std::span<T> values) {
      world_.all_to_all(places_, send, places, recv);
      if (!ones_) world_.all_to_all(values_, send, values, recv);
    };
    if (holders_.tiles() == 1) {
      const auto to = arrived_.add(0, count, !ones_);
      return receive(to.places, to.values);
    }
    come_places_.resize(count);
    if (!ones_) come_values_.resize(count);
    receive(come_places_, come_values_);
    for (std::size_t t = 0; t < holders_.tiles(); ++t) keep(t, from_ranks);
  }

  /// What has come for tile t, from all ranks in their order.
  void keep(std::size_t t, const std::vector<global_index>& from_ranks) {
    global_index count = 0;
    for (std::size_t k = t; k < from_ranks.size(); k += holders_.tiles()) count += from_ranks[k];
    const auto kept = arrived_.add(t, static_cast<std::size_t>(count), !ones_);
    std::ptrdiff_t from = 0, to = 0;
    for (std::size_t k = 0; k < from_ranks.size(); ++k) {
      const auto here = static_cast<std::ptrdiff_t>(from_ranks[k]);
      if (k % holders_.tiles() == t) {
        std::copy_n(come_places_.begin() + from, here, kept.places.begin() + to);
        if (!ones_) std::copy_n(come_values_.begin() + from, here, kept.values.begin() + to);
        to += here;
      }
      from += here;
    }
  }

  const communicator& world_;
  const entry_holders& holders_;
  side of_;
  int threads_;
  bool ones_;
  local::arrived_entries<T> arrived_;
  local::large_list<global_index> places_, come_places_;  ///< of a slice
  local::large_list<T> values_, come_values_;
};

}  // namespace detail

/// The threads with which a rank works on host memory.
template <class Device>
int host_threads(const device_queue<Device>& q) {
  if constexpr (requires { q.threads(); })
    return q.threads();
  else
    return 1;
}

/// The most bytes that lists have for one entry of a tile until its block has it, where entries are spread
/// evenly. Values of 1 are not listed.
template <class T>
constexpr std::size_t list_bytes(bool with_values) {
  return sizeof(global_index) + (with_values ? sizeof(T) : 0);
}

/// This rank's entries of A, or of A^T, in layout `l` on a mesh of this shape, from the entries of all ranks:
/// any forward range of triplets inside the matrix. Collective over `world`. What travels: the number of
/// slices; for each slice of a rank's entries, the number of entries for each tile, and each
/// entry, as one index and its value, to all ranks that hold it. A range whose has_ones() is true, on every
/// rank, has only values of 1, which do not travel.
template <class T, class Entries>
local::arrived_entries<T> send_to_holders(const communicator& world, mesh_shape shape, layout l,
                                          const blocking& rows, const blocking& cols, const Entries& entries,
                                          side of, const routing_options& options = {}) {
  const detail::entry_holders holders(shape, l, rows, cols);
  detail::entry_routing<T, Entries> routing(world, holders, entries, of, options);
  local::arrived_entries<T> arrived = routing.take();
  if (options.sorted && !routing.ones()) arrived.sort();
  return arrived;
}
/// As above, sorted on a reproducible mesh; the ledger's observer is told.
template <class T, class Device, class Entries>
local::arrived_entries<T> send_to_holders(const mesh<Device>& m, layout l, const blocking& rows,
                                          const blocking& cols, const Entries& entries, side of) {
  return send_to_holders<T>(m.world(), m.shape(), l, rows, cols, entries, of,
                            {.threads = host_threads(m.queue()),
                             .sorted = m.reproducible(),
                             .observe = m.ledger().observer(),
                             .memory = local::list_memory(m.queue())});
}

}  // namespace partita::transfer
