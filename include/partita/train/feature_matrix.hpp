// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The input of a model: the features of a graph, or an embedding in their place.

#include <memory>
#include <optional>

#include "partita/algebra/operand.hpp"
#include "partita/graph/features.hpp"
#include "partita/nn/embedding.hpp"
#include "partita/train/options.hpp"

namespace partita::nn {

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

/// The input of mini-batches: whole rows in the blocks `rows`, or columns cut over all ranks, of the features
/// stored as S, or of an embedding, which is of T. Local; no communication.
template <class T, class S = T, class Device>
dense<S, dynamic_layout, Device> batch_features(const mesh<Device>& m, const io::dataset& data,
                                                const training_options& options, const blocking& rows,
                                                bool by_columns) {
  if constexpr (std::is_same_v<S, T>)
    if (options.embedding > 0)
      return initial_embedding<T>(m, by_columns ? layout{{}, partition::every_axis} : layout(vertex_rows),
                                  rows, options.embedding, options.seed);                    // (n, w)
  if (by_columns) return graph::local_feature_columns<T, S>(m, data, options.raw_features);  // (n, f/p)
  return graph::features_of<T, S>(m, data, options.raw_features, rows,
                                  graph::vertices_here(m, rows));  // (n/p, f)
}

/// Whether matrices are filled, or only allocated because a model is asked what it moves.
enum class matrix_contents : std::uint8_t { filled, unread };

/// The input of a model on the whole graph: the features of a dataset, dense or sparse as stored, or an
/// embedding. Dense features are stored as training_options::storage says.
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
    if (!is_sparse && !learned_ && options.storage == operand_precision::bfloat16)
      store(m, data, options, rows, contents);
    else if (contents == matrix_contents::unread && !is_sparse)
      dense_.emplace(m, rows, blocking::even(width, m.shape(), nesting::cols));  // (n, f)
    else if (learned_)
      dense_.emplace(initial_embedding<T>(m, vertex_rows, rows, width, options.seed));
    else if (const std::size_t stored = is_sparse ? graph::stored_features(m, data, rows) : 0;
             is_sparse && contents == matrix_contents::unread && stored <= m.tile_entries())
      sparse_.emplace(m, rows, width, stored);
    else if (is_sparse)
      sparse_.emplace(
          graph::sparse_features_of<T>(m, data, options.raw_features, rows, graph::vertices_here(m, rows)));
    else
      dense_.emplace(
          graph::features_of<T>(m, data, options.raw_features, rows, graph::vertices_here(m, rows)));
    data.vertex_features.forget();
  }

  /// The model input; features are constant between epochs.
  algebra::operand<T, Device> input() const {
    if constexpr (is_storable)
      if (stored_) return {*stored_, true};
    return sparse_ ? algebra::operand<T, Device>(*sparse_, true, passes_)
                   : algebra::operand<T, Device>(*dense_, !learned_);
  }
  bool is_sparse() const { return sparse_.has_value(); }
  /// The embedding (n x w), or null for features.
  dense<T, vertex_rows, Device>* learned() { return learned_ ? &*dense_ : nullptr; }
  /// The features or the embedding where they are stored as S, T or base::bfloat16; null where they are not.
  template <class S = T>
  dense<S, vertex_rows, Device>* dense_rows() {
    if constexpr (std::is_same_v<S, T>)
      return dense_ ? &*dense_ : nullptr;
    else
      return stored_ ? &*stored_ : nullptr;
  }

 private:
  static constexpr bool is_storable = algebra::stored_as<base::bfloat16, T, Device>;

  void store(const mesh<Device>& m, const io::dataset& data, const training_options& options,
             const blocking& rows, matrix_contents contents) {
    if constexpr (!is_storable)
      throw error("features are stored as bfloat16 for float, on the host");
    else if (contents == matrix_contents::unread)
      stored_.emplace(m, rows, blocking::even(data.features, m.shape(), nesting::cols));
    else
      stored_.emplace(graph::features_of<T, base::bfloat16>(m, data, options.raw_features, rows,
                                                            graph::vertices_here(m, rows)));
  }

  bool learned_;
  std::optional<dense<T, vertex_rows, Device>> dense_;
  std::optional<dense<base::bfloat16, vertex_rows, Device>> stored_;
  std::optional<sparse_rows<T, Device>> sparse_;
  std::shared_ptr<typename algebra::operand<T, Device>::passes> passes_ =
      std::make_shared<typename algebra::operand<T, Device>::passes>();
};

}  // namespace partita::nn
