// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Rows with very many entries, such as the hubs of a graph, are summed in pieces that threads may share; the
/// sums of the pieces are added in order. The pieces, and thus the bits of the sum, depend on the row only.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

/// Whether a row with this many entries is summed in pieces.
constexpr bool is_long(std::ptrdiff_t entries) { return entries > 8192; }

/// The pieces of a long row with the entries [first, last); they may be long themselves.
struct row_pieces {
  static constexpr local_index most = 64, smallest = 4096;

  constexpr row_pieces(local_index first_entry, local_index last_entry)
      : first(first_entry),
        last(last_entry),
        size(std::max(smallest, (last - first) / most + 1)),
        count((last - first) / size + ((last - first) % size != 0)) {}

  constexpr local_index begin(int piece) const {
    return last - first <= piece * std::int64_t{size} ? last : first + piece * size;
  }

  local_index first, last, size;
  int count;
};

namespace long_row_detail {

/// Long rows to be shared by threads, and their pieces.
struct shared_rows {
  struct row {
    local_index number, first_piece, pieces;
  };

  std::vector<row> rows;
  std::vector<local_index> offsets;  // of the pieces, row after row

  /// Takes the last rows of ranges: only these outweigh a range.
  shared_rows(const entry_ranges& ranges, const local_index* of_rows) {
    for (int k = 0; k + 1 < ranges.count; ++k) {
      const local_index end = ranges.begin(k + 1), i = end - 1;
      if (end == ranges.begin(k) || !is_long(std::ptrdiff_t{of_rows[end]} - of_rows[i])) continue;
      const row_pieces pieces(of_rows[i], of_rows[end]);
      rows.push_back({i, static_cast<local_index>(offsets.size() - rows.size()), pieces.count});
      for (int piece = 0; piece <= pieces.count; ++piece) offsets.push_back(pieces.begin(piece));
    }
  }
  local_index pieces() const { return rows.empty() ? 0 : rows.back().first_piece + rows.back().pieces; }
  bool has(local_index i) const {
    return std::any_of(rows.begin(), rows.end(), [=](const row& r) { return r.number == i; });
  }
};

}  // namespace long_row_detail

/// Rows of y, each from the entries of its row of a. Calls sum(a, y, true, begin, end) for ranges of rows
/// with about equally many entries, as run_entry_rows does. If a long row outweighs a range, it calls
/// sum(pieces, partial, false, k, k + 1) for each piece k, a row of `pieces` with its sum in row k of
/// `partial`, and then finish(row, total of these, row of y).
template <class T>
inline void run_row_sums(
    int threads, const local::csr_view<T>& a, const matrix_view<T>& y,
    function_reference<void(const local::csr_view<T>&, const matrix_view<T>&, bool, local_index, local_index)>
        sum,
    function_reference<void(local_index, const T*)> finish) {
  if (a.rows == 0) return;
  const entry_ranges ranges(threads, a.rows, a.offsets, y.cols);
  const auto rows = [&](int k) { sum(a, y, true, ranges.begin(k), ranges.begin(k + 1)); };
  if (ranges.count == 1 || !is_long(a.nonzeros())) return run_tasks(threads, ranges.count, rows);
  const long_row_detail::shared_rows shared(ranges, a.offsets);
  if (shared.rows.empty()) return run_tasks(threads, ranges.count, rows);
  const local_index pieces = shared.pieces();
  std::vector<T> sums(static_cast<std::size_t>(pieces) * static_cast<std::size_t>(y.cols));
  const matrix_view<T> partial{sums.data(), pieces, y.cols};
  run_tasks(threads, pieces + ranges.count, [&](int task) {
    if (task < pieces) {
      const auto r = std::find_if(shared.rows.begin(), shared.rows.end(),
                                  [=](const auto& s) { return task < s.first_piece + s.pieces; });
      const local::csr_view<T> of_row{r->pieces, a.cols,
                                      shared.offsets.data() + r->first_piece + (r - shared.rows.begin()),
                                      a.columns, a.values};
      const local_index k = task - r->first_piece;
      return sum(of_row, partial.block(r->first_piece, 0, r->pieces, y.cols), false, k, k + 1);
    }
    const local_index begin = ranges.begin(task - pieces), end = ranges.begin(task - pieces + 1);
    sum(a, y, true, begin, end > begin && shared.has(end - 1) ? end - 1 : end);
  });
  for (const auto& r : shared.rows) {
    T* const total = partial.row_data(r.first_piece);
    for (local_index k = 1; k < r.pieces; ++k)
      for (local_index j = 0; j < y.cols; ++j) total[j] += partial(r.first_piece + k, j);
    finish(r.number, total);
  }
}

}  // namespace partita::on_host
