// SPDX-License-Identifier: Apache-2.0
#pragma once
// A graph of three types of vertices, in memory and as a directory.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "partita/io/dataset_type.hpp"

namespace test_support {

/// Authors have 2 features, papers 3 and one of two labels, topics none; papers of class 1 are by authors
/// with an odd number. One file for each relation, in ascending order.
struct typed_vertices {
  static constexpr partita::global_index authors = 5, papers = 14, topics = 4,
                                         all = authors + papers + topics;
  struct relation {
    std::string name;
    partita::global_index first_source, first_target;
    std::vector<std::int64_t> ends;  ///< [E, 2], numbers within the types
  };

  std::vector<float> author_features, paper_features;
  std::vector<std::int64_t> labels;
  std::vector<std::uint8_t> split;
  std::vector<relation> relations{{"author-writes-paper", 0, authors, {}},
                                  {"paper-cites-paper", authors, authors, {}},
                                  {"topic-of-paper", authors + papers, authors, {}}};

  typed_vertices() {
    for (std::int64_t k = 0; k < 2 * authors; ++k)
      author_features.push_back(static_cast<float>(k * 5 % 7) / 4);
    for (std::int64_t v = 0; v < papers; ++v) {
      for (const std::int64_t j : {0, 1, 2})
        paper_features.push_back(static_cast<float>((3 * v + 2 * j) % 5) / 2);
      labels.push_back(v % 7 == 6 ? -1 : v % 2);
      split.push_back(v % 7 == 6 ? 0 : static_cast<std::uint8_t>(v % 3 + 1));
      relations[0].ends.insert(relations[0].ends.end(), {v * 2 % 4 + v % 2, v, 4, v});
      relations[1].ends.insert(relations[1].ends.end(), {(5 * v + 1) % papers, v});
      relations[2].ends.insert(relations[2].ends.end(), {v % topics, v});
    }
  }

  /// As one graph, by hand.
  partita::io::dataset graph() const {
    using namespace partita;
    io::dataset data;
    data.name = "typed", data.vertices = all, data.features = 2 + 3 + topics, data.classes = 2;
    std::vector<io::edge> edges;
    std::vector<std::int64_t> types;
    for (const auto& [name, source, target, ends] : relations) {
      for (std::size_t k = 0; k < ends.size(); k += 2)
        edges.push_back({source + ends[k], target + ends[k + 1]}), types.push_back(data.relations);
      ++data.relations, data.relation_names.push_back(name);
    }
    data.edges = std::move(edges), data.edge_types = std::move(types);
    data.vertex_types = {{"author", {0, authors}, {0, 2}},
                         {"paper", {authors, authors + papers}, {2, 5}},
                         {"topic", {authors + papers, all}, {5, 5 + topics}}};
    io::csr_array<float> features{all, data.features, {0}, {}, {}};
    for (global_index v = 0; v < all; ++v) {
      for (global_index j = 0; j < data.features; ++j)
        if (const float value = feature(v, j); value != 0)
          features.columns.push_back(j), features.values.push_back(value);
      features.offsets.push_back(std::ssize(features.columns));
    }
    data.vertex_features = io::feature_table(std::move(features));
    std::vector<std::int64_t> every_label(static_cast<std::size_t>(all), -1);
    std::vector<std::uint8_t> every_split(static_cast<std::size_t>(all), 0);
    std::ranges::copy(labels, every_label.begin() + authors);
    std::ranges::copy(split, every_split.begin() + authors);
    data.labels = std::move(every_label), data.split = std::move(every_split);
    return data;
  }

  /// Entry (v, j) of the features of all.
  float feature(partita::global_index v, partita::global_index j) const {
    const auto at = [](const std::vector<float>& table, partita::global_index k) {
      return table[static_cast<std::size_t>(k)];
    };
    if (v < authors) return j < 2 ? at(author_features, 2 * v + j) : 0;
    if (v < authors + papers) return 2 <= j && j < 5 ? at(paper_features, 3 * (v - authors) + j - 2) : 0;
    return j == 5 + v - authors - papers ? 1 : 0;
  }
};

}  // namespace test_support
