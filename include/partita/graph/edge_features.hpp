// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Edge matrices from rows of data: of a dataset's edge_features, or given in memory.

#include <span>
#include <vector>

#include "partita/algebra/edge_matrix.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/transfer/edge_columns.hpp"

namespace partita::graph {

using transfer::repeated_edges;

/// E (entries x k) over A's pattern, where A(v, u) is the edge from u to v: its rows are those of the edges,
/// `rows` (edges.size() x k, row-major). Each edge is on one rank, no matter which. Edges that come more than
/// once have the sum of their rows, or are refused; entries of A without an edge, such as loops that a model
/// adds, have rows of 0.
///
/// Collective over the mesh. What travels: each edge k times, as one index and one value, to the ranks that
/// hold it. Throws shape_error when the sizes disagree or an edge is outside the graph; error naming a value
/// that is not finite, an edge that A has no entry for, and one that comes twice where that is refused.
template <class T, layout L, class Device>
edge_matrix<T, Device> edge_features(const sparse<T, L, Device>& a, std::span<const io::edge> edges,
                                     std::type_identity_t<std::span<const T>> rows, local_index columns,
                                     repeated_edges repeated = repeated_edges::refused) {
  const auto k = static_cast<std::size_t>(columns);
  if (rows.size() != edges.size() * k)
    base::throw_error<shape_error>({"rows of ", columns, " features for ", edges.size(),
                                    " edges cannot be made of ", rows.size(), " values"});
  edge_matrix<T, Device> e(a.stored_for("edge_features"), columns);
  const auto of_column = [&](local_index j) {
    std::vector<triplet<T>> column;
    column.reserve(edges.size());
    for (std::size_t i = 0; i < edges.size(); ++i)
      column.push_back({edges[i].target, edges[i].source, rows[i * k + static_cast<std::size_t>(j)]});
    return column;
  };
  const std::vector<T> values = transfer::values_of_columns(e.pattern(), columns, of_column, repeated);
  copy(a.mesh().queue(), std::span<const T>(values), e.values());
  return e;
}
/// The same for the edges and edge_features of a dataset that all ranks have: each reads its share.
template <class T, layout L, class Device>
edge_matrix<T, Device> edge_features(const sparse<T, L, Device>& a, const io::dataset& data,
                                     repeated_edges repeated = repeated_edges::refused) {
  const auto count = static_cast<global_index>(data.edges.size());
  if (data.edge_features.rows != count || data.edge_features.cols == 0)
    base::throw_error<shape_error>({data.name, ": ", count, " edges have features of shape ",
                                    matrix_shape{data.edge_features.rows, data.edge_features.cols}});
  const local_index k = base::to_local(data.edge_features.cols, "the features of an edge");
  const interval mine = comm::share_of(count, a.mesh().rank(), a.mesh().size());
  std::vector<io::edge> edges;
  std::vector<T> rows(static_cast<std::size_t>(mine.size() * data.edge_features.cols));
  for (global_index i = mine.begin; i < mine.end; ++i) {
    data.edge_features.fill_row(
        i, std::span(rows).subspan(edges.size() * static_cast<std::size_t>(k), static_cast<std::size_t>(k)));
    edges.push_back(data.edges[static_cast<std::size_t>(i)]);
  }
  data.edge_features.forget();
  data.edges.forget();
  return edge_features(a, std::span<const io::edge>(edges), rows, k, repeated);
}

}  // namespace partita::graph
