// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Orders of the vertices of a graph, by degree and by reverse Cuthill-McKee, the parts that blocks of an
/// order are, and parts of vertices that are streamed.

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

namespace detail {

/// The neighbours of vertex v, in list from begin[v] on: the pattern of A + A^T without its diagonal, an
/// entry as often as it is there, ascending.
template <class Index>
struct neighbours {
  std::vector<std::size_t> begin;
  std::vector<Index> list;

  std::span<Index> of(std::size_t v) { return std::span(list).subspan(begin[v], begin[v + 1] - begin[v]); }
  std::span<const Index> of(std::size_t v) const {
    return std::span(list).subspan(begin[v], begin[v + 1] - begin[v]);
  }
};

/// Calls visit(row, column) for every entry of A that is not on its diagonal.
void for_entries(std::span<const global_index> offsets, std::span<const global_index> columns, auto visit) {
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row)
    for (auto e = static_cast<std::size_t>(offsets[row]); e < static_cast<std::size_t>(offsets[row + 1]); ++e)
      if (const auto col = static_cast<std::size_t>(columns[e]); col != row) visit(row, col);
}

template <class Index>
neighbours<Index> neighbours_of(std::span<const global_index> offsets,
                                std::span<const global_index> columns) {
  const std::size_t n = offsets.size() - 1;
  neighbours<Index> both{std::vector<std::size_t>(n + 1, 0), {}};
  for_entries(offsets, columns,
              [&](std::size_t row, std::size_t col) { ++both.begin[row + 1], ++both.begin[col + 1]; });
  std::inclusive_scan(both.begin.begin(), both.begin.end(), both.begin.begin());
  both.list.resize(both.begin.back());
  std::vector<std::size_t> next(both.begin.begin(), both.begin.end() - 1);
  for_entries(offsets, columns, [&](std::size_t row, std::size_t col) {
    both.list[next[row]++] = static_cast<Index>(col);
    both.list[next[col]++] = static_cast<Index>(row);
  });
  for (std::size_t v = 0; v < n; ++v) std::ranges::sort(both.of(v));
  return both;
}

/// Appends the vertices that can be reached from `root` over vertices whose `seen` is not `mark`, breadth
/// first and neighbours by ascending degree, and marks them.
inline void append_reached(const neighbours<global_index>& graph, global_index root, int mark,
                           std::vector<int>& seen, std::vector<global_index>& order) {
  const auto degree = [&](global_index v) { return graph.of(static_cast<std::size_t>(v)).size(); };
  std::size_t next = order.size();
  order.push_back(root);
  seen[static_cast<std::size_t>(root)] = mark;
  for (; next < order.size(); ++next) {
    const std::size_t first = order.size();
    for (const global_index u : graph.of(static_cast<std::size_t>(order[next])))
      if (int& s = seen[static_cast<std::size_t>(u)]; s != mark) {
        s = mark;
        order.push_back(u);
      }
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
                     [&](global_index u, global_index v) { return degree(u) < degree(v); });
  }
}

}  // namespace detail

/// The vertices by descending degree, in-edges and out-edges together; equal ones in their present order.
/// A, n x n, is the pattern of a graph in CSR, as for metis_parts. Local.
inline std::vector<global_index> degree_order(std::span<const global_index> offsets,
                                              std::span<const global_index> columns) {
  std::vector<global_index> degree(offsets.size() - 1, 0), order(degree.size());
  detail::for_entries(offsets, columns,
                      [&](std::size_t row, std::size_t col) { ++degree[row], ++degree[col]; });
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](global_index u, global_index v) {
    return degree[static_cast<std::size_t>(u)] > degree[static_cast<std::size_t>(v)];
  });
  return order;
}

