// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A graph with features, labels and a split: what a network is trained on, whole and in host memory.

#include <cstdint>
#include <string>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/edge.hpp"
#include "partita/io/features.hpp"

namespace partita::io {

/// What split[v] says about vertex v.
enum class split_part : std::uint8_t { none = 0, train = 1, validation = 2, test = 3 };

/// A graph of n vertices with f features each, and one label of C classes, or several, for each vertex.
struct dataset {
  std::string name;
  global_index vertices = 0;               ///< n
  global_index features = 0;               ///< f
  global_index classes = 0;                ///< C
  std::vector<edge> edges;                 ///< both directions of an undirected edge are two entries
  std::vector<double> edge_weights;        ///< one per edge; empty when every weight is 1
  feature_table vertex_features;           ///< [n, f], as they are in the file
  std::vector<std::int64_t> labels;        ///< [n], in [0, C) or -1 for none; empty when multi_label
  std::vector<std::uint8_t> label_matrix;  ///< [n, C] of 0 and 1, row-major; empty unless multi_label
  std::vector<std::uint8_t> split;         ///< [n], values of split_part
  bool multi_label = false;
};

}  // namespace partita::io
