// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The entries of the matrices that models multiply with, computed from a graph's edges when they are read.

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "partita/base/triplet.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/transfer/entry_rows.hpp"
#include "partita/transfer/scaled_pattern.hpp"

namespace partita::graph {

/// This rank's entries of A + w I, where A(v, u) is the weight of the edge from u to v: a range of triplets
/// for distribute, which makes of them R (A + w I) C with diagonal R and C. It refers to the dataset, which
/// must outlive it.
template <class T>
class matrix_entries {
 public:
  /// The diagonal of R or C (n); null for I.
  using scale = std::shared_ptr<const std::vector<double>>;
  /// Whether each vertex has an edge to itself (n); null where none is to be asked.
  using loop_marks = std::shared_ptr<const std::vector<std::uint8_t>>;

  /// Edges, and vertices with loops, are shared by the ranks of `world` in equal parts. Local.
  matrix_entries(const communicator& world, const io::dataset& data)
      : data_(&data),
        edges_(comm::share_of(static_cast<global_index>(data.edges.size()), world.rank(), world.size())),
        shares_{world.rank(), world.size()} {}

  /// The same entries in another precision.
  template <class U>
  explicit matrix_entries(const matrix_entries<U>& other)
      : data_(other.data_),
        edges_(other.edges_),
        loops_(other.loops_),
        shares_{other.shares_.rank, other.shares_.of},
        loops_of_all_(other.loops_of_all_),
        weighted_(other.weighted_),
        loop_weight_(other.loop_weight_),
        loops_there_(other.loops_there_),
        row_scale_(other.row_scale_),
        col_scale_(other.col_scale_),
        as_factors_(other.as_factors_) {}

  const io::dataset& graph() const { return *data_; }
  /// The same of A + `weight` I; vertices in `there` keep the loops that they have: theirs are of weight 0.
  matrix_entries with_loops(double weight, loop_marks there = nullptr) const {
    matrix_entries result = *this;
    result.loops_there_ = std::move(there);
    result.loops_of_all_ = data_->vertices;
    result.loops_ = comm::share_of(data_->vertices, shares_.rank, shares_.of);
    result.loop_weight_ = weight;
    return result;
  }
  /// The same where each edge has weight 1.
  matrix_entries unweighted() const {
    matrix_entries result = *this;
    result.weighted_ = false;
    return result;
  }
  matrix_entries scaled(scale rows, scale cols) const {
    matrix_entries result = *this;
    result.row_scale_ = std::move(rows);
    result.col_scale_ = std::move(cols);
    return result;
  }

  /// The same, of which distribute may store R and C in the place of values, see transfer::scaled_pattern.
  matrix_entries as_factors() const {
    matrix_entries result = *this;
    result.as_factors_ = true;
    return result;
  }
  /// R and C, if they are to be stored and A + w I has only ones.
  std::optional<transfer::entry_factors> factors() const {
    if (!as_factors_ || !has_ones()) return {};
    const auto of = [](const scale& s) { return s == nullptr ? std::span<const double>() : std::span(*s); };
    return transfer::entry_factors{of(row_scale_), of(col_scale_)};
  }

  /// Whether all values are 1.
  bool has_ones() const {
    return !is_weighted() && loops_there_ == nullptr && (loops_of_all_ == 0 || loop_weight_ == 1);
  }
  /// The entry of R (A + w I) C at the place of an entry of A + w I.
  T final_value(global_index row, global_index col, T value) const {
    const auto of = [](const scale& s, global_index v) {
      return s == nullptr ? 1.0 : (*s)[static_cast<std::size_t>(v)];
    };
    return static_cast<T>(value * (of(row_scale_, row) * of(col_scale_, col)));
  }

  /// Gives back the memory of the edges where they are in a mapped file.
  void forget() const {
    data_->edges.forget();
    data_->edge_weights.forget();
  }

  class iterator {
   public:
    using value_type = triplet<T>;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    using iterator_concept = std::random_access_iterator_tag;

