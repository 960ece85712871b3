// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The logits of a trained model, without labels, an optimiser or a transposed graph.

#include <optional>

#include "partita/train/models.hpp"
#include "partita/train/state_dict.hpp"

namespace partita::nn {

/// A model of a name on a whole graph, to be given parameters and asked for logits. Collective over the mesh,
/// with the same data on every rank: constructor and members.
template <class T, class Device>
class predictor {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// Uses those options that say what the model computes, and the classes, edges and features of the data.
  /// What travels: see distribute. Throws error for an unknown model, or a variant that it does not have, and
  /// input_error for data without features where the model learned no embedding.
  predictor(const mesh<Device>& m, const io::dataset& data, const training_options& options, const policy& p)
      : model_(make_model<T>(m, data, options, p, false)),
        features_(m, data, options, model_.row_blocking()) {}

  nn::parameters<T, Device>& parameters() { return model_.parameters(); }
  /// The embedding X (n x w); null where the data's features are the input.
  matrix* embedding() { return features_.learned(); }
  /// The logits (n x classes). Valid until the next call. What travels: the model's forward pass.
  const matrix& evaluate() { return model_.forward(features_.input(), {}); }
  /// As training::outputs.
  model_outputs<T> outputs(bool with_hidden) {
    const auto& logits = evaluate();  // (n, classes)
    return detail::outputs_of(logits, model_.hidden(), with_hidden);
  }
  /// The input of the last layer with parameters, after evaluate; see nn::model::hidden.
  const matrix* hidden() const { return model_.hidden(); }

 private:
  nn::model<T, Device> model_;
  feature_matrix<T, Device> features_;
};

}  // namespace partita::nn
