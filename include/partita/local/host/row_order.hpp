// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The order in which the rows of a sparse block are multiplied. Rows that need the same rows of X are put
/// near each other if that saves enough of the reads of X that miss a cache; an estimate on a sample says so
/// first, in counts alone.
///
/// Source: breadth-first orders for locality: Cuthill, McKee (ACM 1969); in clusters that fit a cache:
/// Karypis, Kumar (SISC 1998), greedy graph growing.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "partita/local/host/parallel.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

/// What is known of a product Y = A X before its rows are looked at: the rows and entries of A, the bytes of
/// a row of X, and the threads that share the work.
struct order_problem {
  local_index rows = 0, cols = 0;
  const local_index *offsets = nullptr, *columns = nullptr;
  std::int64_t row_bytes = 0;
  int threads = 1;
  std::int64_t near_bytes = std::int64_t{1} << 20;  ///< the cache of one thread
  std::int64_t last_bytes = std::int64_t{1} << 25;  ///< and the last one, whose misses cost

  std::int64_t entries() const { return rows == 0 ? 0 : std::int64_t{offsets[rows]} - offsets[0]; }
  /// The rows of X that the cache of one thread holds.
  local_index rows_in_cache() const {
    return static_cast<local_index>(
        std::clamp<std::int64_t>(near_bytes / std::max<std::int64_t>(row_bytes, 1), 16, 1 << 14));
  }
};

namespace order_detail {

/// At most `most` different numbers.
class number_set {
 public:
  explicit number_set(local_index most) {
    while (slots_.size() < 2 * static_cast<std::size_t>(most) + 2) slots_.resize(2 * slots_.size(), -1);
  }
  /// Whether the number is new.
  bool insert(local_index number) {
    std::size_t at = place(number);
    for (; slots_[at] >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == number) return false;
    slots_[at] = number;
    ++size_;
    return true;
  }
  bool contains(local_index number) const {
    std::size_t at = place(number);
    for (; slots_[at] >= 0; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at] == number) return true;
    return false;
  }
  local_index size() const { return size_; }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), -1);
    size_ = 0;
  }

 private:
  std::size_t place(local_index number) const {
    return static_cast<std::size_t>(number) * 0x9e3779b97f4a7c15u >> 20 & (slots_.size() - 1);
  }

  std::vector<local_index> slots_ = std::vector<local_index>(16, -1);
  local_index size_ = 0;
};

/// Windows of rows that begin at evenly spaced rows and fill a cache, and all of whose entries are at most a
/// 64th of all. `clustered`: the rows of a window are found breadth-first, instead of being consecutive.
class sampled_windows {
 public:
  sampled_windows(const order_problem& p, bool clustered)
      : p_(p), clustered_(clustered), most_(std::min<local_index>(p.rows_in_cache(), 4096)), found_(most_) {}

  /// The share of entries whose column is not in their window yet, nor the column before it, with which it
  /// would have been fetched.
  double fetched_per_entry() {
    constexpr std::int64_t windows = 4;
    const std::int64_t most_entries = std::max<std::int64_t>(p_.entries() / (64 * windows), 1);
    for (std::int64_t w = 0; w < windows; ++w)
      visit(static_cast<local_index>((2 * w + 1) * p_.rows / (2 * windows)), entries_ + most_entries);
    return entries_ == 0 ? 1 : static_cast<double>(fetched_) / static_cast<double>(entries_);
  }

 private:
  void visit(local_index start, std::int64_t end) {
    found_.clear();
    queue_.assign(1, start);
    for (local_index k = 0; entries_ < end && found_.size() < most_; ++k) {
      if (clustered_ ? k == static_cast<local_index>(queue_.size()) : start + k == p_.rows) return;
      const local_index row = clustered_ ? queue_[static_cast<std::size_t>(k)] : start + k;
      for (local_index e = p_.offsets[row];
           e < p_.offsets[row + 1] && entries_ < end && found_.size() < most_; ++e, ++entries_) {
        const local_index column = p_.columns[e];
        if (!found_.insert(column)) continue;
        if (!found_.contains(column - 1)) ++fetched_;
        if (clustered_ && column != start) queue_.push_back(column);
      }
    }
  }

  const order_problem& p_;
  bool clustered_;
  local_index most_;
  number_set found_;
  std::vector<local_index> queue_;
  std::int64_t fetched_ = 0, entries_ = 0;
};

}  // namespace order_detail

/// The rows of X that an entry needs from random places, on average over a sample of at most a 64th of the
/// entries. `clustered`: in the order that clustered_order would find.
inline double fetched_per_entry(const order_problem& p, bool clustered) {
  return order_detail::sampled_windows(p, clustered).fetched_per_entry();
}

/// Whether another order than the natural one pays within 20 products, where an entry needs `before` and
/// `after` rows of X from random places on average. What counts is cache lines from random places. In another
/// order, rows of Y and the values of each row come from random places, too; and the search for the order
/// reads them once, on one thread.
inline bool order_pays(const order_problem& p, double before, double after) {
  const auto rows = static_cast<double>(p.rows), entries = static_cast<double>(p.entries());
  const auto lines = static_cast<double>((p.row_bytes + 63) / 64);
  const double saved = entries * (before - after) * lines - rows * (lines + 2);
  const double search = 4 * rows + 2 * entries, margin = 3;
  return saved > 0.1 * entries * before * lines && 20 * saved >= margin * search * p.threads;
}

