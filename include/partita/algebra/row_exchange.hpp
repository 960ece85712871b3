// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The exchange of rows of X along the row axis.

#include <array>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/local/kernels.hpp"
#include "partita/matrix/needed_rows.hpp"
#include "partita/transfer/row_lists.hpp"

namespace partita {

/// Whether each rank receives whole row blocks (`full`) or only the rows referenced by A's nonzero columns;
/// `automatic` minimises what the busiest rank receives.
enum class row_exchange : std::uint8_t { automatic, full, sparsity_aware };

namespace detail {

/// The row blocks of X for group k of tiles: this rank's sub-block, from which other ranks may need rows, and
/// the rows per rank of the row axis.
struct row_group {
  local_index first_row = 0;         ///< of this rank's sub-block, within its block of X
  std::vector<global_index> rows;    ///< of each rank's sub-block, along the row axis
  std::vector<global_index> needed;  ///< of those, how many this rank receives from each; none from itself
};

/// Sub-blocks are broadcast stage by stage, double-buffered: one is in flight while the other multiplies.
template <class T, class Device>
class whole_exchange {
 public:
  whole_exchange(const mesh<Device>& m, const std::vector<row_group>& groups, local_index width)
      : row_(m.along(axis::row)), groups_(groups), width_(width) {
    global_index largest = 0;
    for (const row_group& g : groups_)
      for (global_index n : g.rows) largest = std::max(largest, n);
    for (auto& b : buffers_) b = buffer<T, Device>(m.queue(), static_cast<std::size_t>(largest * width));
  }

  /// Starts the broadcast of rank r's sub-block for group k.
  void start(std::size_t k, int r, matrix_view<const T> x) {
    const std::span<const T> mine(x.row_data(groups_[k].first_row), size(k, row_.rank()));
    requests_[stage(k, r) % 2] =
        row_.start_broadcast(mine, std::span<T>(buffers_[stage(k, r) % 2].data(), size(k, r)), r);
  }
  /// Rows of rank r's sub-block, as wide as X.
  matrix_view<const T> arrive(std::size_t k, int r) {
    requests_[stage(k, r) % 2].wait();
    return {buffers_[stage(k, r) % 2].data(),
            static_cast<local_index>(groups_[k].rows[static_cast<std::size_t>(r)]), width_, width_};
  }

 private:
  std::size_t stage(std::size_t k, int r) const {
    return k * static_cast<std::size_t>(row_.size()) + static_cast<std::size_t>(r);
  }
  std::size_t size(std::size_t k, int r) const {
    return static_cast<std::size_t>(groups_[k].rows[static_cast<std::size_t>(r)] * width_);
  }

  communicator row_;
  std::vector<row_group> groups_;
  local_index width_;
  std::array<buffer<T, Device>, 2> buffers_;
  std::array<request, 2> requests_;
};

/// The needed rows, packed, in one all-to-all per group; or, the other way, sums for the needed rows, which
/// their owners add. The index lists are exchanged once, by the constructor.
template <class T, class Device>
class needed_exchange {
 public:
  /// lists[k].of_tile[r]: the rows of rank r's sub-block that this rank needs for group k.
  needed_exchange(const mesh<Device>& m, const std::vector<row_group>& groups,
                  std::vector<local::needed_rows> lists, local_index width)
      : row_(m.along(axis::row)), queue_(m.queue()), width_(width) {
    std::size_t most_given = 0, most_taken = 0;
    for (std::size_t k = 0; k < groups.size(); ++k) {
      plans_.push_back(ask(m.control(axis::row), groups[k], lists[k]));
      most_given = std::max(most_given, plans_.back().rows.size());
      most_taken =
          std::max(most_taken, static_cast<std::size_t>(comm::offset_of(groups[k].needed, row_.size())));
    }
    for (auto& b : outgoing_) b = buffer<T, Device>(m.queue(), most_given * static_cast<std::size_t>(width));
    for (auto& b : incoming_) b = buffer<T, Device>(m.queue(), most_taken * static_cast<std::size_t>(width));
  }

