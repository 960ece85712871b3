// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small directed weighted graph with features and labels, as functions of the vertex.
#include <limits>

#include "partita/base/random.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/io/features.hpp"

namespace test_support {

using namespace partita;

/// n vertices; vertex n-1 is isolated; 13 features, 5 classes; a third of the vertices each to train,
/// validate and test.
inline partita::io::dataset directed_graph(partita::global_index n = 61) {
  partita::io::dataset d;
  d.name = "directed graph";
  d.vertices = n;
  d.features = 13;
  d.classes = 5;
  std::vector<float> x;
  for (partita::global_index v = 0; v < n; ++v) {
    for (partita::global_index u = 0; u + 1 < n && v + 1 < n; ++u)
      if (u != v && partita::base::random_bits(3, u, v) % 11 == 0) {
        d.edges.push_back({u, v});
        d.edge_weights.push_back(0.25 + partita::base::random_uniform(4, u, v));
      }
    for (partita::global_index j = 0; j < d.features; ++j)
      x.push_back(static_cast<float>(partita::base::random_uniform(5, v, j)));
    d.labels.push_back(static_cast<std::int64_t>(partita::base::random_bits(6, v, 0) % 5));
    d.split.push_back(static_cast<std::uint8_t>(1 + v % 3));
  }
  d.vertex_features = partita::io::feature_table(n, d.features, std::move(x));
  return d;
}

/// The same vertices with several labels each, of which about one in three is there.
inline partita::io::dataset with_several_labels(partita::io::dataset d) {
  d.task = io::task::labels;
  for (partita::global_index v = 0; v < d.vertices; ++v)
    for (partita::global_index c = 0; c < d.classes; ++c)
      d.label_matrix.push_back(static_cast<std::uint8_t>(partita::base::random_bits(9, v, c) % 3 == 0));
  return d;
}

/// The same vertices with three values each, of which one in seven is not known.
inline partita::io::dataset with_values(partita::io::dataset d) {
  d.labels = {};
  d.task = partita::io::task::values;
  d.classes = 3;
  std::vector<double> values;
  for (partita::global_index v = 0; v < d.vertices; ++v)
    for (partita::global_index c = 0; c < d.classes; ++c)
      values.push_back((3 * v + c) % 7 == 5 ? std::numeric_limits<double>::quiet_NaN()
                                            : 4 * partita::base::random_uniform(11, v, c) - 1);
  d.values = std::move(values);
  return d;
}

/// Features of which about one in three is there.
inline partita::io::feature_table sparse_features(partita::global_index vertices,
                                                  partita::global_index width) {
  partita::io::csr_array<float> table;
  table.rows = vertices;
  table.cols = width;
  table.offsets.assign(1, 0);
  for (partita::global_index v = 0; v < vertices; ++v) {
    for (partita::global_index j = 0; j < width; ++j)
      if (partita::base::random_bits(8, v, j) % 3 == 0) {
        table.columns.push_back(j);
        table.values.push_back(static_cast<float>(partita::base::random_uniform(5, v, j)));
      }
    table.offsets.push_back(static_cast<partita::global_index>(table.columns.size()));
  }
  return partita::io::feature_table(std::move(table));
}

}  // namespace test_support
