// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Zachary's karate club, a graph small enough to be embedded here.

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "partita/base/index.hpp"
#include "partita/io/dataset_type.hpp"

namespace partita::io {

/// Zachary's karate club (Journal of Anthropological Research 33, 1977): 34 vertices, 78 undirected edges
/// stored in both directions, sorted by source and target. Features: the identity, [34, 34]. Labels: the four
/// communities of maximum modularity (Q = 0.4188). Split: the first vertex of each class (0, 4, 8, 23) is for
/// training; of the others, every third is for validation and the rest for testing.
inline dataset karate_club() {
  constexpr global_index n = 34;
  constexpr std::array<std::pair<std::int8_t, std::int8_t>, 78> ties{
      {{0, 1},   {0, 2},   {0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},   {0, 10},  {0, 11},
       {0, 12},  {0, 13},  {0, 17},  {0, 19},  {0, 21},  {0, 31},  {1, 2},   {1, 3},   {1, 7},   {1, 13},
       {1, 17},  {1, 19},  {1, 21},  {1, 30},  {2, 3},   {2, 7},   {2, 8},   {2, 9},   {2, 13},  {2, 27},
       {2, 28},  {2, 32},  {3, 7},   {3, 12},  {3, 13},  {4, 6},   {4, 10},  {5, 6},   {5, 10},  {5, 16},
       {6, 16},  {8, 30},  {8, 32},  {8, 33},  {9, 33},  {13, 33}, {14, 32}, {14, 33}, {15, 32}, {15, 33},
       {18, 32}, {18, 33}, {19, 33}, {20, 32}, {20, 33}, {22, 32}, {22, 33}, {23, 25}, {23, 27}, {23, 29},
       {23, 32}, {23, 33}, {24, 25}, {24, 27}, {24, 31}, {25, 31}, {26, 29}, {26, 33}, {27, 33}, {28, 31},
       {28, 33}, {29, 32}, {29, 33}, {30, 32}, {30, 33}, {31, 32}, {31, 33}, {32, 33}}};
  constexpr std::array<std::int8_t, n> communities{0, 0, 0, 0, 1, 1, 1, 0, 2, 0, 1, 0, 0, 0, 2, 2, 1,
                                                   0, 2, 0, 2, 0, 2, 3, 3, 3, 2, 3, 3, 2, 2, 3, 2, 2};

  dataset club;
  club.name = "karate_club";
  club.vertices = club.features = n;
  club.classes = 4;
  club.labels = std::vector<std::int64_t>(communities.begin(), communities.end());

  for (global_index source = 0; source < n; ++source)
    for (global_index target = 0; target < n; ++target)
      for (const auto& [low, high] : ties)
        if ((low == source && high == target) || (low == target && high == source))
          club.edges.push_back({source, target});

  csr_array<float> identity{n, n, {0}, {}, {}};
  for (global_index v = 0; v < n; ++v) {
    identity.offsets.push_back(v + 1);
    identity.columns.push_back(v);
    identity.values.push_back(1.0f);
  }
  club.vertex_features = feature_table(std::move(identity));

  std::array<bool, 4> has_training_vertex{};
  int others = 0;
  for (std::int64_t label : club.labels) {
    bool& seen = has_training_vertex[static_cast<std::size_t>(label)];
    const split_part part = !std::exchange(seen, true) ? split_part::train
                            : others++ % 3 == 0        ? split_part::validation
                                                       : split_part::test;
    club.split.push_back(static_cast<std::uint8_t>(part));
  }
  return club;
}

}  // namespace partita::io
