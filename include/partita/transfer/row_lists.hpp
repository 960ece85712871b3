// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which rows travel between the ranks of a group: each asks the others once, and then knows what to send.

#include <numeric>
#include <span>
#include <vector>

#include "partita/comm/communicator.hpp"
#include "partita/memory/device.hpp"

namespace partita::transfer {

/// Rows that this rank receives from each rank of a group and sends to each, in rank order.
template <class Index = local_index>
struct row_lists {
  std::vector<global_index> received;  ///< how many come from each rank: those that are wanted of it
  std::vector<global_index> sent;      ///< how many go to each rank: those that it wants
  std::vector<Index> rows;             ///< which go: first to rank 0, then to rank 1, ...

  /// Asks for the rows `wanted`, received[q] of rank q. They may come in several batches: then there are so
  /// many counts of each rank in `received`, and in `sent`. `first_row` is added to what others ask for.
  /// Memory is kept. Collective over `group`. What travels: the counts, then the indices of the rows.
  void exchange(const communicator& group, std::span<const Index> wanted, Index first_row = 0) {
    const auto size = static_cast<std::size_t>(group.size());
    const std::size_t batches = received.size() / size;
    const std::vector<global_index> equal(size, static_cast<global_index>(batches));
    sent.resize(received.size());
    group.all_to_all(received, equal, sent, equal);
    rows.resize(comm::total_of(sent));
    group.all_to_all(wanted, sum_of_batches(received, batches), rows, sum_of_batches(sent, batches));
    if (first_row != 0)
      for (Index& r : rows) r += first_row;
  }

 private:
  static std::vector<global_index> sum_of_batches(const std::vector<global_index>& counts,
                                                  std::size_t batches) {
    std::vector<global_index> sums;
    for (auto count = counts.begin(); count != counts.end(); count += static_cast<std::ptrdiff_t>(batches))
      sums.push_back(std::accumulate(count, count + static_cast<std::ptrdiff_t>(batches), global_index{0}));
    return sums;
  }
};

/// The numbers of elements of so many rows of this width.
inline std::vector<global_index> elements_of(std::vector<global_index> rows, global_index width) {
  for (global_index& n : rows) n *= width;
  return rows;
}

/// What arrives when each rank sends so many rows of this width; those of rank `me` do not travel.
inline traffic received_rows(std::span<const global_index> rows, global_index width = 1, int me = -1) {
  traffic v;
  for (std::size_t q = 0; q < rows.size(); ++q)
    if (static_cast<int>(q) != me && rows[q] * width > 0) v += {rows[q] * width, 1};
  return v;
}

/// Copies a list to a buffer, which grows if it is too small.
template <class List, class T, class Device>
void upload(const device_queue<Device>& q, const List& list, buffer<T, Device>& to) {
  to.grow(q, list.size());
  copy(q, std::span<const T>(list), to.span());
}

}  // namespace partita::transfer
