// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Values on the entries of a sparse pattern.

#include <algorithm>

#include "partita/matrix/sparse.hpp"

namespace partita {

/// Values on the entries of this rank's tiles of a pattern, one per head: for all heads, or only for those
/// that products use on this rank. Edge matrices over one pattern share it. Move-only.
template <class T, class Device>
class edge_matrix {
 public:
  /// Uninitialised. Local; no communication.
  edge_matrix(sparse<T, dynamic_layout, Device> pattern, local_index heads)
      : edge_matrix(std::move(pattern), interval{0, heads}) {}
  /// The same for the heads `heads` only; `capacity`: minimum number of values to allocate.
  edge_matrix(sparse<T, dynamic_layout, Device> pattern, interval heads, std::size_t capacity = 0)
      : pattern_(std::move(pattern)),
        heads_(heads),
        size_(pattern_.stored_for("edge_matrix").local()->nonzeros * static_cast<std::size_t>(heads.size())),
        storage_(pattern_.mesh().queue(), std::max(size_, capacity)) {}

  const sparse<T, dynamic_layout, Device>& pattern() const { return pattern_; }
  const partita::mesh<Device>& mesh() const { return pattern_.mesh(); }
  /// The number of heads stored on this rank, and the first of them.
  local_index heads() const { return static_cast<local_index>(heads_.size()); }
  local_index first_head() const { return static_cast<local_index>(heads_.begin); }
  /// The values of entry e of this rank's tiles are [e * heads, (e + 1) * heads).
  std::span<T> values() { return storage_.span().first(size_); }
  std::span<const T> values() const { return storage_.span().first(size_); }
  /// The whole allocation, for reuse as scratch memory while the values are not needed.
  std::span<T> storage() { return storage_.span(); }

  /// visitor(t, csr_slice) for the parts of every tile t of this rank; the values of entry e of a part are [e
  /// * heads, (e + 1) * heads) of part.values_in(values, heads).
  template <class Visitor>
  void for_parts(Visitor visitor) const {
    const auto& block = *pattern_.local();
    for (std::size_t t = 0; t < block.count(); ++t)
      for (const local::csr_slice<T>& part : block.parts(t)) visitor(t, part);
  }

 private:
  sparse<T, dynamic_layout, Device> pattern_;
  interval heads_;
  std::size_t size_;
  buffer<T, Device> storage_;
};

}  // namespace partita
