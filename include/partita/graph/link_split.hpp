// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Links that are taken out of a graph, to be predicted.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/random.hpp"
#include "partita/io/labelled_graph.hpp"

namespace partita::graph {

/// Shares of the pairs of vertices whose edges are validation and test links; and how many columns a model is
/// to make of the graph, dataset::classes.
struct link_split_options {
  double validation = 0.05, test = 0.1;
  global_index columns = 16;
  std::uint64_t seed = 0;
};

/// The part of the edges u -> v and v -> u, a function of the seed and of the pair {u, v} alone: whatever the
/// ranks, the order of the edges and how often they come, no edge of another part is a link or its reverse.
/// Loops are for training. Local.
inline io::split_part link_part(global_index u, global_index v, const link_split_options& options) {
  const std::uint64_t word = random_key{options.seed, 0, 0x6c000000u}.word();
  const double draw = base::random_uniform(word, std::min(u, v), std::max(u, v));
  if (u == v || draw >= options.validation + options.test) return io::split_part::train;
  return draw < options.test ? io::split_part::test : io::split_part::validation;
}

/// The graph without the edges of validation and test pairs, which become its links: distinct, sorted by
/// source and target. What is left has its weights and features, in its order; these edges are those that
/// messages take, and the positives of training. There are no labels. Local. Throws input_error unless the
/// shares are at least 0 and below 1 together, and for an edge outside the graph.
inline io::dataset split_links(io::dataset data, const link_split_options& options) {
  if (!(options.validation >= 0 && options.test >= 0 && options.validation + options.test < 1))
    base::throw_error<input_error>(
        {data.name, ": the shares of validation and test links are at least 0, and below 1 together"});
  std::vector<global_index> kept;
  std::vector<io::edge> edges, validation, test;
  for (std::size_t i = 0; i < data.edges.size(); ++i) {
    const io::edge e = data.edges[i];
    for (const global_index v : {e.source, e.target})
      if (v < 0 || v >= data.vertices)
        base::throw_error<input_error>(
            {data.name, ": edge ", i, " has vertex ", v, ", which is not one of ", data.vertices});
    const io::split_part part = link_part(e.source, e.target, options);
    if (part == io::split_part::train)
      kept.push_back(static_cast<global_index>(i)), edges.push_back(e);
    else
      (part == io::split_part::test ? test : validation).push_back(e);
  }
  for (std::vector<io::edge>* const links : {&validation, &test}) {
    const auto ends = [](const io::edge& e) { return std::pair(e.source, e.target); };
    std::ranges::sort(*links, {}, ends);
    const auto repeated = std::ranges::unique(*links, {}, ends);
    links->erase(repeated.begin(), repeated.end());
  }
  if (!data.edge_weights.empty()) {
    std::vector<double> weights;
    for (const global_index i : kept) weights.push_back(data.edge_weights[static_cast<std::size_t>(i)]);
    data.edge_weights = std::move(weights);
  }
  if (data.edge_features.rows > 0) data.edge_features = data.edge_features.rows_at(kept);
  data.edges = std::move(edges);
  data.validation_links = std::move(validation);
  data.test_links = std::move(test);
  data.labels = {}, data.label_matrix = {}, data.values = {}, data.split = {};
  data.classes = options.columns;
  data.task = io::task::links;
  return data;
}

}  // namespace partita::graph
