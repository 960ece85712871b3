// SPDX-License-Identifier: Apache-2.0
#pragma once
/// New values on a fixed sparsity pattern; plans made for the matrix stay valid.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <vector>

#include "partita/transfer/distribute.hpp"

namespace partita {

namespace transfer::detail {

/// f(i, j, current value) for every entry of this rank's block of A, in storage order.
template <class T, layout L, class Device, class Function>
std::vector<T> values_by(const sparse<T, L, Device>& a, Function f) {
  const auto& q = a.mesh().queue();
  const auto block = a.local();
  const local::entry_lists entries = block->entries(q);
  std::vector<T> values = block->values_of_entries(q);
  for (std::size_t t = 0; t < block->count(); ++t) {
    const global_index first_col = a.tile_columns(t).begin;
    for (global_index i = 0; i < a.row_range().size(); ++i)
      for (std::size_t e = entries.begin(t, static_cast<std::size_t>(i));
           e < entries.end(t, static_cast<std::size_t>(i)); ++e)
        values[e] = f(a.row_range().begin + i, first_col + entries.column(e), values[e]);
  }
  return values;
}

/// The entries received by this rank, looked up by the entries of its block.
template <class T>
class entry_table {
 public:
  entry_table(interval rows, const std::vector<triplet<T>>& entries)
      : rows_(rows), entries_(local::summed(rows, entries)), found_(entries_.size(), 0) {
    begins_.reserve(static_cast<std::size_t>(rows.size()) + 1);
    std::size_t e = 0;
    for (global_index i = rows.begin; i < rows.end; ++i) {
      begins_.push_back(e);
      while (e < entries_.size() && entries_[e].row == i) ++e;
    }
    begins_.push_back(e);
  }

  /// 0 for an entry that was not given.
  T operator()(global_index row, global_index col, T) {
    const auto begin = entries_.begin();
    const auto i = static_cast<std::size_t>(row - rows_.begin);
    const auto of_row = [&](std::size_t k) { return begin + static_cast<std::ptrdiff_t>(begins_[k]); };
    const auto at = std::lower_bound(of_row(i), of_row(i + 1), col,
                                     [](const triplet<T>& e, global_index j) { return e.col < j; });
    if (at == of_row(i + 1) || at->col != col) return 0;
    found_[static_cast<std::size_t>(at - begin)] = 1;
    return at->value;
  }
  /// Throws error naming an entry that was never looked up.
  void require_all_found(const char* verb, const char* matrix) const {
    const auto missing = std::find(found_.begin(), found_.end(), 0);
    if (missing == found_.end()) return;
    const triplet<T>& e = entries_[static_cast<std::size_t>(missing - found_.begin())];
    base::throw_error<error>(
        {verb, ": ", matrix, " has no entry at (", e.row, ", ", e.col, "), and the pattern is fixed"});
  }

 private:
  interval rows_;
  std::vector<triplet<T>> entries_;
  std::vector<std::size_t> begins_;
  std::vector<char> found_;
};

template <class T, layout L, class Device, class Entries>
std::vector<T> values_given(const sparse<T, L, Device>& a, const Entries& entries, transfer::side of) {
  const auto arrived =
      transfer::send_to_holders<T>(a.mesh(), a.layout(), a.row_blocking(), a.col_blocking(), entries, of);
  entry_table<T> table(
      a.row_range(),
      arrived.triplets(a.row_range(), partition::tile_columns(a.layout(), a.col_blocking(), a.mesh().at())));
  std::vector<T> values = values_by(a, [&](auto i, auto j, T old) { return table(i, j, old); });
  table.require_all_found("assign_values", of == transfer::side::straight ? "A" : "A^T");
  return values;
}

/// Whether A^T has blocks of its own.
template <class T, layout L, class Device>
bool stores_transpose(const sparse<T, L, Device>& a) {
  return a.kind() == symmetry::general || !a.is_stored();
}

}  // namespace transfer::detail

/// A(i, j) = the sum of the given entries at (i, j), on A's sparsity pattern; entries that no rank gives
/// become 0. Copies of A, transposed(A) and plans made with A see the new values.
///
/// `entries`: as for distribute. Collective over the mesh. What travels: each entry, to the ranks that hold
/// it, and again for A^T if that is stored separately. Throws what distribute throws, and error naming an
/// entry outside the pattern; A is then unchanged on the rank that throws.
template <class T, layout L, class Device, transfer::detail::triplets Entries>
void assign_values(sparse<T, L, Device>& a, const Entries& entries,
                   transfer::sharing shares = transfer::sharing::disjoint,
                   std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  transfer::detail::require_entries(a.mesh(), a.shape(), entries, shares);
  if (a.kind() == symmetry::symmetric && !is_symmetric(a.mesh().world(), entries))
    base::throw_error<shape_error>(
        {"a matrix of ", a.shape(), " is stored as symmetric, but the values assigned to it are not"});
  std::vector<T> forward, backward;
  if (a.is_stored()) forward = transfer::detail::values_given(a, entries, transfer::side::straight);
  if (transfer::detail::stores_transpose(a))
    backward = transfer::detail::values_given(transposed(a), entries, transfer::side::transposed);
  a.assign_local_values(forward, backward);
}

/// A(i, j) = f(i, j, A(i, j)) for every entry of A's pattern, with global indices. Copies of A, transposed(A)
/// and plans made with A see the new values. f runs on the host, for the entries of this rank. Local; no
/// communication. Throws error naming an entry whose new value is not finite, or which makes a matrix stored
/// as symmetric unsymmetric; A is then unchanged on the rank that throws.
template <class T, layout L, class Device, class Function>
requires std::invocable<Function&, global_index, global_index, T>
void assign_values(sparse<T, L, Device>& a, Function f) {
  const bool symmetric = a.kind() == symmetry::symmetric;
  const auto value = [&](global_index i, global_index j, T old) {
    const T now = static_cast<T>(f(i, j, old));
    if (!std::isfinite(now))
      base::throw_error<error>({"assign_values: the new value at (", i, ", ", j, ") is not a finite number"});
    if (symmetric && now != static_cast<T>(f(j, i, old)))
      base::throw_error<error>({"assign_values: the new values at (", i, ", ", j, ") and (", j, ", ", i,
                                ") differ, but the matrix is stored as symmetric"});
    return now;
  };
  std::vector<T> forward, backward;
  if (a.is_stored()) forward = transfer::detail::values_by(a, value);
  if (transfer::detail::stores_transpose(a))
    backward =
        transfer::detail::values_by(transposed(a), [&](auto i, auto j, T old) { return value(j, i, old); });
  a.assign_local_values(forward, backward);
}

}  // namespace partita
