#pragma once
/// One rank's part of a sparse matrix: a row of CSR tiles, one for each row block of the dense operand it
/// multiplies.

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "partita/base/triplet.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/place.hpp"

namespace partita {

/// Offsets and columns of all tiles lie in one buffer (`structure`), so that a block can travel as two
/// messages.
template <class T, class Place>
struct tiles {
  local_index rows = 0;
  std::vector<local_index> widths;  ///< columns of each tile
  std::size_t nonzeros = 0;
  buffer<local_index, Place>
      structure;            ///< (offsets_size() for count * (rows + 1) offsets, then nonzeros columns)
  buffer<T, Place> values;  ///< (nonzeros)

  std::size_t count() const { return widths.size(); }
  std::size_t offsets_size() const { return partita::offsets_size(count(), rows); }
};

/// Elements of the structure of `count` tiles of `rows` rows.
constexpr std::size_t structure_size(std::size_t count, local_index rows, std::size_t nonzeros) {
  return offsets_size(count, rows) + nonzeros;
}

/// Tile `t` of a row of `count` tiles that lies in `structure` and `values`.
template <class T>
csr_view<T> tile_view(const local_index* structure, const T* values, local_index rows, std::size_t count,
                      std::size_t t, local_index width) {
  return {rows, width, structure + t * (static_cast<std::size_t>(rows) + 1),
          structure + offsets_size(count, rows), values};
}

namespace detail {

/// The entries row by row, in a row by columns; entries of one place keep their order. Rows are counted, not
/// compared: a hundred million entries take seconds.
template <class T>
std::vector<triplet<T>> in_order(interval rows, const std::vector<triplet<T>>& entries) {
  std::vector<std::size_t> end(static_cast<std::size_t>(rows.size()) + 1, 0);
  const auto row_of = [&](const triplet<T>& e) { return static_cast<std::size_t>(e.row - rows.begin); };
  for (const triplet<T>& e : entries) ++end[row_of(e) + 1];
  std::inclusive_scan(end.begin(), end.end(), end.begin());
  std::vector<triplet<T>> sorted(entries.size());
  for (const triplet<T>& e : entries) sorted[end[row_of(e)]++] = e;
  auto first = sorted.begin();
  for (std::size_t i = 0; i + 1 < end.size(); ++i) {
    const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(end[i]);
    std::stable_sort(first, last, [](const auto& a, const auto& b) { return a.col < b.col; });
    first = last;
  }
  return sorted;
}

}  // namespace detail

/// Tiles of the entries with rows in `rows` and columns in one of `columns` (disjoint). Duplicates add up.
/// Throws shape_error when the block does not fit 32-bit local indices.
template <class T, class Place>
tiles<T, Place> make_tiles(const queue<Place>& q, interval rows, std::span<const interval> columns,
                           std::vector<triplet<T>> entries) {
  const auto place = [](const triplet<T>& e) { return std::pair(e.row, e.col); };
  entries = detail::in_order(rows, entries);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (kept > 0 && place(entries[kept - 1]) == place(entries[i]))
      entries[kept - 1].value += entries[i].value;
    else
      entries[kept++] = entries[i];
  }
  entries.resize(kept);

  tiles<T, Place> result;
  result.rows = narrow(rows.size(), "the number of rows of a sparse block");
  for (interval c : columns)
    result.widths.push_back(narrow(c.size(), "the number of columns of a sparse tile"));
  narrow(static_cast<global_index>(kept), "the number of nonzeros of a sparse block");
  result.nonzeros = kept;

  std::vector<std::size_t> by_begin(columns.size());
  std::iota(by_begin.begin(), by_begin.end(), std::size_t{0});
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](std::size_t a, std::size_t b) { return columns[a].begin < columns[b].begin; });
  const auto tile_of = [&](global_index col) {
    const auto next = std::upper_bound(by_begin.begin(), by_begin.end(), col,
                                       [&](global_index j, std::size_t t) { return j < columns[t].begin; });
    return *(next - 1);
  };

  const std::size_t stride = static_cast<std::size_t>(result.rows) + 1;
  std::vector<local_index> structure(structure_size(columns.size(), result.rows, kept), 0);
  std::vector<T> values(kept);
  std::vector<std::size_t> tile(kept);
  for (std::size_t i = 0; i < kept; ++i) {
    tile[i] = tile_of(entries[i].col);
    ++structure[tile[i] * stride + static_cast<std::size_t>(entries[i].row - rows.begin) + 1];
  }
  for (std::size_t t = 0; t < columns.size(); ++t) {
    const auto begin = structure.begin() + static_cast<std::ptrdiff_t>(t * stride);
    if (t > 0) *begin = *(begin - 1);
    std::inclusive_scan(begin, begin + static_cast<std::ptrdiff_t>(stride), begin);
  }
  std::vector<local_index> next(structure.begin(),
                                structure.begin() + static_cast<std::ptrdiff_t>(columns.size() * stride));
  for (std::size_t i = 0; i < kept; ++i) {
    const auto at = static_cast<std::size_t>(
        next[tile[i] * stride + static_cast<std::size_t>(entries[i].row - rows.begin)]++);
    structure[result.offsets_size() + at] = static_cast<local_index>(entries[i].col - columns[tile[i]].begin);
    values[at] = entries[i].value;
  }

  result.structure = buffer<local_index, Place>(q, structure.size());
  result.values = buffer<T, Place>(q, values.size());
  copy(q, std::span<const local_index>(structure), result.structure.span());
  copy(q, std::span<const T>(values), result.values.span());
  return result;
}

}  // namespace partita
