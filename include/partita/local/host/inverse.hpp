// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Transpose of a sparse pattern.

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "partita/local/csr_inverse.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

/// The inverse of a's pattern, by a counting sort: two passes over the entries.
template <class T>
inline local::csr_inverse<host> inverse_of(const device_queue<host>& q, const local::csr_view<T>& a) {
  const auto cols = static_cast<std::size_t>(a.cols), entries = static_cast<std::size_t>(a.nonzeros());
  using indices = buffer<local_index, host>;
  local::csr_inverse<host> made{a.rows, a.cols, indices(q, cols + 1), indices(q, entries),
                                indices(q, entries)};
  local_index* const next = made.offsets.data();
  std::fill_n(next, cols + 1, 0);
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) ++next[a.columns[e] + 1];
  std::inclusive_scan(next, next + cols + 1, next);
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
      const local_index t = next[a.columns[e]]++;
      made.entry_rows.data()[t] = i;
      made.entry_numbers.data()[t] = e;
    }
  for (std::size_t c = cols; c > 0; --c) next[c] = next[c - 1];
  next[0] = 0;
  return made;
}

}  // namespace partita::on_host
