// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Graphs that models are trained on to see how long their kernels take.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/io/dataset_type.hpp"

namespace calibration {

using partita::global_index;

/// What a graph is made of.
struct graph_size {
  global_index vertices = 256;
  int degree = 8;  ///< edges of a vertex, in either direction, in the mean
  int features = 16, classes = 7;
  bool sparse = false;    ///< of features one in sixteen, and at least one of a vertex, is not 0
  int relations = 0;      ///< types of edges
  int edge_features = 0;  ///< numbers for each edge
};

/// (rows, cols), every sixteenth number 1 and at least one in a row, the others 0.
inline partita::io::feature_table sparse_features(global_index rows, global_index cols) {
  partita::io::csr_array<float> x;
  x.rows = rows, x.cols = cols;
  for (global_index i = 0; i < rows; ++i) {
    for (global_index j = i % std::min<global_index>(cols, 16); j < cols; j += 16) {
      x.columns.push_back(j);
      x.values.push_back(1);
    }
    x.offsets.push_back(std::ssize(x.columns));
  }
  return partita::io::feature_table(std::move(x));
}

/// A graph with both directions of each edge, whose ends are u^2 n for u uniform in [0, 1): few vertices have
/// many edges. Local; nothing travels.
inline partita::io::dataset random_graph(const graph_size& s, std::uint64_t seed) {
  const auto uniform = [&](global_index i, global_index j) {
    return partita::base::random_uniform(partita::random_key{.seed = seed}.word(), i, j);
  };
  const auto numbers = [&](global_index rows, global_index cols, global_index from) {
    std::vector<float> x;
    for (global_index i = 0; i < rows * cols; ++i) x.push_back(static_cast<float>(uniform(i, from)));
    return partita::io::feature_table(rows, cols, std::move(x));
  };
  partita::io::dataset d;
  d.name = "random";
  d.vertices = s.vertices;
  d.features = s.features;
  d.classes = s.classes;
  d.relations = s.relations;
  const auto end = [&](global_index e, global_index which) {
    const double u = uniform(e, which);
    return static_cast<global_index>(u * u * static_cast<double>(s.vertices));
  };
  for (global_index e = 0; e < s.vertices * s.degree / 2; ++e) {
    const global_index u = end(e, 0), v = end(e, 1);
    d.edges.push_back({u, v});
    d.edges.push_back({v, u});
    for (int k = 0; s.relations > 0 && k < 2; ++k) d.edge_types.push_back(e % s.relations);
  }
  if (s.edge_features > 0) d.edge_features = numbers(std::ssize(d.edges), s.edge_features, 3);
  for (global_index v = 0; v < s.vertices; ++v) {
    d.labels.push_back(v % s.classes);
    d.split.push_back(static_cast<std::uint8_t>(1 + v % 3));
  }
  d.vertex_features = s.sparse ? sparse_features(s.vertices, s.features) : numbers(s.vertices, s.features, 2);
  return d;
}

}  // namespace calibration
