// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows of the dense operand referenced by the nonzero columns of a sparse block, and the block's factors
/// when its columns are renumbered to these rows.

#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "partita/matrix/tile_shape.hpp"

namespace partita::local {

/// For each tile except `own`: the nonempty columns, ascending, local to the tile.
struct needed_rows {
  std::vector<std::vector<local_index>> of_tile;

  std::vector<global_index> counts() const {
    std::vector<global_index> n;
    for (const auto& rows : of_tile) n.push_back(static_cast<global_index>(rows.size()));
    return n;
  }
};

/// Scans the block once.
inline needed_rows find_needed_rows(const tile_shape& block, const entry_lists& entries, std::size_t own) {
  needed_rows needed;
  for (std::size_t t = 0; t < block.count(); ++t) {
    auto& rows = needed.of_tile.emplace_back();
    if (t == own) continue;
    std::vector<char> named(static_cast<std::size_t>(block.widths[t]), 0);
    for (std::size_t e = entries.begin(t); e < entries.end(t); ++e)
      named[static_cast<std::size_t>(entries.column(e))] = 1;
    for (std::size_t j = 0; j < named.size(); ++j)
      if (named[j]) rows.push_back(static_cast<local_index>(j));
  }
  return needed;
}

/// The same entries with each column of a tile (except `own`) renumbered to its position among the needed
/// rows.
inline entry_lists compacted(const tile_shape& block, entry_lists entries, std::size_t own,
                             const needed_rows& needed) {
  for (std::size_t t = 0; t < block.count(); ++t) {
    if (t == own) continue;
    std::vector<local_index> position(static_cast<std::size_t>(block.widths[t]), 0);
    for (std::size_t i = 0; i < needed.of_tile[t].size(); ++i)
      position[static_cast<std::size_t>(needed.of_tile[t][i])] = static_cast<local_index>(i);
    for (std::size_t e = entries.begin(t); e < entries.end(t); ++e)
      entries.set_column(e, position[static_cast<std::size_t>(entries.column(e))]);
  }
  return entries;
}

/// Factors of tiles instead of values.
template <class T>
struct tile_factors {
  value_form form;
  std::vector<T> factors;  ///< (tile_shape::values_size())
};

/// The value of each entry of a block, in storage order, from its factors.
template <class T>
std::vector<T> products_of_factors(const tile_shape& block, const entry_lists& entries,
                                   const std::vector<T>& factors) {
  std::vector<T> values(block.nonzeros, T(1));
  for (std::size_t t = 0; t < block.count(); ++t)
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.rows); ++i)
      for (std::size_t e = entries.begin(t, i); e < entries.end(t, i); ++e) {
        if (block.form.rows) values[e] = factors[i];
        if (block.form.columns)
          values[e] *= factors[block.factors_before(t) + static_cast<std::size_t>(entries.column(e))];
      }
  return values;
}

/// The factors of a block whose columns are renumbered to needed rows, tile by tile, from those of the block;
/// `own_first`: those of `own` come before those of the other tiles.
template <class T>
std::vector<T> factors_of_needed(const tile_shape& block, const std::vector<T>& factors, std::size_t own,
                                 const needed_rows& needed, bool own_first) {
  const auto place = [](std::size_t k) { return static_cast<std::ptrdiff_t>(k); };
  if (!block.form.columns) return factors;
  std::vector<T> kept(factors.begin(), factors.begin() + place(block.factors_before(0)));
  const auto keep_own = [&] {
    kept.insert(kept.end(), factors.begin() + place(block.factors_before(own)),
                factors.begin() + place(block.factors_before(own + 1)));
  };
  if (own_first) keep_own();
  for (std::size_t t = 0; t < block.count(); ++t) {
    if (t == own && !own_first) keep_own();
    if (t == own) continue;
    for (const local_index j : needed.of_tile[t])
      kept.push_back(factors[block.factors_before(t) + static_cast<std::size_t>(j)]);
  }
  return kept;
}

/// Divides the needed rows of other tiles into s slices, in cyclic order of the tiles after `own`: of p
/// tiles, row i of the n needed rows of tile own + d is in slice floor(s ((d - 1) n + i) / ((p - 1) n)). For
/// each slice, a rank along row thus receives from few others, and sends to as few.
class row_slices {
 public:
  /// `needed`: the number of each tile, none of `own`.
  row_slices(const std::vector<global_index>& needed, std::size_t own, std::size_t slices)
      : widths_(slices, 0) {
    const std::size_t p = needed.size();
    for (std::size_t t = 0; t < p; ++t) {
      const auto n = static_cast<std::size_t>(needed[t]), before = n * ((t + p - own - 1) % p);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t k = slices * (before + i) / ((p - 1) * n);
        slice_.push_back(static_cast<local_index>(k));
        place_.push_back(widths_[k]++);
      }
    }
  }

  /// The slice of each needed row, tile by tile, and its place among the rows of the slice, in this order.
  const std::vector<local_index>& slice() const { return slice_; }
  const std::vector<local_index>& place() const { return place_; }
  /// How many rows are in each slice.
  const std::vector<local_index>& widths() const { return widths_; }
  /// Reorders one value per row from tile by tile to slice by slice.
  template <class T>
  void sort(std::span<T> of_rows) const {
    const std::vector<T> before(of_rows.begin(), of_rows.end());
    std::vector<std::size_t> first(widths_.size(), 0);
    for (std::size_t k = 1; k < first.size(); ++k)
      first[k] = first[k - 1] + static_cast<std::size_t>(widths_[k - 1]);
    for (std::size_t i = 0; i < before.size(); ++i)
      of_rows[first[static_cast<std::size_t>(slice_[i])] + static_cast<std::size_t>(place_[i])] = before[i];
  }

 private:
  std::vector<local_index> slice_, place_, widths_;
};

