#pragma once
/// A labelled graph in host memory made into the distributed matrices that training needs.

#include <functional>
#include <vector>

#include "partita/io/labelled_graph.hpp"
#include "partita/nn/graph_operator.hpp"
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

/// Makes graph operators from all ranks' entries, as one policy cuts them; its type does not name the policy.
/// Every rank must call its functions. What travels: see distribute. A transpose is stored unless the matrix
/// is symmetric.
template <class T, class Place>
struct operator_maker {
  using entries = std::vector<triplet<double>>;

  std::function<graph_operator<T, Place>(global_index n, const entries&)> cut;  ///< for products
  std::function<graph_operator<T, Place>(global_index n, const entries&)>
      complete;  ///< rows cut alike, columns whole
};

namespace detail {

/// Operators of a policy whose layouts are values, and known to be multipliable.
template <class T, class Place>
operator_maker<T, Place> operators_cut_by(const mesh<Place>& m, cut sparse_layout, cut dense_layout) {
  const auto spread = [m, dense_layout](cut layout) {
    return [m, dense_layout, layout](global_index n, const std::vector<triplet<double>>& entries) {
      std::vector<triplet<T>> share;
      share.reserve(entries.size());
      for (const auto& e : entries) share.push_back({e.row, e.col, static_cast<T>(e.value)});
      const std::span<const triplet<T>> mine(share);
      const structure kind = is_symmetric(m.world(), mine) ? structure::symmetric : structure::general;
      const blocking vertices = blocking::even(n, m.shape(), nesting::rows);
      auto [forward, backward] = distribute_tiles(m, layout, vertices, vertices, mine, kind);
      return graph_operator<T, Place>(m, vertices, vertices, layout, dense_layout, std::move(forward),
                                      std::move(backward));
    };
  };
  return {spread(sparse_layout), spread({sparse_layout.rows, {}})};
}

}  // namespace detail

/// The operators of a policy.
template <class Policy, class T, class Place>
operator_maker<T, Place> operators_of(const mesh<Place>& m) {
  static_assert(multipliable<typename Policy::sparse_layout, typename Policy::dense_layout>,
                "the sparse and the dense layout of this policy cannot be multiplied");
  return detail::operators_cut_by<T>(m, Policy::sparse_layout::value, Policy::dense_layout::value);
}

/// The same of a named policy (partition/policies.hpp). Throws mesh_error when there is none of that name.
template <class T, class Place>
operator_maker<T, Place> operators_of(const mesh<Place>& m, const std::string& policy) {
  operator_maker<T, Place> made;
  visit_policy(policy, [&](auto named) { made = operators_of<decltype(named), T>(m); });
  return made;
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

/// The features as a model takes them.
template <class T, class Place>
input_features<T, Place> distribute_features(const mesh<Place>& m, const dataset& data, bool raw) {
  if (data.vertex_features.is_sparse()) return local_sparse_features<T>(m, data, raw);
  return local_features<T>(m, data, raw);
}

}  // namespace partita
