// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which needed rows travel with which chunk of A's rows.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2: of the rows that a chunk needs, those travel that
/// no chunk before it needed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "partita/algebra/row_exchange.hpp"
#include "partita/local/far_cut.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/memory/far_list.hpp"

namespace partita::detail {

/// With which of the chunks that need it a row travels.
enum class chunk_of_row : std::uint8_t { first, last };

/// The number of chunks of a product: as many as are asked for; if that is 0, 1 without far memory, and with
/// it so many that what the busiest rank receives for a chunk fills half of the window, but at least 2 if
/// anything travels, and at most 32. Throws error for less than 0. With far memory and 0, collective over the
/// mesh. What travels: one integer.
template <class Device>
std::size_t chunks_in_effect(const mesh<Device>& m, int asked, std::size_t received_bytes) {
  if (asked < 0) throw_error<error>({"an exchange of needed rows in ", asked, " chunks"});
  if (asked > 0) return static_cast<std::size_t>(asked);
  auto* const far = far_of(m.queue());
  if (far == nullptr) return 1;
  const std::size_t slot = std::max<std::size_t>(far->slot_bytes(), 1);
  std::vector<global_index> chunks{static_cast<global_index>((received_bytes + slot - 1) / slot)};
  m.world().all_reduce(chunks, reduction::max);
  return chunks[0] == 0 ? 1 : static_cast<std::size_t>(std::clamp<global_index>(chunks[0], 2, 32));
}

/// Chunk j of the rows of a block.
inline interval rows_of_chunk(local_index rows, std::size_t j, std::size_t chunks) {
  return base::part_of({0, rows}, static_cast<global_index>(j), static_cast<global_index>(chunks));
}
/// Calls kernel(part) for the parts of a tile that are in chunk j of its rows; of a tile without rows, in
/// chunk 0.
template <class T, class Kernel>
void for_chunk(const local::csr_slices<T>& parts, std::size_t j, std::size_t chunks, const Kernel& kernel) {
  const interval rows = rows_of_chunk(parts.shape->rows, j, chunks);
  for (const local::csr_slice<T>& part : parts) {
    const auto some = part.between(static_cast<local_index>(rows.begin), static_cast<local_index>(rows.end));
    if (some.entries.rows > 0 || (j == 0 && parts.shape->rows == 0)) kernel(some);
  }
}

/// The number of entries of each part that for_chunk visits, chunk by chunk. Synchronises with the device.
template <class T, class Device>
std::vector<std::vector<local_index>> entries_of_chunks(const device_queue<Device>& q,
                                                        const local::csr_slices<T>& parts,
                                                        std::size_t chunks) {
  std::vector<std::vector<local_index>> entries(chunks);
  const auto read = [&](const local_index* from) {
    local_index value = 0;
    copy(q, std::span<const local_index>(from, 1), std::span<local_index>(&value, 1));
    return value;
  };
  for (std::size_t j = 0; j < chunks; ++j)
    for_chunk(parts, j, chunks, [&](const local::csr_slice<T>& part) {
      const local_index* const offsets = part.entries.offsets;
      const local_index rows = part.entries.rows;
      entries[j].push_back(rows == 0 ? 0 : read(offsets + rows) - read(offsets));
    });
  return entries;
}

/// The chunk with which each needed row travels, in the order of the columns of the second tile of A, merged.
/// Reads the structure of A once.
template <class T, class Device>
std::vector<local_index> chunks_of_rows(const device_queue<Device>& q, const local::csr_tiles<T, Device>& a,
                                        std::size_t chunks, chunk_of_row which) {
  std::vector<local_index> found(static_cast<std::size_t>(a.widths[1]), -1);
  for (const local::csr_slice<T>& part : a.parts(1)) {
    local::far_list<local_index> offsets(static_cast<std::size_t>(part.entries.rows) + 1,
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
        if (chunk < 0 || which == chunk_of_row::last) chunk = static_cast<local_index>(j);
      }
    }
  }
  return found;
}

