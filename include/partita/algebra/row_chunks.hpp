// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products by chunks of the rows of a sparse matrix, all of which every rank has.

#include <algorithm>
#include <memory>
#include <vector>

#include "partita/local/chunked.hpp"
#include "partita/local/chunked_products.hpp"
#include "partita/matrix/dense.hpp"
#include "partita/matrix/sparse.hpp"

namespace partita::algebra {

/// Y = A X (m x f = m x k times k x f), chunk by chunk of consecutive rows of A with about equally many
/// entries, for an A that is not partitioned on its mesh: every rank multiplies its columns of X. So
/// products can begin before all of X has arrived, and Y can be sent before all of it is computed.
///
/// Local; no communication. The constructor throws shape_error if A is partitioned, and error for a transpose
/// that is not stored. Source: Ai et al., NeutronTP (VLDB 2025), section 4.2.
template <class T, class Device>
class row_chunks {
 public:
  row_chunks(const sparse<T, dynamic_layout, Device>& a, std::size_t count)
      : queue_(a.mesh().queue()), a_(a.local()), cols_(a.shape().cols) {
    if (!fits(a))
      base::throw_error<shape_error>({"chunks of the rows of A of ", a.shape(),
                                      " need all of A on every rank, not ", a.layout(), " on mesh ",
                                      a.mesh().shape()});
    const local::entry_lists entries = a_->entries(queue_);
    cut(entries, std::max<std::size_t>(count, 1));
    for (const interval r : rows_) needed_.push_back(columns_of(entries, r));
  }

  /// The rows of chunk j of y = alpha A x + beta z; beta = 0 does not read z.
  void operator()(std::size_t j, T alpha, matrix_view<const T> x, T beta, matrix_view<const T> z,
                  matrix_view<T> y) {
    (*this)(j, x, y);
    const auto of_chunk = [&](auto block) {
      return block.block(static_cast<local_index>(rows_[j].begin), 0,
                         static_cast<local_index>(rows_[j].size()), block.cols);
    };
    const matrix_view<T> mine = of_chunk(y);
    if (beta != 0)
      local::chunked::zip(queue_, base::linear_combination<T>{alpha, beta}, mine, of_chunk(z), mine);
    else if (alpha != 1)
      local::chunked::transform(queue_, base::scaled<T>{alpha}, mine, mine);
  }

  /// Whether every rank has all entries of A, and may multiply only some of them.
  static bool fits(const sparse<T, dynamic_layout, Device>& a) {
    const mesh_shape m = a.mesh().shape();
    return local::multiplies_parts(a.mesh().queue()) && a.is_stored() && m.size(a.layout().rows) == 1 &&
           m.size(a.layout().cols) == 1 && a.local()->count() == 1;
  }

  std::size_t count() const { return rows_.size(); }
  /// The rows of chunk j, and the rows of all chunks, in order.
  interval rows(std::size_t j) const { return rows_[j]; }
  const std::vector<interval>& rows() const { return rows_; }
  /// The rows of X that chunk j multiplies, ascending.
  const std::vector<global_index>& needed(std::size_t j) const { return needed_[j]; }
  /// For each chunk, the rows of X that it is the first to multiply; the last one also has the rows that no
  /// chunk multiplies: every row once.
  std::vector<std::vector<global_index>> first_needed() const {
    std::vector<std::vector<global_index>> lists;
    std::vector<bool> known(static_cast<std::size_t>(cols_), false);
    const auto add = [&](global_index r) {
      if (!known[static_cast<std::size_t>(r)]) lists.back().push_back(r);
      known[static_cast<std::size_t>(r)] = true;
    };
    for (const auto& list : needed_) {
      lists.emplace_back();
      for (const global_index r : list) add(r);
    }
    for (global_index r = 0; r < cols_; ++r) add(r);
    return lists;
  }

  /// The rows of chunk j of y = A x; x and y are this rank's columns of all rows.
  void operator()(std::size_t j, matrix_view<const T> x, matrix_view<T> y) {
    const interval chunk = rows_[j];
    for (const local::csr_slice<T>& part : a_->parts(0)) {
      const interval mine =
          intersection(chunk, {part.first_row, global_index{part.first_row} + part.entries.rows});
      if (mine.empty()) continue;
      const auto skipped = static_cast<local_index>(mine.begin - part.first_row),
                 count = static_cast<local_index>(mine.size());
      local::csr_view<T> some = part.entries;
      some.rows = count;
      some.offsets += skipped;
      some.entries = static_cast<local_index>(begins_[static_cast<std::size_t>(mine.end)] -
                                              begins_[static_cast<std::size_t>(mine.begin)]);
      const matrix_view<T> to = y.block(static_cast<local_index>(mine.begin), 0, count, y.cols);
      local::chunked::spmm(queue_, passes_, j, some, x, T(0), to, mine.begin > 0);
    }
  }

 private:
  void cut(const local::entry_lists& entries, std::size_t count) {
    const auto n = static_cast<std::size_t>(a_->rows);
    for (std::size_t i = 0; i <= n; ++i) begins_.push_back(entries.begin(0, i));
    std::size_t begin = 0;
    for (std::size_t j = 1; j <= count; ++j) {
      const auto first = std::lower_bound(begins_.begin() + static_cast<std::ptrdiff_t>(begin), begins_.end(),
                                          begins_.back() * j / count);
      const std::size_t end = j == count ? n : std::min(n, static_cast<std::size_t>(first - begins_.begin()));
      rows_.push_back({static_cast<global_index>(begin), static_cast<global_index>(end)});
      begin = end;
    }
  }
  static std::vector<global_index> columns_of(const local::entry_lists& entries, interval rows) {
    std::vector<global_index> columns;
    const auto end = entries.begin(0, static_cast<std::size_t>(rows.end));
    for (std::size_t e = entries.begin(0, static_cast<std::size_t>(rows.begin)); e < end; ++e)
      columns.push_back(entries.column(e));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    return columns;
  }

  device_queue<Device> queue_;
  std::shared_ptr<const local::csr_tiles<T, Device>> a_;
  global_index cols_;
  std::vector<std::size_t> begins_;  ///< entries before each row
  std::vector<interval> rows_;
  std::vector<std::vector<global_index>> needed_;
  local::entry_passes<Device> passes_;
};

}  // namespace partita::algebra
