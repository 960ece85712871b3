// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The distributed matrices for training, from a labelled graph in host memory.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "partita/algebra/operand.hpp"
#include "partita/io/labelled_graph.hpp"
#include "partita/nn/embedding.hpp"
#include "partita/partition/policies.hpp"
#include "partita/train/edge_rows.hpp"
#include "partita/train/graph_entries.hpp"
#include "partita/train/model_table.hpp"
#include "partita/transfer/distribute.hpp"

namespace partita::nn {

/// This rank's entries of the adjacency matrix, one of equal parts of the edges; entry (v, u) is the weight
/// of the edge from u to v. Local.
inline std::vector<triplet<double>> edge_share(const io::dataset& data, const communicator& world) {
  const graph_entries<double> entries(world, data);
  return {entries.begin(), entries.end()};
}

/// The vertex blocking selected by `options`. Collective over the mesh. What travels: for balanced blocks, an
/// all-reduce of n elements. Throws shape_error when the given block sizes do not sum to the number of
/// vertices.
template <class Device>
blocking vertex_blocking(const mesh<Device>& m, const io::dataset& data, const training_options& options) {
  if (!options.block_sizes.empty()) {
    const blocking given = blocking::given(options.block_sizes, m.shape(), nesting::rows);
    if (given.size() != data.vertices)
      base::throw_error<shape_error>({data.name, ": the block sizes sum to ", given.size(),
                                      ", the graph has ", data.vertices, " vertices"});
    return given;
  }
  if (options.blocks == vertex_blocks::even) return blocking::even(data.vertices, m.shape(), nesting::rows);
  std::vector<global_index> entries(static_cast<std::size_t>(data.vertices), 0);
  transfer::for_entries(graph_entries<double>(m.world(), data).with_loops(1), 1,
                        [&](std::size_t, const auto& e) { ++entries[static_cast<std::size_t>(e.row)]; });
  m.world().all_reduce(entries);
  return blocking::balanced(entries, m.shape(), nesting::rows);
}

/// The matrices that models multiply with, for one dataset under one policy. Collective over the mesh. What
/// travels: see distribute. The dataset must outlive it. The constructor throws shape_error naming an edge
/// outside the graph, and error naming a weight that is not finite.
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
        loops_(options.loops),
        edges_(m.world(), data),
        symmetric_(options.symmetric) {
    if (!symmetric_ || !data.edge_weights.empty())
      transfer::require_entries({rows_.size(), rows_.size()}, graph_entries<T>(edges_),
                                transfer::host_threads(m.queue()));
  }

  /// Without weights and repeated edges, it stores no value for an entry, see transfer::scaled_pattern. A
  /// transpose is stored unless the matrix is symmetric, or `one_way`, or made of whole rows.
  matrix matrix_for(propagation_matrix of, bool one_way = false) const {
    if (of == propagation_matrix::whole_rows) return whole_rows();
    const comm::phase_scope phase(mesh_.ledger(), "distribute");
    const symmetry kind = one_way ? symmetry::one_way
                          : of != propagation_matrix::mean_normalized && adjacency_is_symmetric()
                              ? symmetry::symmetric
                              : symmetry::general;
    const matrix a = distribute(mesh_, policy_.sparse, rows_, rows_, entries_of(of), kind, policy_.dense,
                                transfer::sharing::trusted);
    edges_.forget();
    return a;
  }
  matrix gcn_normalized() const { return matrix_for(propagation_matrix::gcn_normalized); }
  /// The adjacency matrix with the policy's row blocking and unpartitioned columns, without a transpose.
  matrix whole_rows() const {
    const comm::phase_scope phase(mesh_.ledger(), "distribute");
    return distribute(mesh_, partita::partition::rows_of(policy_.sparse), rows_, rows_,
                      graph_entries<T>(edges_), symmetry::one_way, {}, transfer::sharing::trusted);
  }

