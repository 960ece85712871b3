// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What one epoch of a deep network moves when its graph is cut over ranks, when its layers are cut over
/// stages, and when both are, in closed form; and how long stages are idle.

#include <cstddef>
#include <span>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/edge.hpp"
#include "partita/partition/blocking.hpp"

namespace bench {

using partita::axis_set, partita::blocking, partita::global_index, partita::shape_error;

/// A network of equally wide layers on a graph, as far as traffic depends on it.
struct layered_network {
  global_index vertices = 0;    ///< n
  global_index width = 0;       ///< H: columns of what each layer aggregates, and of what it hands on
  global_index layers = 0;      ///< L
  global_index parameters = 0;  ///< |W|
  int shared = 0;  ///< s: matrices of width H that travel from stage to stage beside it, such as H_0 of gcnii
};

/// Words that cross the boundaries between stages in an epoch, over all ranks:
///
///     2 n (sum of widths)
///
/// a row of the boundary's width forward, one of its gradient backward, for each vertex. `widths`: of each
/// boundary, what is shared included; they may differ. Local.
constexpr global_index boundary_words(global_index vertices, std::span<const global_index> widths) {
  global_index columns = 0;
  for (const global_index width : widths) columns += width;
  return 2 * vertices * columns;
}

/// Words of the rows that ranks need of each other to aggregate once in each layer, over all ranks:
///
///     M (sum of widths)
///
/// `mirrors`: M, see mirror_pairs; forward of A, backward of A^T, the same where A is symmetric. `widths`: of
/// what each layer aggregates. Local.
constexpr global_index halo_words(global_index mirrors, std::span<const global_index> widths) {
  global_index columns = 0;
  for (const global_index width : widths) columns += width;
  return mirrors * columns;
}

/// Words of the sum of gradients of so many parameters, over all ranks: 2 (w - 1) |W| for w replicas. Local.
constexpr global_index gradient_words(global_index parameters, int replicas) {
  return 2 * (replicas - 1) * parameters;
}

/// Words received in an epoch, over all ranks, with S stages of w ways each, cut so that M rows are needed of
/// others in an aggregation:
///
///     2 (S - 1) n H (1 + s) + 2 L M H + 2 (w - 1) |W|
///
/// The graph is symmetric; each weight is on the ways of one stage alone. Local. Throws shape_error unless
/// there is a stage and a way, and for more stages than layers. Source: GNNPipe (arXiv 2308.10087), Mithril's
/// logs.
inline global_index hybrid_words(const layered_network& net, int stages, int ways, global_index mirrors) {
  if (stages < 1 || ways < 1)
    partita::base::throw_error<shape_error>(
        {stages, " stages of ", ways, " ways; there is at least one of each"});
  if (stages > net.layers)
    partita::base::throw_error<shape_error>({net.layers, " layers cannot be cut into ", stages, " stages"});
  const std::vector<global_index> boundaries(static_cast<std::size_t>(stages) - 1,
                                             net.width * (1 + net.shared));
  const std::vector<global_index> aggregated(static_cast<std::size_t>(net.layers), net.width);
  return boundary_words(net.vertices, boundaries) + 2 * halo_words(mirrors, aggregated) +
         gradient_words(net.parameters, ways);
}

/// The same with the graph alone cut, over P ways: 2 L M H + 2 (P - 1) |W|.
inline global_index graph_parallel_words(const layered_network& net, int ways, global_index mirrors) {
  return hybrid_words(net, 1, ways, mirrors);
}

/// The same with the layers alone cut, over S stages: 2 (S - 1) n H (1 + s), whatever L and the graph are.
inline global_index pipeline_words(const layered_network& net, int stages) {
  return hybrid_words(net, stages, 1, 0);
}

/// The number of layers from which on S stages move less than S ways, gradients of parameters apart:
///
///     L* = (S - 1) n (1 + s) / M
///
/// Infinite where no row is needed of others. Local.
inline double break_even_layers(const layered_network& net, int stages, global_index mirrors) {
  return static_cast<double>((stages - 1) * net.vertices * (1 + net.shared)) / static_cast<double>(mirrors);
}

/// So many words as bytes of elements of type T.
template <class T>
constexpr global_index bytes_of(global_index words) {
  return words * static_cast<global_index>(sizeof(T));
}

/// M, the pairs of a vertex and a way that needs its row and does not have it: vertex u counts for way r once
/// if r has the target of an edge of u, and not u. Twice as many rows, forward and backward, travel in each
/// layer if the graph is symmetric; of a directed one, M of the reversed edges do so backward. `parts` (n):
/// the way that has each vertex. Local. Throws shape_error for a vertex without a part, and a part that is no
/// way.
inline global_index mirror_pairs(std::span<const partita::io::edge> edges, std::span<const int> parts,
                                 int ways) {
  for (const int part : parts)
    if (part < 0 || part >= ways)
      partita::base::throw_error<shape_error>({"part ", part, " is none of ", ways, " ways"});
  const auto part_of = [&](global_index v) {
    if (v < 0 || v >= static_cast<global_index>(parts.size()))
      partita::base::throw_error<shape_error>(
          {"vertex ", v, " is none of ", parts.size(), " that have parts"});
    return static_cast<std::size_t>(parts[static_cast<std::size_t>(v)]);
  };
  std::vector<bool> needed(parts.size() * static_cast<std::size_t>(ways), false);  // (n, ways)
  global_index pairs = 0;
  for (const partita::io::edge& e : edges) {
    const std::size_t here = part_of(e.source), there = part_of(e.target);
    if (here == there) continue;
    const auto pair = static_cast<std::size_t>(e.source) * static_cast<std::size_t>(ways) + there;
    if (needed[pair]) continue;
    needed[pair] = true;
    ++pairs;
  }
  return pairs;
}

/// The same where the axes of `by` cut the vertices.
inline global_index mirror_pairs(std::span<const partita::io::edge> edges, const blocking& rows,
                                 axis_set by) {
  std::vector<int> parts(static_cast<std::size_t>(rows.size()));
  for (global_index v = 0; v < rows.size(); ++v)
    parts[static_cast<std::size_t>(v)] = static_cast<int>(rows.owner(by, v));
  return mirror_pairs(edges, parts, rows.shape().size(by));
}

/// The share of an epoch in which a stage is idle, for S equally fast stages, K equally large chunks and no
/// time for messages: (S - 1) / (K + S - 1). Local.
constexpr double pipeline_bubble(int stages, int chunks) {
  return static_cast<double>(stages - 1) / static_cast<double>(chunks + stages - 1);
}

/// The same if every stage runs each layer for all chunks before the next one, and so begins when the one
/// before has finished: (S - 1) / S. Local.
constexpr double layerwise_bubble(int stages) {
  return static_cast<double>(stages - 1) / static_cast<double>(stages);
}

}  // namespace bench
