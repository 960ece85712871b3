// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a pipeline is made of: its stages' layers and the graph that they read.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "partita/sampling/graph.hpp"
#include "partita/train/chunks.hpp"
#include "partita/train/layer_rates.hpp"
#include "partita/train/model_outline.hpp"

namespace partita::nn {

/// Throws error for options that no pipeline can have.
inline void require_pipeline(const training_options& options) {
  const pipeline_options& how = options.pipeline;
  if (options.embedding > 0) throw error("an embedding cannot be learned over stages");
  if (options.mini_batch.batch > 0) throw error("mini-batches do not pass through stages");
  if (options.recompute == activation_checkpointing::always)
    throw error("activation checkpointing is not available with stages");
  if (how.stages < 1) base::throw_error<error>({"a pipeline has at least one stage, not ", how.stages});
  if (how.chunks < 0) base::throw_error<error>({"a pipeline has at least one chunk, not ", how.chunks});
  if (how.window < 1) base::throw_error<error>({"history is kept for at least one epoch, not ", how.window});
  if (how.guard < 0) base::throw_error<error>({"the guard interval must be 0 or positive, not ", how.guard});
}

/// The first layer of each stage, and the number of layers. Collective over the mesh. What travels: two
/// numbers where costs are measured. Throws shape_error where there are fewer layers than stages, or the
/// given numbers do not fit.
template <class T, class Device>
std::vector<std::size_t> stage_cuts(const mesh<Device>& m, const model_outline& outline,
                                    const io::dataset& data, const pipeline_options& how) {
  if (!how.layers.empty()) return given_stages(how.layers, outline.layers.size(), how.stages);
  global_index width = outline.output_width;
  for (const auto& l : outline.layers) width = std::max(width, l.input_width);
  const layer_rates rates = how.measured ? measured_rates<T>(m, data, width) : layer_rates{};
  return balanced_stages(layer_costs(outline, data_size::of(data), rates), how.stages);
}

/// The matrix that the model multiplies with, cut by the rows of the chunks. Collective over the mesh. What
/// travels: see distribute.
template <class T, class Device>
sampling::graph<T> graph_in_chunks(const mesh<Device>& m, const chunked_vertices& chunks,
                                   training_options options) {
  options.block_sizes.clear();
  for (int r = 0; r < m.size(); ++r)
    options.block_sizes.push_back(chunks.rows().block(vertex_rows.rows, m.shape().at(r)).size());
  const mesh<Device> by_rows(m.world(), {m.size(), 1, 1}, m.queue());
  const graph::propagation_matrix of = find_model<T, Device>(options).multiplies_with;
  return sampling::graph<T>(
      graph::propagation_matrices<T, Device>(by_rows, chunks.data(), options, row_1d).matrix_for(of, true));
}

}  // namespace partita::nn
