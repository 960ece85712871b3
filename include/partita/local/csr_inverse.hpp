// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Column-wise access to a CSR pattern.

#include <cstddef>
#include <map>
#include <memory>
#include <tuple>

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// The transpose of a (rows, cols) CSR pattern, with a map to the original entries: the t-th entry in column
/// order is in row entry_rows[t] and is entry entry_numbers[t] of the pattern. Entries of one column keep
/// their order.
struct csr_inverse_view {
  local_index rows = 0;
  local_index cols = 0;
  const local_index* offsets = nullptr;  ///< (cols + 1): column c is [offsets[c], offsets[c + 1])
  const local_index* entry_rows = nullptr;
  const local_index* entry_numbers = nullptr;
  local_index entries = 0;

  /// The transposed pattern as a CSR view without values.
  template <class T>
  csr_view<T> transposed() const {
    return {cols, rows, offsets, entry_rows, nullptr, entries};
  }
};

/// Owns what a csr_inverse_view shows. Created by inverse_of(q, pattern); must be rebuilt if the pattern
/// changes.
template <class Device>
struct csr_inverse {
  local_index rows = 0;
  local_index cols = 0;
  buffer<local_index, Device> offsets;        ///< (cols + 1)
  buffer<local_index, Device> entry_rows;     ///< (nonzeros)
  buffer<local_index, Device> entry_numbers;  ///< (nonzeros)

  operator csr_inverse_view() const {
    return {rows,
            cols,
            offsets.data(),
            entry_rows.data(),
            entry_numbers.data(),
            static_cast<local_index>(entry_rows.size())};
  }
  /// The transposed pattern as a CSR view without values.
  template <class T>
  csr_view<T> transposed() const {
    return csr_inverse_view(*this).transposed<T>();
  }
};

/// Inverses by the offsets and columns of their patterns, and by a number that tells patterns apart whose
/// arrays are received in the same memory.
template <class Device>
using csr_inverses =
    std::map<std::tuple<const local_index*, const local_index*, std::size_t>, csr_inverse<Device>>;

/// The pattern that a plan's pass goes through, for kernels that keep what they make of it with the plan: a
/// resource of queues that are not the host's.
struct running_pass {
  struct pattern {
    const local_index *offsets = nullptr, *inverse_offsets = nullptr;  ///< of its rows, and of its inverse's
    std::size_t number = 0;
    std::shared_ptr<void>* kept = nullptr;  ///< null outside of passes
  };

  template <class Device>
  explicit running_pass(const device_queue<Device>&) {}

  pattern now;
};

}  // namespace partita::local
