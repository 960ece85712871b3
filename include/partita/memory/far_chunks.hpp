// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Chunks between far memory and the near window of a queue.

#include <algorithm>
#include <cstddef>
#include <span>

#include "partita/base/function_reference.hpp"
#include "partita/memory/far.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita::local {

/// For k = 0, ..., chunks - 1: fetch(k) and store(k) in tasks of the channel, compute(k) between them. While
/// chunk k is computed with, chunk k - 1 is stored and chunk k + 1 fetched, in this order.
template <class Channel>
void run_chunks(Channel& c, std::size_t chunks, base::function_reference<void(std::size_t)> fetch,
                base::function_reference<void(std::size_t)> compute,
                base::function_reference<void(std::size_t)> store) {
  if (chunks == 0) return;
  c.start([&] { fetch(0); });
  c.wait();
  for (std::size_t k = 0; k < chunks; ++k) {
    c.start([&, k] {
      if (k > 0) store(k - 1);
      if (k + 1 < chunks) fetch(k + 1);
    });
    try {
      c.compute([&] { compute(k); });
    } catch (...) {
      try {
        c.wait();
      } catch (...) {  // the first failure is the one to report
      }
      throw;
    }
    c.wait();
  }
  c.start([&] { store(chunks - 1); });
  c.wait();
  c.traffic().chunks += chunks;
  ++c.traffic().operations;
}

namespace detail {

/// Whether rows of an operand are in far memory.
template <class Channel>
bool is_far(const Channel& c, const operand& x) {
  return x.row_bytes() > 0 && x.data != nullptr && c.is_far(x.data);
}

/// Moves `count` rows of an operand, from row `first` on, to or from a slot, where they lie without gaps.
template <class Channel>
void move_rows(Channel& c, const operand& x, local_index first, std::size_t count, std::byte* near,
               bool stores) {
  const std::size_t bytes = x.row_bytes();
  const auto width = static_cast<std::ptrdiff_t>(bytes);
  std::byte* const home = x.row(first);
  c.move(stores ? memory::block_copy{home, x.stride, near, width, bytes, count}
                : memory::block_copy{near, width, home, x.stride, bytes, count});
}

/// Calls kernel(first, count) for parts of an ascending list of far rows, one after the other, after rows of
/// later parts have been asked for, and lets go of what becomes resident. One part if the rows are few, or
/// far memory is always resident.
template <class Channel>
void in_resident_parts(Channel& c, std::span<const local_index> list, const operand& x,
                       base::function_reference<void(std::size_t, std::size_t)> kernel) {
  if (list.empty()) return;
  if constexpr (requires { Channel::most_resident_bytes; }) {
    if (c.is_far(x.data)) {
      const auto stride = std::max<std::size_t>(1, static_cast<std::size_t>(x.stride));
      const std::size_t most = std::max<std::size_t>(1, Channel::most_resident_bytes / stride);
      const bool parted = static_cast<std::size_t>(x.rows) > most;
      std::size_t first = 0, asked = 0;
      while (first < list.size()) {
        const local_index begin = list[first];
        const auto end = static_cast<local_index>(
            std::min(static_cast<std::size_t>(begin) + most, static_cast<std::size_t>(x.rows)));
        const auto last =
            std::lower_bound(list.begin() + static_cast<std::ptrdiff_t>(first), list.end(), end);
        const std::size_t next = static_cast<std::size_t>(last - list.begin());
        const std::size_t ask = std::min(list.size(), next + Channel::rows_asked_for);
        if (ask > asked) c.expect(x, list.subspan(asked, ask - asked));
        asked = std::max(asked, ask);
        kernel(first, next - first);
        if (parted) c.forget(x.row(begin), static_cast<std::size_t>(end - begin) * stride);
        first = next;
      }
      return;
    }
  }
  kernel(std::size_t{0}, list.size());
}

}  // namespace detail

}  // namespace partita::local