/// Which rows travel for each chunk of each group of tiles. Chunk j of group k is step k K + j of K chunks.
template <class Device>
class chunk_lists {
 public:
  struct step {
    buffer<local_index, Device> given;   ///< rows of this rank's block, for rank 0, then rank 1, ...
    buffer<local_index, Device> places;  ///< of the rows of rank 0, then rank 1, ... among all needed rows
    std::vector<global_index> asked, wanted;  ///< number of rows that each rank needs, and is needed of it
    std::vector<global_index> given_size, wanted_size;  ///< elements
  };

  /// lists[k].of_tile[r]: the rows of rank r's sub-block that this rank needs for group k; chunk_of[k][i]:
  /// the chunk of the i-th of these. `entries`: entries_of_chunks of the one group that there is, or nothing.
  /// Collective along row, on which index lists travel.
  chunk_lists(const mesh<Device>& m, const std::vector<row_group>& groups,
              const std::vector<local::needed_rows>& lists,
              const std::vector<std::vector<local_index>>& chunk_of, std::size_t chunks, local_index width,
              std::vector<std::vector<local_index>> entries)
      : chunks_(chunks),
        ranks_(static_cast<std::size_t>(m.along(axis::row).size())),
        width_(width),
        entries_(std::move(entries)) {
    for (std::size_t k = 0; k < groups.size(); ++k) add_group(m, groups[k], lists[k], chunk_of[k]);
  }

  std::size_t chunks() const { return chunks_; }
  std::size_t ranks() const { return ranks_; }
  local_index width() const { return width_; }
  std::size_t group_count() const { return steps_.size() / chunks_; }
  std::size_t size() const { return steps_.size(); }
  const step& operator[](std::size_t n) const { return steps_[n]; }

  /// for_chunk for the chunk of step n, with the numbers of entries where they are known.
  template <class T, class Kernel>
  void for_parts(const local::csr_slices<T>& remote, std::size_t n, const Kernel& kernel) const {
    std::size_t i = 0;
    for_chunk(remote, n % chunks_, chunks_, [&](local::csr_slice<T> part) {
      if (!entries_.empty()) part.entries.entries = entries_[n][i++];
      kernel(part);
    });
  }

  /// Needed rows of a group, and rows that others need of this rank for it.
  std::size_t wanted_rows(std::size_t k) const { return sum_over_chunks(k, &step::places); }
  std::size_t given_rows(std::size_t k) const { return sum_over_chunks(k, &step::given); }
  /// The largest of these over the steps (of the parity of n).
  std::size_t most(std::size_t n, buffer<local_index, Device> step::*list) const {
    std::size_t rows = 0;
    for (; n < steps_.size(); n += 2) rows = std::max(rows, (steps_[n].*list).size());
    return rows;
  }
  /// How many messages more arrive in chunks than at once, of rows, or (asked) of sums.
  global_index more_messages(std::vector<global_index> step::*counts) const {
    global_index more = 0;
    for (std::size_t k = 0; k < group_count() && width_ > 0; ++k)
      for (std::size_t r = 0; r < ranks_; ++r) {
        global_index messages = 0;
        for (std::size_t j = 0; j < chunks_; ++j) messages += (steps_[k * chunks_ + j].*counts)[r] > 0;
        more += std::max<global_index>(messages - 1, 0);
      }
    return more;
  }