/// A row of tiles merged into few: `own`, and one tile for the needed rows of each slice, in their order
/// there. Entry e of the merged tiles is entry order[e] of the block; places between tiles have no meaning.
struct merged_tiles {
  tile_shape shape;
  std::vector<local_index> structure;
  std::vector<std::size_t> order;
};

/// The shape of those of one slice, and the offsets at the start of their structure. No part of a tile
/// exceeds `most` entries; throws shape_error naming a row that does.
inline merged_tiles merged_shape(const tile_shape& block, const entry_lists& entries, std::size_t own,
                                 const needed_rows& needed, std::size_t most) {
  const auto rows = static_cast<std::size_t>(block.rows);
  const auto entries_of = [&](std::size_t t, std::size_t i) {
    return entries.end(t, i) - entries.begin(t, i);
  };
  local_index remote_rows = 0;
  for (const auto& list : needed.of_tile) remote_rows += static_cast<local_index>(list.size());
  merged_tiles merged;
  merged.shape.rows = block.rows;
  merged.shape.widths = {block.widths[own], remote_rows};
  merged.shape.form = block.form;
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < rows; ++i) begins.push_back(begins.back() + entries_of(own, i));
  begins.push_back(begins.back());
  for (std::size_t i = 0; i < rows; ++i) {
    std::size_t remote = 0;
    for (std::size_t t = 0; t < block.count(); ++t) remote += t == own ? 0 : entries_of(t, i);
    begins.push_back(begins.back() + remote);
  }
  merged.structure = count_offsets(merged.shape, begins, most, 0);
  return merged;
}

/// All merged tiles, with columns and entry order. The first entry of a tile is at a multiple of `aligned`;
/// the padding before it belongs to no tile and is not counted in `nonzeros`.
inline merged_tiles merge(const tile_shape& block, entry_lists entries, std::size_t own,
                          const needed_rows& needed, const row_slices& slices, std::size_t most,
                          std::size_t aligned = 1) {
  const auto rows = static_cast<std::size_t>(block.rows);
  merged_tiles merged;
  merged.shape.rows = block.rows;
  merged.shape.widths = {block.widths[own]};
  merged.shape.widths.insert(merged.shape.widths.end(), slices.widths().begin(), slices.widths().end());
  merged.shape.form = block.form;
  const entry_lists compact = compacted(block, std::move(entries), own, needed);
  std::vector<std::size_t> before{0};  // needed rows of all preceding tiles
  for (const auto& list : needed.of_tile) before.push_back(before.back() + list.size());
  /// f(e, merged tile and row, column there) for the entries of all rows, tile by tile.
  const auto for_entries = [&](const auto& f) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t t = 0; t < block.count(); ++t)
        for (std::size_t e = compact.begin(t, i); e < compact.end(t, i); ++e) {
          if (t == own) {
            f(e, i, compact.column(e));
            continue;
          }
          const std::size_t row = before[t] + static_cast<std::size_t>(compact.column(e));
          const auto tile = 1 + static_cast<std::size_t>(slices.slice()[row]);
          f(e, tile * (rows + 1) + i, slices.place()[row]);
        }
  };
  std::vector<std::size_t> begins(merged.shape.count() * (rows + 1), 0);
  for_entries([&](std::size_t, std::size_t at, local_index) { ++begins[at + 1]; });
  std::inclusive_scan(begins.begin(), begins.end(), begins.begin());
  const std::size_t nonzeros = begins.back();
  for (std::size_t t = 1; t < merged.shape.count(); ++t) {
    const std::size_t gap = (aligned - begins[t * (rows + 1)] % aligned) % aligned;
    for (std::size_t& begin : std::span(begins).subspan(t * (rows + 1))) begin += gap;
  }
  merged.structure = count_offsets(merged.shape, begins, most, 0);
  const std::size_t offsets = merged.structure.size();
  merged.structure.resize(offsets + begins.back());
  merged.order.resize(begins.back());
  merged.shape.nonzeros = nonzeros;
  for_entries([&](std::size_t e, std::size_t at, local_index column) {
    const std::size_t to = begins[at]++;
    merged.structure[offsets + to] = column;
    merged.order[to] = e;
  });
  return merged;
}

}  // namespace partita::local