 private:
  graph_entries<T> entries_of(propagation_matrix of) const {
    using scale = typename graph_entries<T>::scale;
    const auto inverse = [&](const graph_entries<double>& entries, auto invert) {
      auto sums = std::make_shared<std::vector<double>>(
          mesh_.reproducible()
              ? reproducible_row_sums(mesh_.world(), rows_.size(), entries)
              : row_sums(mesh_.world(), rows_.size(), entries, transfer::host_threads(mesh_.queue())));
      const auto infinite = std::ranges::find_if_not(*sums, [](double d) { return std::isfinite(d); });
      if (infinite != sums->end())
        base::throw_error<error>({"the weights of the edges to vertex ", infinite - sums->begin(),
                                  " have a sum that is not a finite number"});
      for (double& d : *sums) d = d > 0 ? invert(d) : 0;
      return scale(std::move(sums));
    };
    switch (of) {
      case propagation_matrix::gcn_normalized: {
        const auto there = loops_ == self_loops::once ? marked_loops(mesh_.world(), edges_.graph()) : nullptr;
        const graph_entries<double> a = edges_.with_loops(1, there);
        const scale d = inverse(a, [](double sum) { return 1 / std::sqrt(sum); });
        return graph_entries<T>(a).scaled(d, d).as_factors();
      }
      case propagation_matrix::mean_normalized: {
        const scale d = inverse(edges_, [](double sum) { return 1 / sum; });
        return graph_entries<T>(edges_).scaled(d, nullptr).as_factors();
      }
      case propagation_matrix::weighted_self:
        return graph_entries<T>(edges_).with_loops(1 + epsilon_).as_factors();
      case propagation_matrix::self_loops:
        return graph_entries<T>(edges_).with_loops(1).as_factors();
      case propagation_matrix::whole_rows:
        break;
    }
    return graph_entries<T>(edges_);
  }
  bool adjacency_is_symmetric() const {
    if (!symmetric_) symmetric_ = is_symmetric(mesh_.world(), edges_, transfer::host_threads(mesh_.queue()));
    return *symmetric_;
  }

  mesh<Device> mesh_;
  policy policy_;
  blocking rows_;
  double epsilon_;  ///< of gin
  self_loops loops_;
  graph_entries<double> edges_;
  mutable std::optional<bool> symmetric_;  ///< A = A^T
};

/// Columns of the model input: the width of the embedding, or the number of features. Throws input_error for
/// data without features where there is no embedding.
inline global_index input_width(const io::dataset& data, const training_options& options) {
  if (options.embedding == 0 && data.features == 0)
    base::throw_error<input_error>(
        {data.name, " has no features, and no embedding is to be learned in their place"});
  return options.embedding > 0 ? options.embedding : data.features;
}

/// The model options contained in the training options, for a model of this data.
inline model_options options_of_model(const training_options& options, const io::dataset& data) {
  model_options found = options_of_model(options);
  found.sparse_input = options.embedding == 0 && data.vertex_features.is_sparse();
  return found;
}

/// Whether features are divided by their row sums: unless `raw`, or an entry of any row is negative, since
/// sums that cancel would turn signs and magnify what is left.
inline bool divides_features(const io::dataset& data, bool raw) {
  return !raw && !data.vertex_features.has_negative();
}

/// The scale factor of vertex v's features: 1 / their sum, or 1 where features are not divided and where the
/// sum or its inverse is zero or not finite in T.
template <class T>
T feature_scale(const io::dataset& data, global_index v, bool raw) {
  if (!divides_features(data, raw)) return T(1);
  const T sum = static_cast<T>(data.vertex_features.row_sum(v)), scale = T(1) / sum;
  return std::isfinite(sum) && std::isfinite(scale) ? scale : T(1);
}

/// Throws input_error for scaled features of vertex v that are not finite in T.
template <class T>
void require_features(const io::dataset& data, global_index v, std::span<const T> values,
                      global_index first = 0) {
  const char* const type = sizeof(T) == 4 ? "f32" : "f64";
  for (std::size_t j = 0; j < values.size(); ++j)
    if (!std::isfinite(values[j]))
      base::throw_error<input_error>({data.name, ": feature ", first + static_cast<global_index>(j),
                                      " of vertex ", v, " is not a finite number in ", type});
}