 private:
  std::size_t sum_over_chunks(std::size_t k, buffer<local_index, Device> step::*list) const {
    std::size_t rows = 0;
    for (std::size_t j = 0; j < chunks_; ++j) rows += (steps_[k * chunks_ + j].*list).size();
    return rows;
  }
  /// Where the lists of rank r for chunk j begin, for all r and j in this order, given their lengths.
  static std::vector<std::size_t> begins_of(const std::vector<global_index>& lengths) {
    std::vector<std::size_t> begins{0};
    for (const global_index n : lengths) begins.push_back(begins.back() + static_cast<std::size_t>(n));
    return begins;
  }
  /// The lists of all ranks for chunk j.
  buffer<local_index, Device> of_chunk(const device_queue<Device>& q, const std::vector<local_index>& all,
                                       const std::vector<std::size_t>& begins, std::size_t j) const {
    std::vector<local_index> some;
    for (std::size_t r = 0; r < ranks_; ++r)
      some.insert(some.end(), all.begin() + static_cast<std::ptrdiff_t>(begins[r * chunks_ + j]),
                  all.begin() + static_cast<std::ptrdiff_t>(begins[r * chunks_ + j + 1]));
    buffer<local_index, Device> list;
    transfer::upload(q, some, list);
    return list;
  }
  void add_group(const mesh<Device>& m, const row_group& group, const local::needed_rows& mine,
                 const std::vector<local_index>& chunk_of) {
    transfer::row_lists<> lists;
    std::vector<global_index>&wanted = lists.received, &asked = lists.sent;
    wanted.assign(ranks_ * chunks_, 0);
    const auto list_of = [&](std::size_t r, std::size_t i) {
      return r * chunks_ + static_cast<std::size_t>(chunk_of[i]);
    };
    for (std::size_t r = 0, i = 0; r < ranks_; ++r)
      for (global_index n = group.needed[r]; n > 0; --n) ++wanted[list_of(r, i++)];
    const std::vector<std::size_t> wanted_at = begins_of(wanted);
    std::vector<local_index> places(wanted_at.back()), rows(places.size());
    std::vector<std::size_t> next = wanted_at;
    for (std::size_t r = 0, i = 0; r < ranks_; ++r)
      for (const local_index needed : mine.of_tile[r]) {
        const std::size_t to = next[list_of(r, i)]++;
        places[to] = static_cast<local_index>(i++);
        rows[to] = needed;
      }
    lists.exchange(m.control(axis::row), rows, group.first_row);
    const std::vector<std::size_t> asked_at = begins_of(asked);

    for (std::size_t j = 0; j < chunks_; ++j) {
      step s;
      s.given = of_chunk(m.queue(), lists.rows, asked_at, j);
      s.places = of_chunk(m.queue(), places, wanted_at, j);
      for (std::size_t r = 0; r < ranks_; ++r) {
        s.asked.push_back(asked[r * chunks_ + j]);
        s.wanted.push_back(wanted[r * chunks_ + j]);
        s.given_size.push_back(s.asked.back() * width_);
        s.wanted_size.push_back(s.wanted.back() * width_);
      }
      steps_.push_back(std::move(s));
    }
  }

  std::size_t chunks_, ranks_;
  local_index width_;
  std::vector<std::vector<local_index>> entries_;
  std::vector<step> steps_;
};

/// The lists of a product whose remote tiles are merged in `a`. Collective along row and col.
template <class T, class Device>
chunk_lists<Device> make_chunk_lists(const mesh<Device>& m, const std::vector<row_group>& groups,
                                     const std::vector<local::needed_rows>& lists,
                                     const local::csr_tiles<T, Device>& a, std::size_t chunks,
                                     chunk_of_row which, local_index width) {
  const auto& q = m.queue();
  std::vector<local_index> mine = chunks_of_rows(q, a, chunks, which);
  if (groups.size() == 1)
    return {m, groups, lists, {std::move(mine)}, chunks, width, entries_of_chunks(q, a.parts(1), chunks)};
  std::vector<std::vector<local_index>> of_groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto needed = static_cast<std::size_t>(
        std::accumulate(groups[g].needed.begin(), groups[g].needed.end(), global_index{0}));
    of_groups.push_back(static_cast<int>(g) == m.at().col ? mine : std::vector<local_index>(needed));
    m.control(axis::col).broadcast(std::span<local_index>(of_groups.back()), static_cast<int>(g));
  }
  return {m, groups, lists, of_groups, chunks, width, {}};
}

}  // namespace partita::detail