/// What is expected of another order, from samples of at most a thirtieth of the entries.
inline bool order_may_pay(const order_problem& p) {
  if (p.rows != p.cols || p.rows * p.row_bytes < p.last_bytes || p.entries() < p.rows) return false;
  if (!order_pays(p, 1, static_cast<double>(p.rows) / static_cast<double>(p.entries()))) return false;
  const double before = fetched_per_entry(p, false);
  return order_pays(p, before, 0) && order_pays(p, before, fetched_per_entry(p, true));
}

/// The rows of a square block in clusters of rows_in_cache() / 2, each found breadth-first from a neighbour
/// of an earlier one, or from the first row that is left.
inline std::vector<local_index> clustered_order(const order_problem& p) {
  const auto rows = static_cast<std::size_t>(p.rows);
  std::vector<std::uint64_t> seen(rows / 64 + 1, 0);
  const auto word = [&](local_index row) -> std::uint64_t& {
    return seen[static_cast<std::size_t>(row) / 64];
  };
  const auto bit = [](local_index row) { return std::uint64_t{1} << (row % 64); };
  std::vector<local_index> order, around;
  order.reserve(rows);
  around.reserve(rows);
  std::size_t next_around = 0, end = 0;
  local_index next = 0;
  const auto append = [&](local_index row) {
    word(row) |= bit(row);
    order.push_back(row);
  };
  const auto start = [&] {
    end = std::min(order.size() + static_cast<std::size_t>(p.rows_in_cache()) / 2, rows);
    while (next_around < around.size())
      if (const local_index row = around[next_around++]; (word(row) & bit(row)) == 0) return append(row);
    while ((word(next) & bit(next)) != 0) ++next;
    append(next);
  };
  for (std::size_t k = 0; k < rows; ++k) {
    if (k == order.size()) start();
    if (k + 16 < order.size()) __builtin_prefetch(p.offsets + order[k + 16]);
    if (k + 8 < order.size()) __builtin_prefetch(p.columns + p.offsets[order[k + 8]]);
    for (local_index e = p.offsets[order[k]]; e < p.offsets[order[k] + 1]; ++e) {
      const local_index row = p.columns[e];
      if ((word(row) & bit(row)) != 0) continue;
      if (order.size() < end)
        append(row);
      else if (around.size() < rows)
        around.push_back(row);
    }
  }
  return order;
}

/// The rows of any block by their first column; those without entries last.
inline std::vector<local_index> order_by_first_column(const order_problem& p) {
  const auto column = [&](local_index row) {
    return p.offsets[row] < p.offsets[row + 1] ? p.columns[p.offsets[row]] : p.cols;
  };
  std::vector<local_index> begins(static_cast<std::size_t>(p.cols) + 2, 0),
      order(static_cast<std::size_t>(p.rows));
  for (local_index i = 0; i < p.rows; ++i) ++begins[static_cast<std::size_t>(column(i)) + 1];
  std::inclusive_scan(begins.begin(), begins.end(), begins.begin());
  for (local_index i = 0; i < p.rows; ++i)
    order[static_cast<std::size_t>(begins[static_cast<std::size_t>(column(i))]++)] = i;
  return order;
}

/// The structure of a sparse block with its rows in another order, and their places in the block. Takes 12
/// bytes per row and 4 per entry.
class ordered_rows {
 public:
  /// `order`: every row of the block once.
  ordered_rows(const device_queue<host>& q, const order_problem& p, const std::vector<local_index>& order)
      : rows_(p.rows), offsets_(q, order.size() + 1), places_(q, order.size()) {
    local_index entries = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (k + 16 < order.size()) __builtin_prefetch(p.offsets + order[k + 16]);
      const local_index row = order[k];
      offsets_.data()[k] = entries;
      places_.data()[k] = {row, p.offsets[row] - entries};
      entries += p.offsets[row + 1] - p.offsets[row];
    }
    offsets_.data()[order.size()] = entries;
    columns_ = buffer<local_index, host>(q, static_cast<std::size_t>(entries));
    run_rows(q.threads(), rows_, entries / std::max(rows_, 1), [&](local_index begin, local_index end) {
      for (local_index k = begin; k < end; ++k) {
        const local_index later = std::min(k + 8, rows_ - 1);
        __builtin_prefetch(p.columns + offsets_.data()[later] + places_.data()[later].shift);
        const local_index* const from = p.columns + places_.data()[k].shift;
        for (local_index e = offsets_.data()[k]; e < offsets_.data()[k + 1]; ++e)
          columns_.data()[e] = from[e];
      }
    });
  }

  /// The bytes it takes.
  static std::size_t bytes(const order_problem& p) {
    return 12 * static_cast<std::size_t>(p.rows) + 4 + 4 * static_cast<std::size_t>(p.entries());
  }
  const row_place* places() const { return places_.data(); }
  /// The block, reordered but for its values.
  template <class T>
  local::csr_view<T> of(const local::csr_view<T>& a) const {
    local::csr_view<T> ordered = a;
    ordered.offsets = offsets_.data();
    ordered.columns = columns_.data();
    ordered.entries = static_cast<local_index>(columns_.size());
    return ordered;
  }
  /// The same problem in this order.
  order_problem of(order_problem p) const {
    p.offsets = offsets_.data();
    p.columns = columns_.data();
    return p;
  }

 private:
  local_index rows_;
  buffer<local_index, host> offsets_, columns_;
  buffer<row_place, host> places_;
};

}  // namespace partita::on_host