/// The scaled features of these vertices, this rank's rows of a matrix (n x f) with row blocking `rows`.
/// Local; no communication.
template <class T, class Device>
dense<T, vertex_rows, Device> features_of(const mesh<Device>& m, const io::dataset& data, bool raw,
                                          const blocking& rows, const std::vector<global_index>& vertices) {
  const blocking columns = blocking::even(data.features, m.shape(), nesting::cols);
  dense<T, vertex_rows, Device> x(m, rows, columns);  // (n, f)
  const auto width = static_cast<std::size_t>(data.features);
  const std::size_t rows_at_a_time = std::max<std::size_t>(1, (std::size_t{1} << 18) / width);
  std::vector<T> values;
  for (std::size_t i = 0; i < vertices.size(); i += rows_at_a_time) {
    const std::size_t count = std::min(rows_at_a_time, vertices.size() - i);
    values.resize(count * width);
    for (std::size_t k = 0; k < count; ++k) {
      const std::span<T> row = std::span(values).subspan(k * width, width);
      data.vertex_features.fill_row(vertices[i + k], row);
      const T scale = feature_scale<T>(data, vertices[i + k], raw);
      for (T& value : row) value *= scale;
      require_features<T>(data, vertices[i + k], row);
    }
    copy(m.queue(), std::span<const T>(values), x.values().subspan(i * width, values.size()));
    if (i / rows_at_a_time % 64 == 63) data.vertex_features.forget();
  }
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
      require_features<T>(data, v, {&entries.back().value, 1}, feature);
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
  dense<T, dynamic_layout, Device> x(m, layout{{}, partition::every_axis},
                                     {data.vertices, data.features});  // (n, f)
  const interval mine = x.col_range();
  std::vector<T> row(static_cast<std::size_t>(data.features));
  std::vector<T> values;
  values.reserve(x.values().size());
  for (global_index v = 0; v < data.vertices; ++v) {
    data.vertex_features.fill_row(v, row);
    const T scale = feature_scale<T>(data, v, raw);
    for (T& value : row) value *= scale;
    require_features<T>(data, v, row);
    values.insert(values.end(), row.begin() + mine.begin, row.begin() + mine.end);
  }
  copy(m.queue(), std::span<const T>(values), x.values());
  return x;
}

/// The input of mini-batches: whole rows in the blocks `rows`, or columns cut over all ranks, of the features
/// or of an embedding. Local; no communication.
template <class T, class Device>
dense<T, dynamic_layout, Device> batch_features(const mesh<Device>& m, const io::dataset& data,
                                                const training_options& options, const blocking& rows,
                                                bool by_columns) {
  if (options.embedding > 0)
    return initial_embedding<T>(m, by_columns ? layout{{}, partition::every_axis} : layout(vertex_rows), rows,
                                options.embedding, options.seed);                  // (n, w)
  if (by_columns) return local_feature_columns<T>(m, data, options.raw_features);  // (n, f/p)
  return local_features<T>(m, data, options.raw_features, rows);                   // (n/p, f)
}

/// Whether matrices are filled, or only allocated because a model is asked what it moves.
enum class matrix_contents : std::uint8_t { filled, unread };

/// The input of a model on the whole graph: the features of a dataset, dense or sparse as stored, or an
/// embedding.
template <class T, class Device>
class feature_matrix {
 public:
  /// Throws input_error as input_width does.
  feature_matrix(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                 const blocking& rows, matrix_contents contents = matrix_contents::filled)
      : learned_(options.embedding > 0) {
    const comm::phase_scope phase(m.ledger(), "distribute");
    const global_index width = input_width(data, options);
    const bool is_sparse = !learned_ && data.vertex_features.is_sparse();
    if (contents == matrix_contents::unread && !is_sparse)
      dense_.emplace(m, rows, blocking::even(width, m.shape(), nesting::cols));  // (n, f)
    else if (learned_)
      dense_.emplace(initial_embedding<T>(m, vertex_rows, rows, width, options.seed));
    else if (const std::size_t stored = is_sparse ? stored_here(m, data, rows) : 0;
             is_sparse && contents == matrix_contents::unread && stored <= m.tile_entries())
      sparse_.emplace(m, rows, width, stored);
    else if (is_sparse)
      sparse_.emplace(local_sparse_features<T>(m, data, options.raw_features, rows));
    else
      dense_.emplace(local_features<T>(m, data, options.raw_features, rows));
    data.vertex_features.forget();
  }

  /// The model input; features are constant between epochs.
  algebra::operand<T, Device> input() const {
    return sparse_ ? algebra::operand<T, Device>(*sparse_, true, passes_)
                   : algebra::operand<T, Device>(*dense_, !learned_);
  }
  /// The embedding (n x w), or null for features.
  dense<T, vertex_rows, Device>* learned() { return learned_ ? &*dense_ : nullptr; }
  /// The features or the embedding, or null for sparse features.
  dense<T, vertex_rows, Device>* dense_rows() { return dense_ ? &*dense_ : nullptr; }

 private:
  static std::size_t stored_here(const mesh<Device>& m, const io::dataset& data, const blocking& rows) {
    std::size_t stored = 0;
    for (const global_index v : detail::vertices_here(m, rows))
      data.vertex_features.for_row(v, [&](global_index, auto) { ++stored; });
    return stored;
  }

  bool learned_;
  std::optional<dense<T, vertex_rows, Device>> dense_;
  std::optional<sparse_rows<T, Device>> sparse_;
  std::shared_ptr<local::entry_passes<Device>> passes_ = std::make_shared<local::entry_passes<Device>>();
};

}  // namespace partita::nn
