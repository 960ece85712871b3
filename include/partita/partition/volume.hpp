// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What parts of a graph exchange in a product with its matrix, and a refinement that lowers the most that
/// one of them sends or receives.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"

namespace partita::partition {

/// Rows of X that travel in Y = A X where part p has rows p of A, X and Y, and each part gets once every row
/// of another that its entries of A name.
struct part_volumes {
  global_index cut = 0;                         ///< entries of A between parts
  std::vector<global_index> sent, received;     ///< rows of X, by each part
  std::vector<global_index> vertices, entries;  ///< of each part; entries of A in its rows

  /// Rows that travel, over all parts.
  global_index sum() const { return std::accumulate(sent.begin(), sent.end(), global_index{0}); }
  /// The most rows that a part sends or receives.
  global_index largest() const {
    return sent.empty() ? 0 : std::max(std::ranges::max(sent), std::ranges::max(received));
  }
};

struct refinement {
  double slack = 0.03;  ///< parts may have so much more than the mean of vertices and of entries
  int passes = 10;      ///< over all vertices, at most; it ends when one moves none
};

namespace detail {

/// Parts, and what they exchange while vertices move between them.
class moving_parts {
 public:
  moving_parts(std::span<const global_index> offsets, std::span<const global_index> columns,
               std::vector<int> part_of, int parts)
      : offsets_(offsets), columns_(columns), part_of_(std::move(part_of)), begin_(offsets.size(), 0) {
    const auto p = static_cast<std::size_t>(parts);
    volumes_ = {0, std::vector<global_index>(p), std::vector<global_index>(p), std::vector<global_index>(p),
                std::vector<global_index>(p)};
    for_sources([&](std::size_t, std::size_t u) { ++begin_[u + 1]; });
    for (std::size_t u = 0; u < part_of_.size(); ++u) begin_[u + 1] = begin_[u] + std::min(begin_[u + 1], p);
    readers_.resize(begin_.back());
    for (std::size_t v = 0; v < part_of_.size(); ++v) {
      ++volumes_.vertices[at(v)];
      volumes_.entries[at(v)] += entries_of(v);
    }
    for_sources([&](std::size_t v, std::size_t u) {
      volumes_.cut += at(v) != at(u) ? 1 : 0;
      begin_reading(u, part_of_[v]);
    });
  }

  const part_volumes& volumes() const { return volumes_; }
  const std::vector<int>& part_of() const { return part_of_; }
  global_index entries_of(std::size_t v) const { return offsets_[v + 1] - offsets_[v]; }

  /// The volumes but the cut become those of parts between which v has moved.
  void move(std::size_t v, int to) {
    const int from = std::exchange(part_of_[v], to);
    for (const reader& r : readers_of(v)) {
      if (r.entries == 0) continue;
      if (r.part != from) --volumes_.sent[index(from)], --volumes_.received[index(r.part)];
      if (r.part != to) ++volumes_.sent[index(to)], ++volumes_.received[index(r.part)];
    }
    for (auto e = index(offsets_[v]); e < index(offsets_[v + 1]); ++e)
      if (const std::size_t u = index(columns_[e]); u != v) {
        end_reading(u, from);
        begin_reading(u, to);
      }
    --volumes_.vertices[index(from)], ++volumes_.vertices[index(to)];
    volumes_.entries[index(from)] -= entries_of(v);
    volumes_.entries[index(to)] += entries_of(v);
  }

  /// Marks the other parts with which v exchanges a row.
  void mark_neighbours(std::size_t v, std::vector<char>& marked) const {
    std::ranges::fill(marked, 0);
    for (const reader& r : readers_of(v))
      if (r.entries > 0) marked[index(r.part)] = 1;
    for (auto e = index(offsets_[v]); e < index(offsets_[v + 1]); ++e) marked[at(index(columns_[e]))] = 1;
    marked[at(v)] = 0;
  }

 private:
  /// Entries of A in rows of a part that name one vertex.
  struct reader {
    int part = -1;
    global_index entries = 0;
  };

  static std::size_t index(auto number) { return static_cast<std::size_t>(number); }
  std::size_t at(std::size_t v) const { return index(part_of_[v]); }
  void for_sources(auto visit) const {
    for (std::size_t v = 0; v < part_of_.size(); ++v)
      for (auto e = index(offsets_[v]); e < index(offsets_[v + 1]); ++e)
        if (const std::size_t u = index(columns_[e]); u != v) visit(v, u);
  }
  std::span<const reader> readers_of(std::size_t u) const {
    return std::span(readers_).subspan(begin_[u], begin_[u + 1] - begin_[u]);
  }
  /// That of a part, or a free one: no more parts read a vertex than there is room for.
  reader& reader_of(std::size_t u, int part) {
    std::size_t unused = begin_[u + 1];
    for (std::size_t k = begin_[u]; k < begin_[u + 1]; ++k) {
      if (readers_[k].part == part) return readers_[k];
      if (readers_[k].entries == 0) unused = k;
    }
    readers_[unused].part = part;
    return readers_[unused];
  }
  void begin_reading(std::size_t u, int part) {
    if (reader_of(u, part).entries++ == 0 && part_of_[u] != part)
      ++volumes_.received[index(part)], ++volumes_.sent[at(u)];
  }
  void end_reading(std::size_t u, int part) {
    if (--reader_of(u, part).entries == 0 && part_of_[u] != part)
      --volumes_.received[index(part)], --volumes_.sent[at(u)];
  }

