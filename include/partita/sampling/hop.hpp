// SPDX-License-Identifier: Apache-2.0
#pragma once
/// One hop of a sampler: entries are chosen from the rows of target vertices, and become a block.

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/numbering.hpp"
#include "partita/local/parallel.hpp"
#include "partita/sampling/block.hpp"
#include "partita/sampling/requests.hpp"

namespace partita::sampling {

/// The entries that a draw chooses of a row, with the factors of their values, and memory that it may use.
struct choice {
  std::vector<std::size_t> entries;
  std::vector<double> factors;
  std::vector<local_index> places;
  std::vector<std::pair<double, local_index>> ranked;
  base::numbering<local_index> seen;

  void take(std::size_t entry, double factor) {
    entries.push_back(entry);
    factors.push_back(factor);
  }
};

/// The memory of a sampler and what all of them do. Used by one thread at a time.
///
/// A draw is a function object: draw(row, v, chosen) takes entries of a row of the graph, no entry twice, as
/// a pure function of v, so that it does not matter on which rank or thread it runs. v is the vertex, or of R
/// relations the number of the row, that of the vertex times R and that of the relation.
template <class T>
class hop {
 public:
  /// Works with up to `threads` threads. Throws mesh_error if threads < 1.
  hop(partita::sampling::graph<T> g, int threads)
      : graph_(std::move(g)), requests_(graph_), threads_(threads) {
    if (threads < 1) base::throw_error<mesh_error>({"a sampler needs at least one thread, not ", threads});
    parts_.resize(static_cast<std::size_t>(threads));
  }

  const partita::sampling::graph<T>& graph() const { return graph_; }

  /// Numbers the roots, which are the vertices of `out` then. Throws shape_error naming a root that is no
  /// vertex or is given twice.
  void begin(std::span<const global_index> roots, sample<T>& out) {
    numbers_.clear();
    out.vertices.assign(roots.begin(), roots.end());
    out.relations = graph_.relations();
    for (const global_index v : roots) {
      if (v < 0 || v >= graph_.vertices())
        base::throw_error<shape_error>({"root ", v, " is not a vertex of a graph of ", graph_.vertices()});
      if (!numbers_(static_cast<local_index>(v)).second)
        base::throw_error<shape_error>({"root ", v, " is given twice; the roots of a sample are distinct"});
    }
  }

  /// Chooses from the rows of `targets`. Of a cut graph collective over its ranks; what travels: an exchange
  /// (requests), in which the answer about a vertex is the number of entries chosen of each relation, their
  /// columns, values and vectors.
  template <class Draw>
  void choose(std::span<const global_index> targets, const Draw& draw) {
    if (graph_.is_replicated()) return choose_here(targets, draw);
    requests_.ask(targets);
    choose_here(requests_.questions(), draw);
    requests_.answer(chosen(), answers_);
    std::swap(chosen(), answers_);
  }
  /// Chooses from rows that this rank has. Local; no communication.
  template <class Draw>
  void choose_here(std::span<const global_index> targets, const Draw& draw) {
    used_ = for_ranges(targets.size(), [&](std::size_t p, std::size_t begin, std::size_t end) {
      choose_part(targets.subspan(begin, end - begin), draw, parts_[p]);
    });
  }
  /// What was chosen, to be read or replaced.
  entry_rows<T>& chosen() {
    for (std::size_t p = 1; p < used_; ++p) parts_[0].rows.append(parts_[p].rows);
    used_ = 1;
    return parts_[0].rows;
  }

  /// Runs f(p, begin, end) for equal parts of [0, rows), each on its own thread; returns how many they were.
  template <class F>
  std::size_t for_ranges(std::size_t rows, const F& f) const {
    const auto parts = std::clamp<std::size_t>(rows / least_rows, 1, static_cast<std::size_t>(threads_));
    local::run_parts(static_cast<int>(parts), [&](int number) {
      const auto p = static_cast<std::size_t>(number);
      f(p, rows * p / parts, rows * (p + 1) / parts);
    });
    return parts;
  }

  /// The numbers of the vertices of `out`, and one more of them unless it has one.
  const base::numbering<local_index>& numbers() const { return numbers_; }
  void add(global_index v, sample<T>& out) {
    if (numbers_(static_cast<local_index>(v)).second) out.vertices.push_back(v);
  }
  /// Makes a block of the rows chosen: numbers their columns, and appends the new vertices to those of `out`.
  void make_block(block<T>& b, sample<T>& out) {
    for (std::size_t p = 0; p < used_; ++p) number(parts_[p].rows.columns, out.vertices);
    std::size_t rows = 0, entries = 0;
    for (std::size_t p = 0; p < used_; ++p) {
      parts_[p].first_row = std::exchange(rows, rows + parts_[p].rows.counts.size());
      parts_[p].first_entry = std::exchange(entries, entries + parts_[p].rows.columns.size());
    }
    b.rows = static_cast<local_index>(rows);
    b.cols = numbers_.size();
    b.offsets.resize(rows + 1);
    b.offsets[rows] =
        base::to_local(static_cast<global_index>(entries), "the number of entries of a sampled block");
    b.columns.resize(entries);
    b.values.resize(entries);
    b.width = graph_.width();
    b.vectors.resize(entries * static_cast<std::size_t>(b.width));
    local::run_parts(static_cast<int>(used_),
                     [&](int p) { copy_sorted(parts_[static_cast<std::size_t>(p)], b); });
    out.sampled_edges += entries;
  }