    iterator() = default;
    triplet<T> operator*() const { return entries_->at(k_); }
    triplet<T> operator[](difference_type n) const { return entries_->at(k_ + n); }
    iterator& operator+=(difference_type n) { return k_ += n, *this; }
    iterator& operator-=(difference_type n) { return *this += -n; }
    iterator& operator++() { return *this += 1; }
    iterator& operator--() { return *this += -1; }
    iterator operator++(int) {
      const iterator before = *this;
      ++*this;
      return before;
    }
    iterator operator--(int) {
      const iterator before = *this;
      --*this;
      return before;
    }
    friend iterator operator+(iterator i, difference_type n) { return i += n; }
    friend iterator operator+(difference_type n, iterator i) { return i += n; }
    friend iterator operator-(iterator i, difference_type n) { return i -= n; }
    friend difference_type operator-(const iterator& a, const iterator& b) { return a.k_ - b.k_; }
    friend bool operator==(const iterator& a, const iterator& b) { return a.k_ == b.k_; }
    friend auto operator<=>(const iterator& a, const iterator& b) { return a.k_ <=> b.k_; }

   private:
    friend class matrix_entries;
    iterator(const matrix_entries* entries, difference_type k) : entries_(entries), k_(k) {}

    const matrix_entries* entries_ = nullptr;
    difference_type k_ = 0;
  };

  iterator begin() const { return {this, 0}; }
  iterator end() const { return {this, edges_.size() + loops_.size()}; }

 private:
  template <class>
  friend class matrix_entries;
  struct share {
    int rank, of;
  };

  [[gnu::always_inline]] triplet<T> at(std::ptrdiff_t k) const {
    if (k >= edges_.size()) {
      const global_index v = loops_.begin + (k - edges_.size());
      const bool there = loops_there_ != nullptr && (*loops_there_)[static_cast<std::size_t>(v)] != 0;
      return {v, v, there ? T(0) : static_cast<T>(loop_weight_)};
    }
    const auto e = static_cast<std::size_t>(edges_.begin + k);
    const io::edge ends = data_->edges[e];
    return {ends.target, ends.source, is_weighted() ? static_cast<T>(data_->edge_weights[e]) : T(1)};
  }
  bool is_weighted() const { return weighted_ && !data_->edge_weights.empty(); }

  const io::dataset* data_;
  interval edges_, loops_{0, 0};
  share shares_;
  global_index loops_of_all_ = 0;
  bool weighted_ = true;
  double loop_weight_ = 0;
  loop_marks loops_there_;
  scale row_scale_, col_scale_;
  bool as_factors_ = false;
};

/// Whether each vertex has an edge to itself (n), on every rank; null if none has. Collective. What travels:
/// an all-reduce of n bytes.
inline matrix_entries<double>::loop_marks marked_loops(const communicator& world, const io::dataset& data) {
  auto marks = std::make_shared<std::vector<std::uint8_t>>(static_cast<std::size_t>(data.vertices), 0);
  const interval mine =
      comm::share_of(static_cast<global_index>(data.edges.size()), world.rank(), world.size());
  for (global_index k = mine.begin; k < mine.end; ++k)
    if (const io::edge e = data.edges[static_cast<std::size_t>(k)];
        e.source == e.target && interval{0, data.vertices}.contains(e.source))
      (*marks)[static_cast<std::size_t>(e.source)] = 1;
  world.all_reduce(*marks, reduction::max);
  if (std::ranges::find(*marks, 1) == marks->end()) return nullptr;
  return marks;
}

/// How sums over a graph are made.
struct summation {
  int threads = 1;            ///< of each rank
  bool reproducible = false;  ///< with the same bits for every number of ranks
};

namespace detail {

/// The sums of rows of all ranks' entries, on every rank; `ones`: each of them is 1.
template <class Entries>
std::vector<double> weighted_degrees(const communicator& world, global_index rows, const Entries& entries,
                                     bool ones, const summation& how) {
  if (how.reproducible && !ones) return transfer::ordered_row_sums(world, rows, entries);
  const auto summed = [&]<class Sum>(Sum) {
    std::vector<Sum> sums(static_cast<std::size_t>(rows), 0);
    transfer::add_by_row(entries, sums, how.threads);
    world.all_reduce(sums);
    return std::vector<double>(sums.begin(), sums.end());
  };
  return ones ? summed(local_index{}) : summed(double{});
}

}  // namespace detail

/// The sums of the rows of A + w I (n), of all ranks' entries, on every rank. Collective. What travels: an
/// all-reduce of n elements; for reproducible sums of weights also each entry, to one rank.
template <class T>
std::vector<double> weighted_degrees(const communicator& world, const matrix_entries<T>& entries,
                                     const summation& how = {}) {
  return detail::weighted_degrees(world, entries.graph().vertices, entries, entries.has_ones(), how);
}

}  // namespace partita::graph