  std::span<const global_index> offsets_, columns_;
  std::vector<int> part_of_;
  std::vector<std::size_t> begin_;  ///< of each vertex's readers
  std::vector<reader> readers_;
  part_volumes volumes_;
};

/// What a refinement lowers: the largest volume and, where that is the same, the sum of their squares.
inline std::pair<global_index, double> burden_of(const part_volumes& v) {
  double squares = 0;
  for (std::size_t p = 0; p < v.sent.size(); ++p)
    squares += std::pow(static_cast<double>(v.sent[p]), 2) + std::pow(static_cast<double>(v.received[p]), 2);
  return {v.largest(), squares};
}

/// Moves v to where that lowers the burden most, if anywhere, and to no part that would have more vertices or
/// entries than these.
inline bool improve(moving_parts& parts, std::size_t v, global_index most_vertices, global_index most_entries,
                    std::vector<char>& marked) {
  const int from = parts.part_of()[v];
  if (parts.volumes().vertices[static_cast<std::size_t>(from)] == 1) return false;
  parts.mark_neighbours(v, marked);
  auto least = burden_of(parts.volumes());
  int best = from;
  for (std::size_t p = 0; p < marked.size(); ++p) {
    if (marked[p] == 0 || parts.volumes().vertices[p] + 1 > most_vertices ||
        parts.volumes().entries[p] + parts.entries_of(v) > most_entries)
      continue;
    parts.move(v, static_cast<int>(p));
    if (const auto burden = burden_of(parts.volumes()); burden < least) {
      least = burden;
      best = static_cast<int>(p);
    }
    parts.move(v, from);
  }
  if (best != from) parts.move(v, best);
  return best != from;
}

/// Throws shape_error unless there is a part in [0, parts) for each row.
inline void require_parts(std::span<const global_index> offsets, std::span<const int> part_of, int parts) {
  if (offsets.size() != part_of.size() + 1)
    base::throw_error<shape_error>({"a matrix of ", static_cast<global_index>(offsets.size()) - 1,
                                    " rows has as many parts of vertices, not ", part_of.size()});
  for (const int p : part_of)
    if (p < 0 || p >= parts) base::throw_error<shape_error>({"part ", p, " is not one of ", parts, " parts"});
}

}  // namespace detail

/// What the parts part_of (n), numbers in [0, parts), exchange in a product with A, n x n, the pattern of a
/// graph in CSR, as for metis_parts. Local. Throws shape_error if these are no parts of its vertices.
inline part_volumes volumes_of(std::span<const global_index> offsets, std::span<const global_index> columns,
                               std::span<const int> part_of, int parts) {
  detail::require_parts(offsets, part_of, parts);
  return detail::moving_parts(offsets, columns, {part_of.begin(), part_of.end()}, parts).volumes();
}

/// Parts of which none sends or receives more rows than the largest volume of those given, and mostly fewer:
/// single vertices move to parts of their neighbours, each move to where it lowers the largest volume or,
/// where that stays, the sum of the squares of all. No part becomes empty, and none has more vertices or
/// entries than the most before and `slack` allow. In the order of the vertices: the same on every machine.
/// A and part_of as for volumes_of. Local. Throws shape_error if these are no parts of its vertices.
inline std::vector<int> lower_largest_volume(std::span<const global_index> offsets,
                                             std::span<const global_index> columns, std::vector<int> part_of,
                                             int parts, const refinement& how = {}) {
  detail::require_parts(offsets, part_of, parts);
  const auto most = [&](const std::vector<global_index>& each) {
    const auto all = static_cast<double>(std::accumulate(each.begin(), each.end(), global_index{0}));
    return std::max(std::ranges::max(each), static_cast<global_index>(all / parts * (1 + how.slack)));
  };
  detail::moving_parts moving(offsets, columns, std::move(part_of), parts);
  const global_index most_vertices = most(moving.volumes().vertices),
                     most_entries = most(moving.volumes().entries);
  std::vector<char> marked(static_cast<std::size_t>(parts));
  bool moved = true;
  for (int pass = 0; pass < how.passes && moved; ++pass) {
    moved = false;
    for (std::size_t v = 0; v + 1 < offsets.size(); ++v)
      moved |= detail::improve(moving, v, most_vertices, most_entries, marked);
  }
  return moving.part_of();
}

}  // namespace partita::partition
