// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Column-wise access to a CSR pattern.

#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::local {

/// The transpose of a (rows, cols) CSR pattern, with a map to the original entries: the t-th entry in column
/// order is in row entry_rows[t] and is entry entry_numbers[t] of the pattern. Entries of one column keep
/// their order. Created by inverse_of(q, pattern); must be rebuilt if the pattern changes.
template <class Device>
struct csr_inverse {
  local_index rows = 0;
  local_index cols = 0;
  buffer<local_index, Device> offsets;        ///< (cols + 1): column c is [offsets[c], offsets[c + 1])
  buffer<local_index, Device> entry_rows;     ///< (nonzeros)
  buffer<local_index, Device> entry_numbers;  ///< (nonzeros)

  /// The transposed pattern as a CSR view without values.
  template <class T>
  csr_view<T> transposed() const {
    return {
        cols, rows, offsets.data(), entry_rows.data(), nullptr, static_cast<local_index>(entry_rows.size())};
  }
};

}  // namespace partita::local