  void start(std::size_t k, matrix_view<const T> x) {
    plan& p = plans_[k];
    local::pack_rows(queue_, x, std::span<const local_index>(p.rows.span()), outgoing_[k % 2].data());
    requests_[k % 2] = row_.start_all_to_all(
        std::span<const T>(outgoing_[k % 2].data(),
                           static_cast<std::size_t>(comm::offset_of(p.send, row_.size()))),
        p.send,
        std::span<T>(incoming_[k % 2].data(), static_cast<std::size_t>(comm::offset_of(p.recv, row_.size()))),
        p.recv);
  }
  /// The needed rows of all ranks for group k, in rank order.
  matrix_view<const T> arrive(std::size_t k) {
    requests_[k % 2].wait();
    const auto rows = static_cast<local_index>(comm::offset_of(plans_[k].wanted, row_.size()));
    return {incoming_[k % 2].data(), rows, width_, width_};
  }
  /// The needed rows of rank r's sub-block.
  matrix_view<const T> arrive(std::size_t k, int r) {
    requests_[k % 2].wait();
    const plan& p = plans_[k];
    const auto rows = static_cast<local_index>(p.wanted[static_cast<std::size_t>(r)]);
    return {incoming_[k % 2].data() + comm::offset_of(p.recv, r), rows, width_, width_};
  }

  /// Where this rank puts its sums for the needed rows of all ranks for group k, in rank order.
  matrix_view<T> sums(std::size_t k) {
    const auto rows = static_cast<local_index>(comm::offset_of(plans_[k].wanted, row_.size()));
    return {incoming_[k % 2].data(), rows, width_, width_};
  }
  void start_sums(std::size_t k) {
    plan& p = plans_[k];
    const auto sent = static_cast<std::size_t>(comm::offset_of(p.recv, row_.size())),
               here = static_cast<std::size_t>(comm::offset_of(p.send, row_.size()));
    requests_[k % 2] = row_.start_all_to_all(std::span<const T>(incoming_[k % 2].data(), sent), p.recv,
                                             std::span<T>(outgoing_[k % 2].data(), here), p.send);
  }
  /// Adds the sums of the other ranks to their rows of this rank's block y, in rank order.
  void add_sums(std::size_t k, matrix_view<T> y) {
    requests_[k % 2].wait();
    const plan& p = plans_[k];
    const T* from = outgoing_[k % 2].data();
    std::size_t first = 0;
    for (std::size_t r = 0; r < p.asked.size(); ++r) {
      const auto count = static_cast<std::size_t>(p.asked[r]);
      local::add_rows(queue_, from, p.rows.span().subspan(first, count), y);
      from += p.send[r];
      first += count;
    }
  }

 private:
  struct plan {
    buffer<local_index, Device> rows;  ///< rows of the local block of X to send, to rank 0, then rank 1, ...
    std::vector<global_index> asked;   ///< number of rows sent to each rank
    std::vector<global_index> wanted;  ///< number of rows received from each rank
    std::vector<global_index> send, recv;  ///< elements
  };

  plan ask(const communicator& row, const row_group& group, const local::needed_rows& mine) {
    std::vector<local_index> wanted;
    for (const auto& list : mine.of_tile) wanted.insert(wanted.end(), list.begin(), list.end());
    transfer::row_lists<> lists;
    lists.received = group.needed;
    lists.exchange(row, wanted, group.first_row);
    plan p;
    transfer::upload(queue_, lists.rows, p.rows);
    p.send = transfer::elements_of(lists.sent, width_);
    p.recv = transfer::elements_of(lists.received, width_);
    p.asked = std::move(lists.sent);
    p.wanted = group.needed;
    return p;
  }

  communicator row_;
  device_queue<Device> queue_;
  local_index width_;
  std::vector<plan> plans_;
  std::array<buffer<T, Device>, 2> outgoing_, incoming_;
  std::array<request, 2> requests_;
};

}  // namespace detail

}  // namespace partita
