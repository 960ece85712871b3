// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A sparse pattern read by its columns.

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// The entries of a (rows, cols) pattern in the order of their columns, those of one column in their own: the
/// t-th lies in row entry_rows[t] and is entry entry_numbers[t], e as in the offsets of the pattern. It is
/// made once for a pattern, by inverse_of(q, pattern), and must be made again when the pattern changes.
template <class Device>
struct csr_inverse {
  local_index rows = 0;
  local_index cols = 0;
  buffer<local_index, Device> offsets;        ///< (cols + 1): column c has [offsets[c], offsets[c + 1])
  buffer<local_index, Device> entry_rows;     ///< (nonzeros)
  buffer<local_index, Device> entry_numbers;  ///< (nonzeros)

  /// The transposed pattern: its columns are rows of this one, and it has no values.
  template <class T>
  csr_view<T> transposed() const {
    return {
        cols, rows, offsets.data(), entry_rows.data(), nullptr, static_cast<local_index>(entry_rows.size())};
  }
};

}  // namespace partita::local
