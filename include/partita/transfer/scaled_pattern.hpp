// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse matrices diag(r) P diag(c), where the entries of P are 1, stored without a value for each entry.

#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/matrix/tiles.hpp"
#include "partita/memory/out_of_core.hpp"
#include "partita/transfer/entry_checks.hpp"

namespace partita::transfer {

/// r and c, the whole of them; without elements, 1.
struct entry_factors {
  std::span<const double> rows, columns;
};

/// The entries of diag(r) P diag(c) at the places of P's `entries`, a forward range of triplets whose values
/// are not read: a range for distribute that refers to all of them, which must outlive it. The matrix stores
/// r and c in the place of values, and products multiply by them: half the memory, and half of what is read
/// of A. It stores values, as if the entries had come with them, where a place is given more than once, where
/// factors would take more memory over all ranks than values, on a reproducible mesh, with far memory, and on
/// devices; and its values cannot be assigned where it does not.
template <class Entries>
class scaled_pattern {
 public:
  using base_iterator = decltype(std::begin(std::declval<const Entries&>()));
  using element = decltype((*std::declval<base_iterator>()).value);

  /// `rows` (m) and `columns` (n): r and c, the same on every rank, or none for 1. Local.
  explicit scaled_pattern(const Entries& entries, std::span<const double> rows = {},
                          std::span<const double> columns = {})
      : entries_(&entries), factors_{rows, columns} {}

  class iterator {
   public:
    using value_type = triplet<element>;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using iterator_concept = std::forward_iterator_tag;

    iterator() = default;
    explicit iterator(base_iterator at) : at_(at) {}
    value_type operator*() const {
      const auto& e = *at_;
      return {e.row, e.col, 1};
    }
    iterator& operator++() { return ++at_, *this; }
    iterator operator++(int) { return iterator(at_++); }
    friend bool operator==(const iterator& a, const iterator& b) { return a.at_ == b.at_; }

   private:
    base_iterator at_{};
  };

  iterator begin() const { return iterator(std::begin(*entries_)); }
  iterator end() const { return iterator(std::end(*entries_)); }

  static constexpr bool has_ones() { return true; }
  std::optional<entry_factors> factors() const { return factors_; }
  /// The value at a place where entries are given `count` times.
  template <class T>
  T final_value(global_index row, global_index col, T count) const {
    return static_cast<T>(static_cast<double>(count) * (of(factors_.rows, row) * of(factors_.columns, col)));
  }

 private:
  static double of(std::span<const double> factors, global_index k) {
    return factors.empty() ? 1 : factors[static_cast<std::size_t>(k)];
  }

  const Entries* entries_;
  entry_factors factors_;
};

/// Whether tiles of this shape, in the form that it names, store factors: every rank's entries are `ones`,
/// and factors are fewer than entries. Collective over the mesh. What travels: an all-reduce of two elements.
template <class Device>
bool takes_factors(const mesh<Device>& m, const local::tile_shape& shape, bool ones) {
  global_index votes[] = {ones ? 0 : 1, static_cast<global_index>(shape.values_size()) -
                                            static_cast<global_index>(shape.nonzeros)};
  m.world().all_reduce(std::span<global_index>(votes));
  return votes[0] == 0 && votes[1] < 0;
}

/// Throws shape_error unless there are factors for a matrix of this shape, and error naming one that is not
/// finite.
inline void require_factors(matrix_shape shape, const entry_factors& factors) {
  const auto require = [&](const char* of, std::span<const double> given, global_index size) {
    if (!given.empty() && static_cast<global_index>(given.size()) != size)
      base::throw_error<shape_error>(
          {"a matrix of ", shape, " was given ", given.size(), " factors of its ", of});
    for (std::size_t k = 0; k < given.size(); ++k)
      if (!std::isfinite(given[k]))
        base::throw_error<error>({"factor ", k, " of the ", of, " of a matrix is not a finite number"});
  };
  require("rows", factors.rows, shape.rows);
  require("columns", factors.columns, shape.cols);
}

/// The factors that tiles of these rows and columns store; nothing where they store values. Collective and
/// what travels: see takes_factors, where local::reads_factors.
template <class T, class Device>
std::optional<local::tile_factors<T>> factors_of_tiles(const mesh<Device>& m,
                                                       std::optional<entry_factors> given, interval rows,
                                                       std::span<const interval> columns,
                                                       local::tile_shape shape, bool ones) {
  if (!given || !local::reads_factors(m.queue())) return {};
  shape.form = {true, !given->rows.empty(), !given->columns.empty()};
  if (!takes_factors(m, shape, ones)) return {};
  if constexpr (local::multiplies_factors<Device>) multiply_factors(m.queue(), T());
  local::tile_factors<T> found{shape.form, {}};
  found.factors.reserve(shape.values_size());
  const auto take = [&](std::span<const double> from, interval part) {
    for (global_index k = part.begin; k < part.end && !from.empty(); ++k)
      found.factors.push_back(static_cast<T>(from[static_cast<std::size_t>(k)]));
  };
  take(given->rows, rows);
  for (const interval c : columns) take(given->columns, c);
  return found;
}

}  // namespace partita::transfer
