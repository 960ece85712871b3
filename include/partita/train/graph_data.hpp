#pragma once
/// A labelled graph in host memory made into the distributed matrices that training needs.

#include <vector>

#include "partita/algebra/spmm.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/nn/input.hpp"
#include "partita/nn/normalization.hpp"
#include "partita/partition/policies.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita {

/// This rank's part of the adjacency matrix: every size-th edge; entry (v, u) is the weight of the edge from
/// u to v.
inline std::vector<triplet<double>> edge_share(const dataset& data, const communicator& world) {
  std::vector<triplet<double>> share;
  const auto step = static_cast<std::size_t>(world.size());
  for (std::size_t e = static_cast<std::size_t>(world.rank()); e < data.edges.size(); e += step)
    share.push_back(
        {data.edges[e].target, data.edges[e].source, data.edge_weights.empty() ? 1.0 : data.edge_weights[e]});
  return share;
}

namespace detail {

template <class T>
std::vector<triplet<T>> entries_as(const std::vector<triplet<double>>& entries) {
  std::vector<triplet<T>> converted;
  converted.reserve(entries.size());
  for (const auto& e : entries) converted.push_back({e.row, e.col, static_cast<T>(e.value)});
  return converted;
}

}  // namespace detail

/// The n x n matrix of all ranks' entries as the policy multiplies it. Every rank must call. What travels:
/// see distribute. A transpose is stored unless the matrix is symmetric.
template <class T, class Place>
sparse<T, dynamic_layout, Place> distribute_graph(const mesh<Place>& m, const policy& p, global_index n,
                                                  const std::vector<triplet<double>>& entries) {
  const std::vector<triplet<T>> mine = detail::entries_as<T>(entries);
  const bool symmetric = is_symmetric(m.world(), std::span<const triplet<T>>(mine));
  return distribute(m, p, {n, n}, mine, symmetric ? structure::symmetric : structure::general);
}

/// The same with rows cut as the policy cuts them and columns whole; it has no transpose.
template <class T, class Place>
sparse<T, dynamic_layout, Place> distribute_rows(const mesh<Place>& m, const policy& p, global_index n,
                                                 const std::vector<triplet<double>>& entries) {
  return distribute(m, rows_of(p.sparse), {n, n}, detail::entries_as<T>(entries), structure::one_way);
}

/// What the features of vertex v are multiplied with: one over their sum, unless `raw` or the sum is zero.
template <class T>
T feature_scale(const dataset& data, global_index v, bool raw) {
  const T sum = static_cast<T>(data.vertex_features.row_sum(v));
  return raw || sum == T(0) ? T(1) : T(1) / sum;
}

/// The scaled features of this rank's vertices. Nothing travels.
template <class T, class Place>
dense<T, vertex_rows, Place> local_features(const mesh<Place>& m, const dataset& data, bool raw) {
  dense<T, vertex_rows, Place> x(m, extent{data.vertices, data.features});
  const interval rows = x.row_range();
  std::vector<float> row(static_cast<std::size_t>(data.features));
  std::vector<T> values;
  values.reserve(x.values().size());
  for (global_index v = rows.begin; v < rows.end; ++v) {
    data.vertex_features.fill_row(v, row);
    const T scale = feature_scale<T>(data, v, raw);
    for (float value : row) values.push_back(static_cast<T>(value) * scale);
  }
  copy(m.queue(), std::span<const T>(values), x.values());
  return x;
}

/// The same, of a dataset whose features are stored in compressed rows.
template <class T, class Place>
sparse_features<T, Place> local_sparse_features(const mesh<Place>& m, const dataset& data, bool raw) {
  const blocking rows = blocking::even(data.vertices, m.shape(), nesting::rows);
  const interval mine = rows.block(vertex_rows.rows, m.at());
  const csr_array& table = data.vertex_features.sparse;
  std::vector<triplet<T>> entries;
  for (global_index v = mine.begin; v < mine.end; ++v) {
    const T scale = feature_scale<T>(data, v, raw);
    for (auto e = static_cast<std::size_t>(table.offsets[static_cast<std::size_t>(v)]);
         e < static_cast<std::size_t>(table.offsets[static_cast<std::size_t>(v) + 1]); ++e)
      entries.push_back({v, table.columns[e], static_cast<T>(table.values[e]) * scale});
  }
  return {m, rows, data.features, std::move(entries)};
}

/// The features as a model takes them.
template <class T, class Place>
input_features<T, Place> distribute_features(const mesh<Place>& m, const dataset& data, bool raw) {
  if (data.vertex_features.is_sparse()) return local_sparse_features<T>(m, data, raw);
  return local_features<T>(m, data, raw);
}

}  // namespace partita
