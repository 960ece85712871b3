// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which needed rows are exchanged with which chunk of A's rows, or in which slice.
///
/// Source of chunks: Ai et al., NeutronTP (VLDB 2025), section 4.2: a chunk receives only the needed rows
/// that no earlier chunk needed.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "partita/algebra/row_exchange.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/memory/index_reader.hpp"
#include "partita/memory/large_list.hpp"
#include "partita/memory/out_of_core.hpp"
#include "partita/transfer/row_lists.hpp"

namespace partita::algebra::detail {

/// The number of chunks of a product: `asked`; if that is 0, 1 without far memory, and with it enough chunks
/// that what the busiest rank receives for one fills half of the window, but at least 2 if anything is sent,
/// and at most 32. Throws error if `asked` is negative. With far memory and 0, collective over the mesh.
/// What travels: one integer.
template <class Device>
std::size_t chunks_in_effect(const mesh<Device>& m, int asked, std::size_t received_bytes) {
  if (asked < 0) base::throw_error<error>({"an exchange of needed rows in ", asked, " chunks"});
  if (asked > 0) return static_cast<std::size_t>(asked);
  const std::size_t slot = local::chunk_bytes(m.queue());
  if (slot == 0) return 1;
  std::vector<global_index> chunks{static_cast<global_index>((received_bytes + slot - 1) / slot)};
  m.world().all_reduce(chunks, reduction::max);
  return chunks[0] == 0 ? 1 : static_cast<std::size_t>(std::clamp<global_index>(chunks[0], 2, 32));
}

/// The number of slices of a product without chunks: `asked`; if that is 0, 1 with far memory, else at most
/// 8, so that on some rank each slice has at least 1024 rows and twice as many entries as A has rows there,
/// since each slice traverses Y. A rank whose own tile has half of the entries wants 1, since all the rows
/// it needs can be sent while that tile is multiplied. Throws error if `asked` is negative. With 0,
/// collective over the mesh. What travels: one integer.
template <class Device>
std::size_t slices_in_effect(const mesh<Device>& m, int asked, std::size_t needed, std::size_t own,
                             std::size_t entries, local_index rows) {
  if (asked < 0) base::throw_error<error>({"an exchange of needed rows in ", asked, " slices"});
  if (asked > 0) return static_cast<std::size_t>(asked);
  if (local::chunk_bytes(m.queue()) > 0) return 1;
  constexpr std::size_t most = 8, least_rows = 1024;
  const std::size_t traversals =
      2 * own >= entries ? 1 : entries / std::max<std::size_t>(2 * static_cast<std::size_t>(rows), 1);
  std::vector<global_index> slices{
      static_cast<global_index>(std::min({most, needed / least_rows, traversals}))};
  m.world().all_reduce(slices, reduction::max);
  return static_cast<std::size_t>(std::max<global_index>(slices[0], 1));
}

/// Chunk j of the rows of a block.
inline interval rows_of_chunk(local_index rows, std::size_t j, std::size_t chunks) {
  return base::part_of({0, rows}, static_cast<global_index>(j), static_cast<global_index>(chunks));
}
/// The parts of a tile in chunk j of its rows, as a range that is its own iterator. The parts of a tile
/// without rows are in chunk 0.
template <class T>
class chunk_slices {
 public:
  /// `entries`: the number of entries of each of these parts, if known.
  chunk_slices(local::csr_slices<T> parts, std::size_t j, std::size_t chunks,
               std::span<const local_index> entries = {})
      : parts_(parts), rows_(rows_of_chunk(parts.shape->rows, j, chunks)), first_(j == 0), entries_(entries) {
    find();
  }
  /// The parts in `rows`, an arbitrary range of rows.
  chunk_slices(local::csr_slices<T> parts, interval rows) : parts_(parts), rows_(rows), first_(false) {
    find();
  }
  const chunk_slices& begin() const { return *this; }
  std::default_sentinel_t end() const { return {}; }
  const local::csr_slice<T>& operator*() const { return part_; }
  chunk_slices& operator++() {
    ++parts_;
    find();
    return *this;
  }
  bool operator==(std::default_sentinel_t end) const { return parts_ == end; }

 private:
  void find() {
    for (; parts_ != end(); ++parts_) {
      part_ = (*parts_).between(static_cast<local_index>(rows_.begin), static_cast<local_index>(rows_.end));
      if (part_.entries.rows == 0 && !(first_ && parts_.shape->rows == 0)) continue;
      if (!entries_.empty()) part_.entries.entries = entries_.front();
      if (!entries_.empty()) entries_ = entries_.subspan(1);
      return;
    }
  }

