// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exchange of needed rows along the row axis in chunks of A's rows, so that the rows of a chunk travel
/// while another chunk multiplies. A row travels once, whatever the number of chunks that need it.
///
/// Source: Ai et al., NeutronTP (VLDB 2025), section 4.2: of the rows that a chunk needs, those travel that
/// no chunk before it needed.

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "partita/algebra/row_exchange.hpp"
#include "partita/local/far_cut.hpp"
#include "partita/local/far_rows.hpp"
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
    local::detail::index_reader<Device> columns(q, part.entries.columns, offsets.back());
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
  /// the chunk of the i-th of these. Collective along row, on which index lists travel.
  chunk_lists(const mesh<Device>& m, const std::vector<row_group>& groups,
              const std::vector<local::needed_rows>& lists,
              const std::vector<std::vector<local_index>>& chunk_of, std::size_t chunks, local_index width)
      : chunks_(chunks), ranks_(static_cast<std::size_t>(m.along(axis::row).size())), width_(width) {
    for (std::size_t k = 0; k < groups.size(); ++k) add_group(m, groups[k], lists[k], chunk_of[k]);
  }

  std::size_t chunks() const { return chunks_; }
  std::size_t ranks() const { return ranks_; }
  local_index width() const { return width_; }
  std::size_t group_count() const { return steps_.size() / chunks_; }
  std::size_t size() const { return steps_.size(); }
  const step& operator[](std::size_t n) const { return steps_[n]; }

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
    buffer<local_index, Device> list(q, some.size());
    copy(q, std::span<const local_index>(some), list.span());
    return list;
  }
  void add_group(const mesh<Device>& m, const row_group& group, const local::needed_rows& mine,
                 const std::vector<local_index>& chunk_of) {
    const communicator& row = m.control(axis::row);
    const std::vector<global_index> all_chunks(ranks_, static_cast<global_index>(chunks_));
    std::vector<global_index> wanted(ranks_ * chunks_, 0), asked(wanted.size());
    const auto list_of = [&](std::size_t r, std::size_t i) {
      return r * chunks_ + static_cast<std::size_t>(chunk_of[i]);
    };
    for (std::size_t r = 0, i = 0; r < ranks_; ++r)
      for (global_index n = group.needed[r]; n > 0; --n) ++wanted[list_of(r, i++)];
    row.all_to_all(wanted, all_chunks, asked, all_chunks);

    const std::vector<std::size_t> wanted_at = begins_of(wanted), asked_at = begins_of(asked);
    std::vector<local_index> places(wanted_at.back()), rows(places.size()), given(asked_at.back());
    std::vector<std::size_t> next = wanted_at;
    for (std::size_t r = 0, i = 0; r < ranks_; ++r)
      for (const local_index needed : mine.of_tile[r]) {
        const std::size_t to = next[list_of(r, i)]++;
        places[to] = static_cast<local_index>(i++);
        rows[to] = needed;
      }
    std::vector<global_index> asked_of_ranks;
    for (std::size_t r = 0; r < ranks_; ++r)
      asked_of_ranks.push_back(
          static_cast<global_index>(asked_at[(r + 1) * chunks_] - asked_at[r * chunks_]));
    row.all_to_all(rows, group.needed, given, asked_of_ranks);
    for (local_index& r : given) r += group.first_row;

    for (std::size_t j = 0; j < chunks_; ++j) {
      step s{
          of_chunk(m.queue(), given, asked_at, j), of_chunk(m.queue(), places, wanted_at, j), {}, {}, {}, {}};
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
  std::vector<step> steps_;
};

/// The lists of a product whose remote tiles are merged in `a`. Collective along row and col.
template <class T, class Device>
chunk_lists<Device> make_chunk_lists(const mesh<Device>& m, const std::vector<row_group>& groups,
                                     const std::vector<local::needed_rows>& lists,
                                     const local::csr_tiles<T, Device>& a, std::size_t chunks,
                                     chunk_of_row which, local_index width) {
  std::vector<std::vector<local_index>> of_groups{chunks_of_rows(m.queue(), a, chunks, which)};
  if (groups.size() > 1) {
    const std::vector<local_index> mine = std::exchange(of_groups, {}).front();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto needed = static_cast<std::size_t>(
          std::accumulate(groups[g].needed.begin(), groups[g].needed.end(), global_index{0}));
      of_groups.push_back(static_cast<int>(g) == m.at().col ? mine : std::vector<local_index>(needed));
      m.control(axis::col).broadcast(std::span<local_index>(of_groups.back()), static_cast<int>(g));
    }
  }
  return {m, groups, lists, of_groups, chunks, width};
}

/// Needed rows of X, which arrive chunk by chunk in a table of all of them: where needed_exchange has them.
template <class T, class Device>
class chunked_rows {
 public:
  using lists = chunk_lists<Device>;