 private:
  static constexpr std::size_t rows_ahead = 8, entries_ahead = 16, least_rows = 64;

  struct part {
    entry_rows<T> rows;
    choice chosen;
    std::size_t first_row = 0, first_entry = 0;
    std::vector<std::pair<local_index, T>> sorted;
    std::vector<local_index> order;
  };

  /// Chooses from several rows before it reads the entries, which have been fetched from memory by then.
  template <class Draw>
  void choose_part(std::span<const global_index> targets, const Draw& draw, part& to) const {
    to.rows.clear();
    choice& chosen = to.chosen;
    const auto width = static_cast<std::size_t>(graph_.width());
    for (std::size_t first = 0; first < targets.size(); first += rows_ahead) {
      chosen.entries.clear();
      chosen.factors.clear();
      for (std::size_t i = first; i < std::min(first + rows_ahead, targets.size()); ++i) {
        if (i + rows_ahead < targets.size()) graph_.prefetch(targets[i + rows_ahead]);
        const std::size_t all_before = chosen.entries.size();
        for (local_index r = 0; r < graph_.relations(); ++r) {
          const std::size_t before = chosen.entries.size();
          draw(graph_.row(targets[i], r), targets[i] * graph_.relations() + r, chosen);
          to.rows.counts.push_back(static_cast<local_index>(chosen.entries.size() - before));
        }
        for (std::size_t k = all_before; k < chosen.entries.size(); ++k) {
          __builtin_prefetch(graph_.columns().data() + chosen.entries[k]);
          __builtin_prefetch(graph_.values().data() + chosen.entries[k]);
        }
      }
      for (std::size_t k = 0; k < chosen.entries.size(); ++k) {
        to.rows.columns.push_back(graph_.columns()[chosen.entries[k]]);
        to.rows.values.push_back(
            static_cast<T>(static_cast<double>(graph_.values()[chosen.entries[k]]) * chosen.factors[k]));
        const T* const vector = graph_.vectors().data() + chosen.entries[k] * width;
        to.rows.vectors.insert(to.rows.vectors.end(), vector, vector + width);
      }
    }
  }
  /// Replaces vertices by their numbers.
  void number(std::vector<local_index>& vertices, std::vector<global_index>& numbered) {
    for (std::size_t e = 0; e < vertices.size(); ++e) {
      if (e + entries_ahead < vertices.size()) numbers_.prefetch(vertices[e + entries_ahead]);
      const auto [number, is_new] = numbers_(vertices[e]);
      if (is_new) numbered.push_back(vertices[e]);
      vertices[e] = number;
    }
  }
  /// The rows of a part at their place in a block, sorted by column.
  static void copy_sorted(part& from, block<T>& to) {
    constexpr std::ptrdiff_t few = 32;
    const local_index* columns = from.rows.columns.data();
    const T* values = from.rows.values.data();
    std::size_t at = from.first_entry;
    for (std::size_t i = 0; i < from.rows.counts.size(); ++i) {
      to.offsets[from.first_row + i] = static_cast<local_index>(at);
      const std::ptrdiff_t count = from.rows.counts[i];
      if (to.width > 0) sort_vectors(from, at - from.first_entry, count, to, at);
      if (count <= few)
        insert_sorted(columns, values, count, to.columns.data() + at, to.values.data() + at);
      else
        sort(columns, values, count, from.sorted, to.columns.data() + at, to.values.data() + at);
      columns += count;
      values += count;
      at += static_cast<std::size_t>(count);
    }
  }
  /// The vectors of `count` entries from `first` on in the order of their columns.
  static void sort_vectors(part& from, std::size_t first, std::ptrdiff_t count, block<T>& to,
                           std::size_t at) {
    const auto width = static_cast<std::size_t>(to.width);
    const local_index* const columns = from.rows.columns.data() + first;
    from.order.resize(static_cast<std::size_t>(count));
    std::iota(from.order.begin(), from.order.end(), 0);
    std::ranges::sort(from.order, {}, [&](local_index k) { return columns[k]; });
    for (const local_index k : from.order)
      std::copy_n(from.rows.vectors.data() + (first + static_cast<std::size_t>(k)) * width, width,
                  to.vectors.data() + at++ * width);
  }
  static void insert_sorted(const local_index* columns, const T* values, std::ptrdiff_t count,
                            local_index* to_columns, T* to_values) {
    for (std::ptrdiff_t k = 0; k < count; ++k) {
      std::ptrdiff_t place = k;
      for (; place > 0 && to_columns[place - 1] > columns[k]; --place) {
        to_columns[place] = to_columns[place - 1];
        to_values[place] = to_values[place - 1];
      }
      to_columns[place] = columns[k];
      to_values[place] = values[k];
    }
  }
  static void sort(const local_index* columns, const T* values, std::ptrdiff_t count,
                   std::vector<std::pair<local_index, T>>& sorted, local_index* to_columns, T* to_values) {
    sorted.clear();
    for (std::ptrdiff_t k = 0; k < count; ++k) sorted.emplace_back(columns[k], values[k]);
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [column, value] : sorted) {
      *to_columns++ = column;
      *to_values++ = value;
    }
  }

  partita::sampling::graph<T> graph_;
  requests<T> requests_;
  int threads_;
  base::numbering<local_index> numbers_;
  std::vector<part> parts_;
  std::size_t used_ = 0;  ///< how many parts the last choice filled
  entry_rows<T> answers_;
};

}  // namespace partita::sampling
