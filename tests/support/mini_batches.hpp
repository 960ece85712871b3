// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mini-batches of the directed graph.

#include "partita/train/mini_batch_trainer.hpp"
#include "support/datasets.hpp"
#include "support/matrices.hpp"

namespace test_support {

using batch_trainer = partita::nn::mini_batch_trainer<double, partita::host>;
using partita::sampling::placement;

inline constexpr placement placements[] = {placement::even, placement::owner, placement::column,
                                           placement::column_gather};
inline constexpr const char* sampled_models[] = {"gcn", "sage", "gin", "gat"};

/// Two layers with dropout, batches of 9 in equal shares.
inline partita::nn::training_options batch_options(std::string model,
                                                   std::vector<partita::sampling::fanout> fanouts = {3, 2}) {
  return {.model = std::move(model),
          .hidden = {6},
          .heads = 2,
          .epsilon = 0.25,
          .epochs = 2,
          .dropout = 0.3,
          .seed = 7,
          .mini_batch = {.batch = 9, .fanouts = std::move(fanouts), .placement = placement::even}};
}

inline partita::io::dataset without_features(partita::io::dataset d) {
  d.features = 0;
  d.vertex_features = {};
  return d;
}

/// With three types of edges and vectors of two numbers, an edge that comes twice, and one of two types.
inline partita::io::dataset with_edge_data(partita::io::dataset d) {
  std::vector<partita::io::edge> edges(d.edges.begin(), d.edges.end());
  edges.insert(edges.end(), {edges[0], edges[1]});
  std::vector<std::int64_t> types;
  std::vector<double> vectors, weights;
  for (std::size_t e = 0; e < edges.size(); ++e) {
    types.push_back(e + 2 == edges.size() ? 0 : std::int64_t(e % 3));
    vectors.insert(vectors.end(), {double(e % 7) / 7 - 0.4, double(e % 5) / 5 - 0.3});
    weights.push_back(1 + double(e % 4) / 4);
  }
  d.relations = 3;
  d.edge_features = {std::ssize(edges), 2, std::move(vectors)};
  d.edges = std::move(edges), d.edge_types = std::move(types), d.edge_weights = std::move(weights);
  return d;
}

/// d loss / d X (n x w) of the last batch, on every rank, where X is learned.
inline std::vector<double> collected_gradient(batch_trainer& t) {
  const auto& x = *t.embedding();
  dense<double, dynamic_layout, host> g(x.mesh(), x.layout(), x.row_blocking(), x.col_blocking());
  fill(g, 0);
  const auto rows = t.embedding_gradient().local();
  for (local_index i = 0; i < rows.rows; ++i)
    for (local_index j = 0; j < rows.cols; ++j)
      g.local()(static_cast<local_index>(t.embedding_rows()[static_cast<std::size_t>(i)]), j) = rows(i, j);
  return collect(g);
}

}  // namespace test_support