/// The vertices in an order in which neighbours are near one another: breadth first from a vertex at the rim
/// of each component, backwards. A, n x n, is the pattern of a graph in CSR, as for metis_parts; direction
/// and loops do not matter. Local. Source: George, Liu, "Computer Solution of Large Sparse Positive Definite
/// Systems", 1981.
inline std::vector<global_index> reverse_cuthill_mckee(std::span<const global_index> offsets,
                                                       std::span<const global_index> columns) {
  const auto graph = detail::neighbours_of<global_index>(offsets, columns);
  const std::size_t n = offsets.size() - 1;
  std::vector<global_index> by_degree(n), order;
  std::iota(by_degree.begin(), by_degree.end(), 0);
  std::ranges::stable_sort(by_degree, [&](global_index u, global_index v) {
    return graph.of(static_cast<std::size_t>(u)).size() < graph.of(static_cast<std::size_t>(v)).size();
  });
  order.reserve(n);
  std::vector<int> seen(n, 0);
  for (const global_index v : by_degree) {
    if (seen[static_cast<std::size_t>(v)] != 0) continue;
    const std::size_t done = order.size();
    detail::append_reached(graph, v, 1, seen, order);
    const global_index farthest = order.back();  // from v, so that it is at the rim
    order.resize(done);
    detail::append_reached(graph, farthest, 2, seen, order);
  }
  std::ranges::reverse(order);
  return order;
}

/// The part, in [0, parts), of each vertex where consecutive blocks of `order`, a permutation of them, are
/// the parts: even ones, of which the first are one vertex larger than the others. Local. Throws shape_error
/// unless there is a part.
inline std::vector<int> parts_in_order(std::span<const global_index> order, int parts) {
  if (parts < 1) base::throw_error<shape_error>({"vertices cannot be divided into ", parts, " parts"});
  std::vector<int> part_of(order.size());
  const auto n = static_cast<global_index>(order.size());
  for (int p = 0; p < parts; ++p) {
    const interval block = base::part_of(interval{0, n}, p, parts);
    for (global_index i = block.begin; i < block.end; ++i)
      part_of[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = p;
  }
  return part_of;
}

/// The part, in [0, parts), of each vertex, with few edges between parts, by a few passes over the vertices
/// in their order. v goes to the part with the largest
///
///     (neighbours of v in it) (1 - (vertices in it) / C),   C = 1.1 n / parts, rounded up,
///
/// and to the smallest part where that is 0 for all. The first pass knows where vertices before v are, others
/// also where the pass before has put the rest; no part gets more than C. A, n x n, is the pattern of a graph
/// in CSR, as for metis_parts; direction and loops do not matter. Local. Throws shape_error unless there is a
/// part.
/// Sources: Stanton, Kliot, KDD 2012 (linear deterministic greedy); Nishimura, Ugander, KDD 2013
/// (restreaming).
inline std::vector<int> streamed_parts(std::span<const global_index> offsets,
                                       std::span<const global_index> columns, int parts, int passes = 8) {
  if (parts < 1) base::throw_error<shape_error>({"vertices cannot be divided into ", parts, " parts"});
  const auto graph = detail::neighbours_of<global_index>(offsets, columns);
  const std::size_t n = offsets.size() - 1, count = static_cast<std::size_t>(parts);
  const double capacity = std::ceil(1.1 * static_cast<double>(n) / parts);
  std::vector<int> part_of(n, -1);
  std::vector<std::size_t> size(count), near(count, 0), touched;
  for (int pass = 0; pass < passes; ++pass) {
    std::ranges::fill(size, 0);
    for (std::size_t v = 0; v < n; ++v) {
      touched.clear();
      for (const global_index u : graph.of(v))
        if (const int p = part_of[static_cast<std::size_t>(u)];
            p >= 0 && near[static_cast<std::size_t>(p)]++ == 0)
          touched.push_back(static_cast<std::size_t>(p));
      double best = 0;
      std::size_t chosen = count;
      for (const std::size_t p : touched) {
        const double score =
            static_cast<double>(std::exchange(near[p], 0)) * (1 - static_cast<double>(size[p]) / capacity);
        if (score > best) best = score, chosen = p;
      }
      if (chosen == count) chosen = static_cast<std::size_t>(std::ranges::min_element(size) - size.begin());
      part_of[v] = static_cast<int>(chosen);
      ++size[chosen];
    }
  }
  return part_of;
}

}  // namespace partita::partition
