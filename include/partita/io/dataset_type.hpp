// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A graph with features, labels and a split: a whole training set in host memory.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "partita/base/index.hpp"
#include "partita/io/array.hpp"
#include "partita/io/edge.hpp"
#include "partita/io/features.hpp"

namespace partita::io {

/// The meaning of split[v] for vertex v.
enum class split_part : std::uint8_t { none = 0, train = 1, validation = 2, test = 3 };

/// What is read about vertices besides the split.
enum class vertex_data : std::uint8_t {
  features_and_labels,
  labels,    ///< features, if any, are left out: an embedding is learned in their place
  features,  ///< labels and the split, if both exist: for predicting logits
  edges      ///< the same without features: a learned embedding replaces them
};

/// What is to be predicted of a vertex, or of pairs of vertices.
enum class task : std::uint8_t {
  classes,  ///< one of C classes
  labels,   ///< which of C labels it has
  values,   ///< C numbers
  links     ///< whether there is an edge; see graph::split_links
};

/// Vertices of one type: their rows among all vertices, and the columns of their features among all of these.
struct vertex_type {
  std::string name;
  interval rows;
  interval columns;  ///< as many as rows, of the identity, if the type has no features

  friend bool operator==(const vertex_type&, const vertex_type&) = default;
};

/// The negatives among which links are ranked, instead of all vertices.
struct link_negatives {
  bool are_shared = false;       ///< by all links; otherwise each has as many of its own
  array<std::int64_t> vertices;  ///< row-major: source and target of pairs [m', 2], or targets [links, K]
};

/// A split of links, and the negatives of its last two parts, as they are stored; see io::read_links.
struct given_links {
  array<edge> train;  ///< empty: all edges that are not held out
  array<edge> validation, test;
  std::array<link_negatives, 2> negatives;
};

/// A graph of n vertices with f features each, and for each vertex a class, several labels, or values; or
/// with links that were held out from it.
struct dataset {
  std::string name;
  global_index vertices = 0;         ///< n
  global_index features = 0;         ///< f
  global_index classes = 0;          ///< C: classes, labels, or values of a vertex; for links,
                                     ///< the columns of the model's output
  array<edge> edges;                 ///< an undirected edge is stored in both directions
  array<double> edge_weights;        ///< one per edge; empty if all weights are 1
  feature_table edge_features;       ///< [E, k], a row for each edge; otherwise 0 x 0
  array<std::int64_t> edge_types;    ///< [E], in [0, R); empty if all edges have one type
  global_index relations = 0;        ///< R: types of edges; 0 without edge_types
  feature_table vertex_features;     ///< [n, f], as stored in the file
  array<std::int64_t> labels;        ///< [n], in [0, C) or -1 for none; empty for other tasks
  array<std::uint8_t> label_matrix;  ///< [n, C] of 0 and 1, row-major; empty for other tasks
  array<double> values;              ///< [n, C], row-major, NaN for none; empty for other tasks
  array<std::uint8_t> split;         ///< [n], values of split_part
  array<edge> validation_links;      ///< for links: positives that are not among the edges
  array<edge> test_links;
  std::array<link_negatives, 2> negatives;  ///< for these two; empty if there are none
  io::task task = io::task::classes;
  std::vector<std::string> notes;  ///< how data was understood, if that may surprise

  // For several types of vertices; empty if there is only one.
  std::vector<vertex_type> vertex_types;    ///< in the order of their rows; each has feature columns
                                            ///< of its own, with zeros for the other types
  std::vector<std::string> relation_names;  ///< [R], source-relation-target
};

}  // namespace partita::io
