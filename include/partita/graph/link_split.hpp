// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Links that are taken out of a graph, to be predicted.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/random.hpp"
#include "partita/io/dataset_type.hpp"

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

namespace detail {

/// The values of these edges, in their order; none where there are none.
template <class T>
void keep_values(io::array<T>& values, const std::vector<global_index>& kept) {
  if (values.empty()) return;
  std::vector<T> those;
  those.reserve(kept.size());
  for (const global_index i : kept) those.push_back(values[static_cast<std::size_t>(i)]);
  values = std::move(those);
}
/// The edges that are kept, with what they have.
inline void keep_edges(io::dataset& data, const std::vector<global_index>& kept) {
  keep_values(data.edges, kept);
  keep_values(data.edge_weights, kept);
  keep_values(data.edge_types, kept);
  if (data.edge_features.rows > 0) data.edge_features = data.edge_features.rows_at(kept);
}

/// Nothing is to be predicted of vertices.
inline void for_links(io::dataset& data, global_index columns) {
  data.labels = {}, data.label_matrix = {}, data.values = {}, data.split = {};
  data.classes = columns;
  data.task = io::task::links;
}

using vertex_pair = std::pair<global_index, global_index>;

/// {u, v}.
inline vertex_pair pair_of(const io::edge& e) {
  return {std::min(e.source, e.target), std::max(e.source, e.target)};
}
/// Those of links, in ascending order.
inline std::vector<vertex_pair> pairs_of(const io::array<io::edge>& links) {
  std::vector<vertex_pair> pairs;
  pairs.reserve(links.size());
  for (const io::edge& e : links) pairs.push_back(pair_of(e));
  std::ranges::sort(pairs);
  return pairs;
}
inline bool has_pair(const std::vector<vertex_pair>& pairs, const io::edge& e) {
  return std::ranges::binary_search(pairs, pair_of(e));
}

}  // namespace detail

/// The graph without the edges of validation and test pairs, which become its links: distinct, sorted by
/// source and target. What is left has its weights, features and types, in its order; these edges are those
/// that messages take, and the positives of training. There are no labels. Local. Throws input_error unless
/// the shares are at least 0 and below 1 together, and for an edge outside the graph.
inline io::dataset split_links(io::dataset data, const link_split_options& options) {
  if (!(options.validation >= 0 && options.test >= 0 && options.validation + options.test < 1))
    base::throw_error<input_error>(
        {data.name, ": the shares of validation and test links are at least 0, and below 1 together"});
  std::vector<global_index> kept;
  std::vector<io::edge> validation, test;
  for (std::size_t i = 0; i < data.edges.size(); ++i) {
    const io::edge e = data.edges[i];
    for (const global_index v : {e.source, e.target})
      if (v < 0 || v >= data.vertices)
        base::throw_error<input_error>(
            {data.name, ": edge ", i, " has vertex ", v, ", which is not one of ", data.vertices});
    const io::split_part part = link_part(e.source, e.target, options);
    if (part == io::split_part::train)
      kept.push_back(static_cast<global_index>(i));
    else
      (part == io::split_part::test ? test : validation).push_back(e);
  }
  for (std::vector<io::edge>* const links : {&validation, &test}) {
    const auto ends = [](const io::edge& e) { return std::pair(e.source, e.target); };
    std::ranges::sort(*links, {}, ends);
    const auto repeated = std::ranges::unique(*links, {}, ends);
    links->erase(repeated.begin(), repeated.end());
  }
  detail::keep_edges(data, kept);
  detail::for_links(data, options.columns);
  data.validation_links = std::move(validation);
  data.test_links = std::move(test);
  return data;
}

/// The same with links that are given, in their order. The edges that stay are loops, and those whose pair
/// {u, v} is one of the training links, if these are given, and of no other part: no message crosses a pair
/// that is to be predicted, in either direction. Throws input_error naming file and row of a training link
/// that is no edge in either direction, and of a training or validation link whose pair is also one of a
/// later part.
inline io::dataset split_links(io::dataset data, io::given_links given, global_index columns) {
  const auto train = detail::pairs_of(given.train), validation = detail::pairs_of(given.validation),
             test = detail::pairs_of(given.test);
  const auto refuse_pairs = [&](const char* file, const io::array<io::edge>& links, const auto& others,
                                bool wanted, const char* why) {
    for (std::size_t i = 0; i < links.size(); ++i)
      if (detail::has_pair(others, links[i]) != wanted)
        base::throw_error<input_error>({data.name, ": ", file, ": row ", i, " is the link ", links[i].source,
                                        " -> ", links[i].target, why});
  };
  if (!train.empty())
    refuse_pairs("links_train.npy", given.train, detail::pairs_of(data.edges), true,
                 ", and edges.npy has it in neither direction");
  refuse_pairs("links_train.npy", given.train, validation, false, ", whose pair is also in links_valid.npy");
  refuse_pairs("links_train.npy", given.train, test, false, ", whose pair is also in links_test.npy");
  refuse_pairs("links_valid.npy", given.validation, test, false, ", whose pair is also in links_test.npy");
  std::vector<global_index> kept;
  for (std::size_t i = 0; i < data.edges.size(); ++i)
    if (const io::edge& e = data.edges[i];
        (train.empty() || e.source == e.target || detail::has_pair(train, e)) &&
        !detail::has_pair(validation, e) && !detail::has_pair(test, e))
      kept.push_back(static_cast<global_index>(i));
  if (kept.size() < data.edges.size())
    data.notes.push_back(std::to_string(data.edges.size() - kept.size()) + " of " +
                         std::to_string(data.edges.size()) +
                         " edges are left out: their pairs are held out, or in no file of links");
  detail::keep_edges(data, kept);
  detail::for_links(data, columns);
  data.validation_links = std::move(given.validation);
  data.test_links = std::move(given.test);
  data.negatives = std::move(given.negatives);
  return data;
}

}  // namespace partita::graph
