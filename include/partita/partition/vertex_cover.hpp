// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Minimum vertex covers of bipartite graphs.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/index.hpp"

namespace partita::partition {

/// A block of a sparse matrix as a graph between its rows and its columns: row i is connected with columns[e]
/// for e in [begins[i], begins[i + 1]). Borrowed arrays.
struct bipartite_graph {
  std::span<const std::size_t> begins;  ///< (rows + 1)
  std::span<const local_index> columns;
  local_index width = 0;  ///< the number of columns

  std::size_t rows() const { return begins.size() - 1; }
};

/// Rows and columns, such that each entry of a block is in one of these rows or columns.
struct vertex_cover {
  std::vector<char> rows, columns;  ///< whether a row, a column is in it
  global_index size = 0;
};

namespace detail {

/// A maximum matching of the columns of a block with its rows, by Hopcroft and Karp (SIAM J. Comput. 2,
/// 1973): in each phase, shortest augmenting paths from unmatched columns, as many as are disjoint.
class column_matching {
 public:
  explicit column_matching(const bipartite_graph& g)
      : begins_(static_cast<std::size_t>(g.width) + 1, 0),
        row_of_(static_cast<std::size_t>(g.width), none),
        column_of_(g.rows(), none),
        depth_(row_of_.size()) {
    transpose(g);
    for (std::size_t j = 0; j < row_of_.size(); ++j) match_greedily(j);
    while (find_depths()) {
      next_.assign(begins_.begin(), begins_.end() - 1);
      for (std::size_t j = 0; j < row_of_.size(); ++j)
        if (row_of_[j] == none && depth_[j] == 0) augment(j);
    }
  }

  /// By Koenig's theorem, of as many vertices as the matching has edges: the columns that no alternating path
  /// from an unmatched column reaches, and the rows that one reaches. When no augmenting path is left, the
  /// depths say which columns are reached.
  vertex_cover cover() const {
    vertex_cover found{std::vector<char>(column_of_.size(), 0), std::vector<char>(row_of_.size(), 0)};
    for (std::size_t j = 0; j < row_of_.size(); ++j) {
      if (depth_[j] == unreached) {
        found.columns[j] = 1;
        ++found.size;
        continue;
      }
      for (std::size_t e = begins_[j]; e < begins_[j + 1]; ++e)
        found.size += std::exchange(found.rows[index_of(rows_[e])], 1) == 0 ? 1 : 0;
    }
    return found;
  }

 private:
  static constexpr local_index none = -1, unreached = std::numeric_limits<local_index>::max();

  static std::size_t index_of(local_index i) { return static_cast<std::size_t>(i); }

  /// The rows of each column.
  void transpose(const bipartite_graph& g) {
    const auto entries = g.columns.subspan(g.begins.front(), g.begins.back() - g.begins.front());
    for (const local_index j : entries) ++begins_[index_of(j) + 1];
    for (std::size_t j = 1; j < begins_.size(); ++j) begins_[j] += begins_[j - 1];
    rows_.resize(entries.size());
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (std::size_t i = 0; i < g.rows(); ++i)
      for (std::size_t e = g.begins[i]; e < g.begins[i + 1]; ++e)
        rows_[next[index_of(g.columns[e])]++] = static_cast<local_index>(i);
  }
  void match(std::size_t j, local_index i) {
    row_of_[j] = i;
    column_of_[index_of(i)] = static_cast<local_index>(j);
  }
  void match_greedily(std::size_t j) {
    for (std::size_t e = begins_[j]; e < begins_[j + 1]; ++e)
      if (column_of_[index_of(rows_[e])] == none) return match(j, rows_[e]);
  }
  /// The matched edges on the shortest alternating path from an unmatched column to each column. Whether such
  /// a path leads to an unmatched row; then only as far as the shortest of these.
  bool find_depths() {
    std::fill(depth_.begin(), depth_.end(), unreached);
    queue_.clear();
    for (std::size_t j = 0; j < row_of_.size(); ++j)
      if (row_of_[j] == none) reach(static_cast<local_index>(j), 0);
    local_index last = unreached;
    for (std::size_t k = 0; k < queue_.size() && depth_[index_of(queue_[k])] < last; ++k) {
      const std::size_t j = index_of(queue_[k]);
      for (std::size_t e = begins_[j]; e < begins_[j + 1]; ++e) {
        const local_index mate = column_of_[index_of(rows_[e])];
        if (mate == none)
          last = depth_[j] + 1;
        else if (depth_[index_of(mate)] == unreached)
          reach(mate, depth_[j] + 1);
      }
    }
    return last != unreached;
  }
  void reach(local_index j, local_index depth) {
    depth_[index_of(j)] = depth;
    queue_.push_back(j);
  }
  /// Augments the matching along a path from column j on which depths grow by one, if there is one. An entry
  /// is tried once in a phase.
  void augment(std::size_t j) {
    path_.assign(1, j);
    while (!path_.empty()) {
      const std::size_t at = path_.back();
      if (next_[at] == begins_[at + 1]) {
        path_.pop_back();
        continue;
      }
      const local_index i = rows_[next_[at]++], mate = column_of_[index_of(i)];
      if (mate == none) {
        for (const std::size_t on_path : path_) match(on_path, rows_[next_[on_path] - 1]);
        return;
      }
      if (depth_[index_of(mate)] == depth_[at] + 1) path_.push_back(index_of(mate));
    }
  }

  std::vector<std::size_t> begins_, next_;
  std::vector<local_index> rows_;
  std::vector<local_index> row_of_, column_of_;  ///< matched with, or none
  std::vector<local_index> depth_, queue_;
  std::vector<std::size_t> path_;
};

}  // namespace detail

/// A smallest set of rows and columns that covers all entries of a block; of these, one with as many columns
/// as any. Rows and columns without entries are not in it. It takes O(entries sqrt(rows + columns)) steps.
/// Local; no communication. Source: Koenig (1931).
inline vertex_cover minimum_vertex_cover(const bipartite_graph& g) {
  return detail::column_matching(g).cover();
}

}  // namespace partita::partition
