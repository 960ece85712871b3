// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Parts of a graph with few edges between them, by METIS. Needs libmetis.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <metis.h>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/index.hpp"
#include "partita/base/random.hpp"
#include "partita/partition/orders.hpp"

namespace partita::partition {

/// What the parts of a graph have about equally much of.
enum class part_balance : std::uint8_t {
  vertices,
  entries  ///< a vertex counts 1 + its entries in A: nearly equal work in a product with A
};

/// What METIS makes small.
enum class part_objective : std::uint8_t {
  cut,    ///< the edges between parts
  volume  ///< the rows of X that parts send each other in A X, if A is symmetric
};

struct metis_options {
  part_balance balance = part_balance::vertices;
  part_objective objective = part_objective::cut;
  std::uint64_t seed = 0;
};

namespace detail {

/// The undirected graph that METIS takes: without loops, each edge in the lists of both its ends.
struct metis_graph {
  std::vector<idx_t> offsets, neighbours, edge_weights, vertex_weights;
};

/// The pattern of A + A^T without its diagonal; an edge weighs as much as A has entries between its ends.
inline metis_graph metis_graph_of(std::span<const global_index> offsets,
                                  std::span<const global_index> columns, part_balance balance) {
  const std::size_t n = offsets.size() - 1;
  const auto both = neighbours_of<idx_t>(offsets, columns);
  metis_graph graph;
  graph.offsets = {0};
  for (std::size_t v = 0; v < n; ++v) {
    const std::span<const idx_t> list = both.of(v);
    for (std::size_t k = 0; k < list.size(); ++k)
      if (k > 0 && list[k] == list[k - 1]) {
        ++graph.edge_weights.back();
      } else {
        graph.neighbours.push_back(list[k]);
        graph.edge_weights.push_back(1);
      }
    graph.offsets.push_back(static_cast<idx_t>(graph.neighbours.size()));
    if (balance == part_balance::entries)
      graph.vertex_weights.push_back(static_cast<idx_t>(1 + offsets[v + 1] - offsets[v]));
  }
  return graph;
}

/// Throws shape_error unless this is the pattern of a square matrix that METIS can number.
inline void require_metis_graph(std::span<const global_index> offsets, std::span<const global_index> columns,
                                int parts) {
  if (parts < 1) base::throw_error<shape_error>({"a graph cannot be cut into ", parts, " parts"});
  if (offsets.empty()) throw shape_error("the offsets of n rows are n + 1 numbers, not none");
  const auto n = static_cast<global_index>(offsets.size()) - 1;
  const global_index entries = offsets.back();
  if (offsets.front() != 0 || !std::ranges::is_sorted(offsets))
    base::throw_error<shape_error>({"the offsets of ", n, " rows do not ascend from 0"});
  constexpr global_index most = std::numeric_limits<idx_t>::max();
  if (n >= most || entries > most / 2)
    base::throw_error<shape_error>({"METIS, here with indices of ", IDXTYPEWIDTH,
                                    " bits, cannot number a graph of ", n, " vertices and ", entries,
                                    " entries"});
  if (entries != static_cast<global_index>(columns.size()))
    base::throw_error<shape_error>(
        {"the offsets of ", n, " rows end at ", entries, ", but there are ", columns.size(), " entries"});
  for (const global_index u : columns)
    if (u < 0 || u >= n)
      base::throw_error<shape_error>({"a graph of ", n, " vertices has an edge from vertex ", u});
}

/// Throws error unless METIS is done.
inline void require_metis_done(int code, std::size_t vertices, std::size_t edges, int parts) {
  if (code == METIS_OK) return;
  base::throw_error<error>({"METIS could not cut a graph of ", vertices, " vertices and ", edges,
                            " undirected edges into ", parts, " parts: it returned ", code,
                            code == METIS_ERROR_INPUT    ? " (METIS_ERROR_INPUT)"
                            : code == METIS_ERROR_MEMORY ? " (METIS_ERROR_MEMORY)"
                                                         : " (METIS_ERROR)"});
}

}  // namespace detail

/// The part, in [0, parts), of each of n vertices; few edges run between parts, and parts are about equally
/// large; or little travels between them (metis_options). By recursive bisection for at most 8 parts, as
/// METIS advises, and where a part has fewer than 30 vertices, of which k-way partitioning may leave none;
/// k-way otherwise, and for the volume, which METIS makes small in that way only.
///
/// A, n x n, is the pattern of a graph in CSR: row v, the entries [offsets[v], offsets[v + 1]) of `columns`,
/// names the vertices with an edge to v. The graph may be directed and have loops; an entry counts as often
/// as it is there. Local, on one thread: METIS draws from the process's std::rand, so calls take turns. The
/// same graph, options and library give the same parts; over processes, let one rank compute and broadcast.
/// Throws shape_error if offsets and columns are no such pattern or are too many for METIS's indices, error
/// with METIS's return code if it gives up.
/// Source: Karypis, Kumar, SIAM J. Sci. Comput. 20(1), 1998.
inline std::vector<int> metis_parts(std::span<const global_index> offsets,
                                    std::span<const global_index> columns, int parts,
                                    const metis_options& options = {}) {
  detail::require_metis_graph(offsets, columns, parts);
  const std::size_t n = offsets.size() - 1;
  std::vector<int> result(n, 0);
  if (parts == 1 || n == 0) return result;
  if (n <= static_cast<std::size_t>(parts)) {
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  detail::metis_graph graph = detail::metis_graph_of(offsets, columns, options.balance);
  std::vector<idx_t> settings(METIS_NOPTIONS), found(n);
  METIS_SetDefaultOptions(settings.data());
  settings[METIS_OPTION_SEED] = static_cast<idx_t>(base::mixed_bits(options.seed) >> 33);  // not negative
  auto vertices = static_cast<idx_t>(n), weights = idx_t{1}, count = static_cast<idx_t>(parts),
       cut = idx_t{0};
  const bool volume = options.objective == part_objective::volume;
  if (volume) settings[METIS_OPTION_OBJTYPE] = METIS_OBJTYPE_VOL;
  const bool few = parts <= 8 || n / static_cast<std::size_t>(parts) < 30;
  const auto cut_graph = few && !volume ? METIS_PartGraphRecursive : METIS_PartGraphKway;
  static std::mutex one_at_a_time;
  const std::scoped_lock turn(one_at_a_time);
  const int code =
      cut_graph(&vertices, &weights, graph.offsets.data(), graph.neighbours.data(),
                graph.vertex_weights.empty() ? nullptr : graph.vertex_weights.data(), nullptr,
                graph.edge_weights.data(), &count, nullptr, nullptr, settings.data(), &cut, found.data());
  detail::require_metis_done(code, n, graph.neighbours.size() / 2, parts);
  std::ranges::transform(found, result.begin(), [](idx_t part) { return static_cast<int>(part); });
  return result;
}

}  // namespace partita::partition
