// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A sample in which roots share no vertices.

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "partita/base/numbering.hpp"
#include "partita/sampling/block.hpp"

namespace partita::sampling {

/// The same neighbourhoods, with that of each root apart: a vertex that several roots reach stands in
/// `vertices` once for each of them, and a row of a block reads the vertices of its own root. What is
/// computed for a root, its gradients included, is then the same whichever roots are sampled with it. The
/// sample must be the union of what its roots draw, without weights, as those of neighbour_sampler and
/// layer_sampler are.
///
/// Local; no communication. Throws shape_error for more vertices or entries than a local index can count.
template <class T>
void roots_apart(const sample<T>& together, sample<T>& apart) {
  std::vector<std::pair<local_index, local_index>> places;  // root, vertex among those of `together`
  base::numbering<global_index> numbers;
  const auto place_of = [&](local_index root, local_index v) {
    const auto [number, is_new] = numbers(root * std::ssize(together.vertices) + v);
    if (is_new) places.emplace_back(root, v);
    return number;
  };
  const auto places_now = [&] { return base::to_local(std::ssize(places), "the vertices of roots apart"); };
  const local_index relations = together.relations;
  for (local_index r = 0; r < together.blocks.back().rows / relations; ++r) place_of(r, r);

  apart.blocks.resize(together.blocks.size());
  std::vector<std::pair<local_index, std::size_t>> row;  // column, entry of `from`
  for (std::size_t l = together.blocks.size(); l-- > 0;) {
    const block<T>& from = together.blocks[l];
    block<T>& to = apart.blocks[l];
    to.rows = base::to_local(std::ssize(places) * relations, "the rows of roots apart");
    to.offsets.assign(1, 0);
    to.columns.clear();
    to.values.clear();
    to.width = from.width;
    to.vectors.clear();
    for (local_index i = 0; i < to.rows; ++i) {
      const auto [root, v] = places[static_cast<std::size_t>(i / relations)];
      row.clear();
      const auto first = static_cast<std::size_t>(v * relations + i % relations);
      for (auto e = static_cast<std::size_t>(from.offsets[first]);
           e < static_cast<std::size_t>(from.offsets[first + 1]); ++e)
        row.emplace_back(place_of(root, from.columns[e]), e);
      std::sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const auto& [column, e] : row) {
        const T* const vector = from.vectors.data() + e * static_cast<std::size_t>(from.width);
        to.columns.push_back(column);
        to.values.push_back(from.values[e]);
        to.vectors.insert(to.vectors.end(), vector, vector + from.width);
      }
      to.offsets.push_back(base::to_local(std::ssize(to.columns), "the entries of roots apart"));
    }
    to.cols = places_now();
  }
  apart.vertices.clear();
  for (const auto& [root, v] : places)
    apart.vertices.push_back(together.vertices[static_cast<std::size_t>(v)]);
  apart.sampled_edges = together.sampled_edges;
  apart.weights.clear();
  apart.relations = relations;
}

}  // namespace partita::sampling