  local::csr_slices<T> parts_;
  interval rows_;
  bool first_;
  std::span<const local_index> entries_;
  local::csr_slice<T> part_;
};

/// The number of entries of a part. Synchronises with the device.
template <class T, class Device>
local_index entries_of_part(const device_queue<Device>& q, const local::csr_slice<T>& part) {
  const auto read = [&](const local_index* from) {
    local_index value = 0;
    copy(q, std::span<const local_index>(from, 1), std::span<local_index>(&value, 1));
    return value;
  };
  const local_index rows = part.entries.rows;
  return rows == 0 ? 0 : read(part.entries.offsets + rows) - read(part.entries.offsets);
}

/// The number of entries of each of these parts, chunk by chunk. Synchronises with the device.
template <class T, class Device>
std::vector<std::vector<local_index>> entries_of_chunks(const device_queue<Device>& q,
                                                        const local::csr_slices<T>& parts,
                                                        std::size_t chunks) {
  std::vector<std::vector<local_index>> entries(chunks);
  for (std::size_t j = 0; j < chunks; ++j)
    for (const local::csr_slice<T>& part : chunk_slices<T>(parts, j, chunks))
      entries[j].push_back(entries_of_part(q, part));
  return entries;
}

/// The chunk with which each needed row is sent, in the order of the columns of A's second tile, merged: the
/// first chunk that needs the row or, if sums go, the last. Reads the structure of A once.
template <class T, class Device>
std::vector<local_index> chunks_of_rows(const device_queue<Device>& q, const local::csr_tiles<T, Device>& a,
                                        std::size_t chunks, row_flow flow) {
  std::vector<local_index> found(static_cast<std::size_t>(a.widths[1]), -1);
  for (const local::csr_slice<T>& part : a.parts(1)) {
    local::large_list<local_index> offsets(static_cast<std::size_t>(part.entries.rows) + 1,
                                           local::list_memory(q));
    copy(q, std::span<const local_index>(part.entries.offsets, offsets.size()),
         std::span<local_index>(offsets));
    local::index_reader<Device> columns(q, part.entries.columns, offsets.back());
    for (std::size_t j = 0; j < chunks; ++j) {
      const interval rows = rows_of_chunk(a.rows, j, chunks);
      const auto offset_at = [&](global_index row) {
        const auto here = std::clamp<global_index>(row - part.first_row, 0, part.entries.rows);
        return offsets[static_cast<std::size_t>(here)];
      };
      for (local_index e = offset_at(rows.begin); e < offset_at(rows.end); ++e) {
        local_index& chunk = found[static_cast<std::size_t>(columns[e])];
        if (chunk < 0 || flow == row_flow::sums_go) chunk = static_cast<local_index>(j);
      }
    }
  }
  return found;
}

/// Which needed rows are exchanged in each step. Step k J + j, of J per block, is for block k of A and chunk
/// j of A's rows, or slice j of the needed rows; with chunks, a row is sent with the first one that needs
/// it. Sums for these rows go the other way: with chunks, each with the last one that adds to it.
template <class Device>
class chunk_lists {
 public:
  struct step {
    buffer<local_index, Device> rows;          ///< of this rank's block to send: to rank 0, then 1, ...
    buffer<local_index, Device> places;        ///< of the received rows among all of the block, if placed
    std::vector<global_index> sent, received;  ///< number of rows, per rank
    std::vector<global_index> sent_size, received_size;  ///< elements
    std::size_t sent_before = 0, received_before = 0;    ///< rows, in earlier steps of the block
    std::size_t received_in_block = 0;                   ///< rows received in all of its steps
  };
  using counts = std::vector<global_index> step::*;

  /// lists[k].of_tile[r]: the rows of rank r's sub-block that this rank needs for block k. `mine`: for each
  /// needed row of this rank's own block, tile by tile, the step that sends it, of `steps`; `chunked`: steps
  /// are chunks. Collective along row and, with several steps and blocks, along col. What travels: the lists
  /// of rows, and the step of each row.
  chunk_lists(const mesh<Device>& m, const std::vector<row_group>& groups,
              const std::vector<local::needed_rows>& lists, const std::vector<local_index>& mine,
              std::size_t steps, bool chunked, local_index width)
      : chunk_lists(static_cast<std::size_t>(m.along(axis::row).size()), width, chunked, steps) {
    for (std::size_t k = 0; k < groups.size(); ++k) {
      std::vector<local_index> step_of(comm::total_of(groups[k].needed), 0);
      if (steps > 1 && (groups.size() == 1 || static_cast<int>(k) == m.at().col)) step_of = mine;
      if (steps > 1 && groups.size() > 1)
        m.control(axis::col).broadcast(std::span<local_index>(step_of), static_cast<int>(k));
      add_block(m, groups[k], lists[k], step_of);
    }
  }

