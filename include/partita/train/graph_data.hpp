#pragma once
/// A labelled graph in host memory made into the distributed matrices that training needs.

#include <vector>

#include "partita/io/labelled_graph.hpp"
#include "partita/nn/loss.hpp"
#include "partita/nn/normalization.hpp"
#include "partita/nn/sparse_features.hpp"
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

/// The normalised adjacency matrix of `data` under a policy; its transpose is stored unless it is symmetric.
/// Every rank must call, with the same data. What travels: see gcn_normalized and distribute.
template <class Policy, class T, class Place>
sparse<T, typename Policy::sparse_layout, Place> distribute_adjacency(const mesh<Place>& m,
                                                                      const dataset& data) {
  const auto share = edge_share(data, m.world());
  const auto entries = gcn_normalized<T>(m.world(), data.vertices, std::span<const triplet<double>>(share));
  const bool symmetric = is_symmetric(m.world(), std::span<const triplet<T>>(entries));
  return distribute<typename Policy::sparse_layout, T>(m, {data.vertices, data.vertices},
                                                       std::span<const triplet<T>>(entries),
                                                       symmetric ? structure::symmetric : structure::general);
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
  const interval mine = rows.block(vertex_rows::value.rows, m.at());
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

/// The labels of the vertices in one part of the split. Every rank must call.
template <class Place>
vertex_labels<Place> labels_of(const mesh<Place>& m, const dataset& data, split_part part) {
  const blocking rows = blocking::even(data.vertices, m.shape(), nesting::rows);
  return vertex_labels<Place>(m, rows, [&](global_index v) {
    const auto i = static_cast<std::size_t>(v);
    return !data.multi_label && data.split[i] == static_cast<std::uint8_t>(part) ? data.labels[i] : -1;
  });
}

}  // namespace partita