  chunked_rows(const mesh<Device>& m, lists steps)
      : row_(m.along(axis::row)), queue_(m.queue()), steps_(std::move(steps)) {
    std::size_t most = 0;
    for (std::size_t k = 0; k < steps_.group_count(); ++k) most = std::max(most, steps_.wanted_rows(k));
    const auto width = static_cast<std::size_t>(steps_.width());
    table_ = buffer<T, Device>(queue_, most * width);
    for (std::size_t n = 0; n < 2; ++n) {
      outgoing_[n] = buffer<T, Device>(queue_, steps_.most(n, &lists::step::given) * width);
      incoming_[n] = buffer<T, Device>(queue_, steps_.most(n, &lists::step::places) * width);
    }
  }

  const lists& steps() const { return steps_; }
  /// Sends the rows of x that travel in step n. Step n - 2 has arrived.
  void start(std::size_t n, matrix_view<const T> x) {
    const auto& s = steps_[n];
    const auto width = static_cast<std::size_t>(steps_.width());
    local::pack_rows(queue_, x, s.given.span(), outgoing_[n % 2].data());
    requests_[n % 2] = row_.start_all_to_all(
        std::as_const(outgoing_[n % 2]).span().first(s.given.size() * width), s.given_size,
        incoming_[n % 2].span().first(s.places.size() * width), s.wanted_size);
  }
  /// The needed rows of all ranks for the group of step n, in rank order; of them, those of the steps up to n
  /// are there.
  matrix_view<const T> arrive(std::size_t n) {
    requests_[n % 2].wait();
    const auto rows = static_cast<local_index>(steps_.wanted_rows(n / steps_.chunks()));
    const matrix_view<T> table{table_.data(), rows, steps_.width(), steps_.width()};
    local::unpack_rows(queue_, incoming_[n % 2].data(), steps_[n].places.span(), table);
    return table;
  }

 private:
  communicator row_;
  device_queue<Device> queue_;
  lists steps_;
  buffer<T, Device> table_;
  std::array<buffer<T, Device>, 2> outgoing_, incoming_;
  std::array<request, 2> requests_;
};

/// The other way: sums for the needed rows, which travel when the last chunk has added to them and which
/// their owners add when all have arrived, in the order of the ranks.
template <class T, class Device>
class chunked_sums {
 public:
  using lists = chunk_lists<Device>;

  chunked_sums(const mesh<Device>& m, lists steps)
      : row_(m.along(axis::row)), queue_(m.queue()), steps_(std::move(steps)) {
    std::size_t most_wanted = 0, most_given = 0;
    for (std::size_t k = 0; k < steps_.group_count(); ++k) {
      most_wanted = std::max(most_wanted, steps_.wanted_rows(k));
      most_given = std::max(most_given, steps_.given_rows(k));
    }
    const auto width = static_cast<std::size_t>(steps_.width());
    table_ = buffer<T, Device>(queue_, most_wanted * width);
    arrived_ = buffer<T, Device>(queue_, most_given * width);
    for (std::size_t n = 0; n < 2; ++n)
      outgoing_[n] = buffer<T, Device>(queue_, steps_.most(n, &lists::step::places) * width);
  }

  const lists& steps() const { return steps_; }
  /// Where this rank puts its sums for the needed rows of all ranks for group k, in rank order.
  matrix_view<T> sums(std::size_t k) {
    return {table_.data(), static_cast<local_index>(steps_.wanted_rows(k)), steps_.width(), steps_.width()};
  }
  /// Sends the sums that are complete after step n.
  void start(std::size_t n) {
    const auto& s = steps_[n];
    const auto width = static_cast<std::size_t>(steps_.width());
    requests_[n % 2].wait();
    local::pack_rows(queue_, matrix_view<const T>(sums(n / steps_.chunks())), s.places.span(),
                     outgoing_[n % 2].data());
    requests_[n % 2] = row_.start_all_to_all(
        std::as_const(outgoing_[n % 2]).span().first(s.places.size() * width), s.wanted_size,
        arrived_.span().subspan(arrived_before(n) * width, s.given.size() * width), s.given_size);
  }
  /// Adds the sums of the other ranks for group k to their rows of this rank's block y, in rank order.
  void add(std::size_t k, matrix_view<T> y) {
    for (request& r : requests_) r.wait();
    const std::size_t chunks = steps_.chunks();
    for (std::size_t r = 0; r < steps_.ranks(); ++r)
      for (std::size_t n = k * chunks; n < (k + 1) * chunks; ++n) {
        const auto& s = steps_[n];
        const auto before = static_cast<std::size_t>(comm::offset_of(s.asked, static_cast<int>(r))),
                   count = static_cast<std::size_t>(s.asked[r]);
        const std::size_t from = (arrived_before(n) + before) * static_cast<std::size_t>(steps_.width());
        if (count > 0)
          local::add_rows(queue_, std::as_const(arrived_).data() + from,
                          s.given.span().subspan(before, count), y);
      }
  }

 private:
  /// The rows that have arrived for the group of step n in the steps before.
  std::size_t arrived_before(std::size_t n) const {
    std::size_t rows = 0;
    for (std::size_t i = n / steps_.chunks() * steps_.chunks(); i < n; ++i) rows += steps_[i].given.size();
    return rows;
  }

  communicator row_;
  device_queue<Device> queue_;
  lists steps_;
  buffer<T, Device> table_, arrived_;
  std::array<buffer<T, Device>, 2> outgoing_;
  std::array<request, 2> requests_;
};

}  // namespace partita::detail
