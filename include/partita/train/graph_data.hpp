// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The distributed matrices for training, from a labelled graph in host memory.

#include <numeric>
#include <vector>

#include "partita/algebra/operand.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/nn/embedding.hpp"
#include "partita/nn/normalization.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/options.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::nn {

/// This rank's entries of the adjacency matrix: every size-th edge; entry (v, u) is the weight of the edge
/// from u to v.
inline std::vector<triplet<double>> edge_share(const io::dataset& data, const communicator& world) {
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

/// The vertex blocking selected by `options`. Local; no communication. Throws shape_error when the given
/// block sizes do not sum to the number of vertices.
template <class Device>
blocking vertex_blocking(const mesh<Device>& m, const io::dataset& data, const training_options& options) {
  if (!options.block_sizes.empty()) {
    const blocking given = blocking::given(options.block_sizes, m.shape(), nesting::rows);
    if (given.size() != data.vertices)
      throw_error<shape_error>({data.name, ": the block sizes sum to ", given.size(), ", the graph has ",
                                data.vertices, " vertices"});
    return given;
  }
  if (options.blocks == vertex_blocks::even) return blocking::even(data.vertices, m.shape(), nesting::rows);
  std::vector<global_index> entries(static_cast<std::size_t>(data.vertices), 1);
  for (const auto& e : data.edges) ++entries[static_cast<std::size_t>(e.target)];
  return blocking::balanced(entries, m.shape(), nesting::rows);
}

/// The matrices that models multiply with.
enum class propagation_matrix : std::uint8_t {
  gcn_normalized,   ///< D^-1/2 (A + I) D^-1/2
  mean_normalized,  ///< the mean over in-neighbours
  weighted_self,    ///< A + (1 + epsilon) I
  self_loops,       ///< A + I
  whole_rows        ///< A, its columns not cut
};

/// The matrices that models multiply with, for one dataset under one policy. Collective over the mesh. What
/// travels: see distribute.
template <class T, class Device>
class graph_operators {
 public:
  using matrix = sparse<T, dynamic_layout, Device>;

  graph_operators(const partita::mesh<Device>& m, const io::dataset& data, const training_options& options,
                  const policy& p)
      : mesh_(m),
        policy_(p),
        rows_(vertex_blocking(m, data, options)),
        epsilon_(options.epsilon),
        adjacency_(edge_share(data, m.world())) {}

  /// A transpose is stored unless the matrix is symmetric, or `one_way`, or made of whole rows.
  matrix matrix_for(propagation_matrix of, bool one_way = false) const {
    const communicator& world = mesh_.world();
    switch (of) {
      case propagation_matrix::gcn_normalized:
        return made(nn::gcn_normalized(world, rows_.size(), adjacency_), one_way);
      case propagation_matrix::mean_normalized:
        return made(nn::mean_normalized(world, rows_.size(), adjacency_), one_way);
      case propagation_matrix::weighted_self:
        return made(nn::with_self_loops(world, rows_.size(), adjacency_, 1 + epsilon_), one_way);
      case propagation_matrix::self_loops:
        return made(nn::with_self_loops(world, rows_.size(), adjacency_, 1), one_way);
      case propagation_matrix::whole_rows:
        break;
    }
    return whole_rows();
  }
  matrix gcn_normalized() const { return matrix_for(propagation_matrix::gcn_normalized); }
  /// The adjacency matrix with the policy's row blocking and unpartitioned columns, without a transpose.
  matrix whole_rows() const {
    return distribute(mesh_, partita::rows_of(policy_.sparse), rows_, rows_,
                      detail::entries_as<T>(adjacency_), symmetry::one_way, {},
                      transfer::sharing::overlapping);
  }

 private:
  matrix made(const std::vector<triplet<double>>& entries, bool one_way) const {
    const std::vector<triplet<T>> mine = detail::entries_as<T>(entries);
    const bool symmetric = !one_way && is_symmetric(mesh_.world(), std::span<const triplet<T>>(mine));
    return distribute(mesh_, policy_.sparse, rows_, rows_, mine,
                      one_way     ? symmetry::one_way
                      : symmetric ? symmetry::symmetric
                                  : symmetry::general,
                      policy_.dense, transfer::sharing::overlapping);
  }

  mesh<Device> mesh_;
  policy policy_;
  blocking rows_;
  double epsilon_;  ///< of gin
  std::vector<triplet<double>> adjacency_;
};

/// Columns of the model input: the width of the embedding, or the number of features. Throws input_error for
/// data without features where there is no embedding.
inline global_index input_width(const io::dataset& data, const training_options& options) {
  if (options.embedding == 0 && data.features == 0)
    throw_error<input_error>(
        {data.name, " has no features, and no embedding is to be learned in their place"});
  return options.embedding > 0 ? options.embedding : data.features;
}

/// The scale factor of vertex v's features: 1 / their sum, or 1 if `raw` or the sum is zero.
template <class T>
T feature_scale(const io::dataset& data, global_index v, bool raw) {
  const T sum = static_cast<T>(data.vertex_features.row_sum(v));
  return raw || sum == T(0) ? T(1) : T(1) / sum;
}

/// The scaled features of these vertices, this rank's rows of a matrix (n x f) with row blocking `rows`.
/// Local; no communication.
template <class T, class Device>
dense<T, vertex_rows, Device> features_of(const mesh<Device>& m, const io::dataset& data, bool raw,
                                          const blocking& rows, const std::vector<global_index>& vertices) {
  const blocking columns = blocking::even(data.features, m.shape(), nesting::cols);
  dense<T, vertex_rows, Device> x(m, rows, columns);  // (n, f)
  std::vector<T> row(static_cast<std::size_t>(data.features));
  std::vector<T> values;
  values.reserve(x.values().size());
  for (const global_index v : vertices) {
    data.vertex_features.fill_row(v, row);
    const T scale = feature_scale<T>(data, v, raw);
    for (const T value : row) values.push_back(value * scale);
  }
  copy(m.queue(), std::span<const T>(values), x.values());
  return x;
}
/// As above, for a dataset with CSR features.
template <class T, class Device>
sparse_rows<T, Device> sparse_features_of(const mesh<Device>& m, const io::dataset& data, bool raw,
                                          const blocking& rows, const std::vector<global_index>& vertices) {
  global_index row = rows.block(vertex_rows.rows, m.at()).begin;
  std::vector<triplet<T>> entries;
  for (const global_index v : vertices) {
    const T scale = feature_scale<T>(data, v, raw);
    data.vertex_features.for_row(v, [&](global_index feature, auto value) {
      entries.push_back({row, feature, static_cast<T>(value) * scale});
    });
    ++row;
  }
  return {m, rows, data.features, std::move(entries)};
}

namespace detail {

template <class Device>
std::vector<global_index> vertices_here(const mesh<Device>& m, const blocking& rows) {
  const interval mine = rows.block(vertex_rows.rows, m.at());
  std::vector<global_index> vertices(static_cast<std::size_t>(mine.size()));
  std::iota(vertices.begin(), vertices.end(), mine.begin);
  return vertices;
}

}  // namespace detail

/// The scaled features of this rank's vertices (n x f), with row blocking `rows`. Local; no communication.
template <class T, class Device>
dense<T, vertex_rows, Device> local_features(const mesh<Device>& m, const io::dataset& data, bool raw,
                                             const blocking& rows) {
  return features_of<T>(m, data, raw, rows, detail::vertices_here(m, rows));
}
template <class T, class Device>
dense<T, vertex_rows, Device> local_features(const mesh<Device>& m, const io::dataset& data, bool raw) {
  return local_features<T>(m, data, raw, blocking::even(data.vertices, m.shape(), nesting::rows));
}
/// As above, for a dataset with CSR features.
template <class T, class Device>
sparse_rows<T, Device> local_sparse_features(const mesh<Device>& m, const io::dataset& data, bool raw,
                                             const blocking& rows) {
  return sparse_features_of<T>(m, data, raw, rows, detail::vertices_here(m, rows));
}

/// This rank's columns of the scaled features of all vertices (n x f), cut over all ranks. Local; no
/// communication.
template <class T, class Device>
dense<T, dynamic_layout, Device> local_feature_columns(const mesh<Device>& m, const io::dataset& data,
                                                       bool raw) {
  dense<T, dynamic_layout, Device> x(m, layout{{}, every_axis}, {data.vertices, data.features});  // (n, f)
  const interval mine = x.col_range();
  std::vector<T> row(static_cast<std::size_t>(data.features));
  std::vector<T> values;
  values.reserve(x.values().size());
  for (global_index v = 0; v < data.vertices; ++v) {
    data.vertex_features.fill_row(v, row);
    const T scale = feature_scale<T>(data, v, raw);
    for (global_index j = mine.begin; j < mine.end; ++j)
      values.push_back(row[static_cast<std::size_t>(j)] * scale);
  }
  copy(m.queue(), std::span<const T>(values), x.values());
  return x;
}

/// The input of a model on the whole graph: the features of a dataset, dense or sparse as stored, or an
/// embedding.
template <class T, class Device>
class feature_matrix {
 public:
  /// Throws input_error as input_width does.
  feature_matrix(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                 const blocking& rows)
      : learned_(options.embedding > 0) {
    const global_index width = input_width(data, options);
    if (learned_)
      dense_.emplace(initial_embedding<T>(m, vertex_rows, rows, width, options.seed));
    else if (data.vertex_features.is_sparse())
      sparse_.emplace(local_sparse_features<T>(m, data, options.raw_features, rows));
    else
      dense_.emplace(local_features<T>(m, data, options.raw_features, rows));
  }

  /// The model input; features are constant between epochs.
  operand<T, Device> input() const {
    return sparse_ ? operand<T, Device>(*sparse_, true) : operand<T, Device>(*dense_, !learned_);
  }
  /// The embedding (n x w), or null for features.
  dense<T, vertex_rows, Device>* learned() { return learned_ ? &*dense_ : nullptr; }
  /// The features or the embedding, or null for sparse features.
  dense<T, vertex_rows, Device>* dense_rows() { return dense_ ? &*dense_ : nullptr; }

 private:
  bool learned_;
  std::optional<dense<T, vertex_rows, Device>> dense_;
  std::optional<sparse_rows<T, Device>> sparse_;
};

}  // namespace partita::nn
