// SPDX-License-Identifier: Apache-2.0
#pragma once
/// An R-MAT graph with features, labels and a split, for training.

#include "graphs.hpp"
#include "partita/io/dataset_type.hpp"

namespace bench {

/// 2^scale vertices, 16 edges each, of weight 1; a third of the vertices each for training, validation and
/// testing.
inline partita::io::dataset rmat_dataset(int scale, global_index features = 64, global_index classes = 16) {
  partita::io::dataset d;
  d.name = "rmat_" + std::to_string(scale);
  d.vertices = global_index{1} << scale;
  d.features = features;
  d.classes = classes;
  for (const auto& e : rmat(scale).share(0, 1)) d.edges.push_back({e.col, e.row});
  std::vector<float> x;
  for (global_index v = 0; v < d.vertices; ++v) {
    for (global_index j = 0; j < features; ++j)
      x.push_back(static_cast<float>(partita::base::random_uniform(2, v, j)));
    d.labels.push_back(
        static_cast<std::int64_t>(partita::base::random_bits(3, v, 0) % static_cast<std::uint64_t>(classes)));
    d.split.push_back(static_cast<std::uint8_t>(1 + v % 3));
  }
  d.vertex_features = partita::io::feature_table(d.vertices, features, std::move(x));
  return d;
}

}  // namespace bench