  /// Lists for `ranks` ranks, to which add_block adds blocks. `placed`: whether rows are received in an
  /// order other than that of the table in which they are used.
  chunk_lists(std::size_t ranks, local_index width, bool placed, std::size_t steps = 1)
      : of_block_(steps), ranks_(ranks), width_(width), placed_(placed) {}
  /// Adds the steps of the next block. `lists` has one list for each rank and step; `places` (n): where each
  /// of the n received rows is placed.
  void add_block(const device_queue<Device>& q, const transfer::row_lists<>& lists,
                 const std::vector<local_index>& places = {}) {
    for (std::size_t j = 0, before = 0, received = 0; j < of_block_; ++j) {
      step& s = steps_.emplace_back();
      s.received_in_block = comm::total_of(lists.received);
      upload_step(q, lists.rows, lists.sent, j, s.rows);
      s.sent_before = std::exchange(before, before + s.rows.size());
      if (placed_) upload_step(q, places, lists.received, j, s.places);
      for (std::size_t r = 0; r < ranks_; ++r) {
        s.sent.push_back(lists.sent[r * of_block_ + j]);
        s.received.push_back(lists.received[r * of_block_ + j]);
      }
      s.received_before = std::exchange(received, received + comm::total_of(s.received));
      s.sent_size = transfer::elements_of(s.sent, width_);
      s.received_size = transfer::elements_of(s.received, width_);
    }
  }

  std::size_t steps_of_block() const { return of_block_; }
  /// Whether a step also uses the rows that earlier steps of its block have received.
  bool placed() const { return placed_; }
  std::size_t ranks() const { return ranks_; }
  local_index width() const { return width_; }
  std::size_t size() const { return steps_.size(); }
  const step& operator[](std::size_t n) const { return steps_[n]; }

  /// What rank `me` receives in all steps, with `words_of_row` words for each row.
  traffic received(row_flow flow, int me, global_index words_of_row) const {
    const counts of = flow == row_flow::rows_come ? &step::received : &step::sent;
    traffic v;
    for (const step& s : steps_) v += transfer::received_rows(s.*of, words_of_row, me);
    return v;
  }

 private:
  /// Where the list of rank r for step j begins, for all r and j in this order, given the lengths.
  static std::vector<std::size_t> begins_of(const std::vector<global_index>& lengths) {
    std::vector<std::size_t> begins{0};
    for (const global_index n : lengths) begins.push_back(begins.back() + static_cast<std::size_t>(n));
    return begins;
  }
  /// The lists of all ranks for step j.
  void upload_step(const device_queue<Device>& q, const std::vector<local_index>& all,
                   const std::vector<global_index>& lengths, std::size_t j,
                   buffer<local_index, Device>& to) const {
    const std::vector<std::size_t> begins = begins_of(lengths);
    std::vector<local_index> some;
    for (std::size_t r = 0; r < ranks_; ++r)
      some.insert(some.end(), all.begin() + static_cast<std::ptrdiff_t>(begins[r * of_block_ + j]),
                  all.begin() + static_cast<std::ptrdiff_t>(begins[r * of_block_ + j + 1]));
    transfer::upload(q, some, to);
  }
  void add_block(const mesh<Device>& m, const row_group& group, const local::needed_rows& mine,
                 const std::vector<local_index>& step_of) {
    const auto list_of = [&](std::size_t r, std::size_t i) {
      return r * of_block_ + static_cast<std::size_t>(step_of[i]);
    };
    transfer::row_lists<> lists;
    lists.received.assign(ranks_ * of_block_, 0);
    for (std::size_t r = 0, i = 0; r < ranks_; ++r)
      for (global_index n = group.needed[r]; n > 0; --n) ++lists.received[list_of(r, i++)];
    std::vector<std::size_t> next = begins_of(lists.received);
    std::vector<local_index> places(next.back()), wanted(next.back());
    for (std::size_t r = 0, i = 0; r < ranks_; ++r)
      for (const local_index needed : mine.of_tile[r]) {
        const std::size_t to = next[list_of(r, i)]++;
        places[to] = static_cast<local_index>(i++);
        wanted[to] = needed;
      }
    lists.exchange(m.control(axis::row), wanted, group.first_row);
    add_block(m.queue(), lists, places);
  }

  std::size_t of_block_, ranks_;
  local_index width_;
  bool placed_;
  std::vector<step> steps_;
};

}  // namespace partita::algebra::detail
