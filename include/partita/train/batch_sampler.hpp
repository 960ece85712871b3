// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The graph and the sampler of mini-batches.

#include <algorithm>
#include <memory>
#include <vector>

#include "partita/graph/edge_features.hpp"
#include "partita/graph/propagation_matrices.hpp"
#include "partita/graph/relation_matrices.hpp"
#include "partita/sampling/layer_sampler.hpp"
#include "partita/sampling/neighbour_sampler.hpp"
#include "partita/sampling/walk_sampler.hpp"
#include "partita/train/model_table.hpp"

namespace partita::nn {

/// The graph that neighbours are sampled from: the matrix that the model multiplies with, whole on every rank
/// or cut by rows; of relations all of theirs, above each other; an adjacency matrix with a 1 for each entry.
/// `vectors`: with those of edges, where the data have some. Collective over the mesh. What travels: see
/// distribute and graph::edge_features.
template <class T, class Device>
sampling::graph<T> sampled_graph(const mesh<Device>& m, const io::dataset& data,
                                 const training_options& options, graph::propagation_matrix of,
                                 bool vectors = false) {
  const bool cut = options.mini_batch.cut_graph;
  const communicator ranks = m.world().split(0, m.rank(), "sampling");  // while features travel in the other
  const mesh<Device> of_graph(ranks, cut ? mesh_shape{m.size(), 1, 1} : mesh_shape{1, m.size(), 1},
                              m.queue());
  const graph::propagation_matrices<T, Device> graph(of_graph, data, options, cut ? row_1d : feature_column);
  const auto a = graph.matrix_for(of, true);
  if (of == graph::propagation_matrix::relations) {
    using enum graph::relation_edges;
    const graph::relation_matrices<T, Device> all(a, data, options.inverse_relations ? both_ways : as_stored);
    return sampling::graph<T>(all.above_each_other());
  }
  std::vector<T> values;
  local_index width = 0;
  if (vectors && data.edge_features.cols > 0) {
    const auto e = graph::edge_features(a, data, graph::repeated_edges::summed);
    values.resize(e.values().size());
    copy(m.queue(), e.values(), std::span<T>(values));
    width = e.heads();
  }
  const sampling::graph<T> of_matrix(a, values, width);
  return of == graph::propagation_matrix::adjacency ? of_matrix.of_ones() : of_matrix;
}

/// The sampler that the options ask for, of `layers` layers of a model; `roots`: the training vertices;
/// `parts`: in how many an iteration is divided. Over a cut graph collective over its ranks. Throws error for
/// micro-batches less than 1, for replacement by other samplers than that of neighbours, and for walks with
/// sampled scores; shape_error unless there is a fan-out for each layer or one for all, or one length of
/// walks; and what the sampler throws.
template <class T>
std::unique_ptr<sampling::sampler<T>> make_sampler(const sampling::graph<T>& graph,
                                                   const training_options& options, const model_row& model,
                                                   std::size_t layers, const std::vector<global_index>& roots,
                                                   int parts) {
  mini_batch_options how = options.mini_batch;
  if (how.micro_batches < 1)
    base::throw_error<error>({"micro-batches are at least 1, not ", how.micro_batches});
  if (how.replace && how.sampler != batch_sampler::neighbours)
    throw error("only neighbours can be drawn with replacement, not layers or walks");
  const bool walks = how.sampler == batch_sampler::walks;
  if (how.fanouts.size() != (walks ? 1 : layers) && how.fanouts.size() != 1)
    base::throw_error<shape_error>(
        {how.fanouts.size(), " fan-outs are given; ",
         walks ? std::string("walks have one length")
               : base::sentence_of({"a model of ", layers, " layers needs one or ", layers})});
  if (!walks) how.fanouts.resize(layers, how.fanouts[0]);
  const auto sizes = [&] {
    std::vector<local_index> of_layers;
    for (const sampling::fanout& f : how.fanouts) {
      if (f.numbers.size() != 1)
        throw shape_error("sizes of layers and lengths of walks are one number for all relations");
      of_layers.push_back(f.numbers[0]);
    }
    return of_layers;
  };
  std::unique_ptr<sampling::sampler<T>> made;
  if (walks) {
    if (how.sampled_scores)
      throw error("walks sample subgraphs to train on, not neighbourhoods to score vertices with");
    const global_index each = std::max<global_index>(1, how.batch / parts);
    made = std::make_unique<sampling::walk_sampler<T>>(
        graph, sampling::walk_options{.layers = layers,
                                      .length = sizes()[0],
                                      .seed = options.seed,
                                      .keep_diagonal = model.has_own_diagonal(),
                                      .threads = how.sampling_threads,
                                      .presampled = how.presampled,
                                      .batch = base::to_local(each, "the roots of a subgraph"),
                                      .roots = roots});
  } else if (how.sampler == batch_sampler::layers) {
    if (model.carries_edges)
      base::throw_error<error>({"the sampler of layers draws other edges for each layer, and model ",
                                model.title(), " carries vectors of edges from one to the next"});
    made = std::make_unique<sampling::layer_sampler<T>>(
        graph, sampling::layer_options{.budgets = sizes(),
                                       .seed = options.seed,
                                       .keep_diagonal = model.has_own_diagonal(),
                                       .threads = how.sampling_threads});
  } else {
    made = std::make_unique<sampling::neighbour_sampler<T>>(
        graph, sampling::neighbour_options{.fanouts = how.fanouts,
                                           .seed = options.seed,
                                           .replace = how.replace,
                                           .keep_diagonal = model.has_own_diagonal(),
                                           .threads = how.sampling_threads,
                                           .alike = model.carries_edges});
  }
  return made;
}

}  // namespace partita::nn
