// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Benchmark graphs as pure functions of a seed: every rank generates its own share of the entries, and the
/// union does not depend on the number of ranks.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "partita/base/random.hpp"
#include "partita/base/triplet.hpp"
#include "partita/comm/operation.hpp"

namespace bench {

using partita::global_index;
using entries = std::vector<partita::triplet<float>>;

/// An n x n sparse matrix; share(rank, ranks) gives the entries of one rank.
struct graph {
  std::string name;
  global_index vertices = 0;
  std::function<entries(int rank, int ranks)> share;
};

/// The value of an entry, in [0, 1).
inline float weight(global_index row, global_index col) {
  return static_cast<float>(partita::base::random_uniform(partita::random_key{.seed = 2}.word(), row, col));
}

/// A permutation of 0 ... 2^scale - 1, composed of bijections: multiplications by odd numbers and right
/// xorshifts.
constexpr global_index renamed(global_index vertex, int scale) {
  const std::uint64_t mask = (std::uint64_t{1} << scale) - 1;
  auto v = static_cast<std::uint64_t>(vertex);
  for (const std::uint64_t odd : {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu}) {
    v = (v * odd + (odd >> 32)) & mask;
    v ^= v >> ((scale + 1) / 2);
  }
  return static_cast<global_index>(v);
}

/// 2^scale vertices and 2^scale * edges_per_vertex directed edges; duplicates are summed. At each level an
/// edge falls into a quadrant with probabilities .57, .19, .19 and .05; vertices are permuted. Source:
/// Graph500 specification; R-MAT: Chakrabarti, Zhan, Faloutsos (SDM 2004).
inline graph rmat(int scale, int edges_per_vertex = 16, std::uint64_t seed = 1) {
  const global_index n = global_index{1} << scale;
  const auto share = [=](int rank, int ranks) {
    const std::uint64_t word = partita::random_key{.seed = seed}.word();
    const partita::interval mine = partita::comm::share_of(n * edges_per_vertex, rank, ranks);
    entries list;
    list.reserve(static_cast<std::size_t>(mine.size()));
    for (global_index e = mine.begin; e < mine.end; ++e) {
      global_index row = 0, col = 0;
      for (int level = 0; level < scale; ++level) {
        const double u = partita::base::random_uniform(word, e, level);
        row = 2 * row + (u >= 0.76);
        col = 2 * col + ((u >= 0.57 && u < 0.76) || u >= 0.95);
      }
      row = renamed(row, scale);
      col = renamed(col, scale);
      list.push_back({row, col, weight(row, col)});
    }
    return list;
  };
  return {"rmat_" + std::to_string(scale), n, share};
}

/// 2^scale vertices, each with edges to its `half_width` neighbours on either side and to itself: the banded
/// structure that mesh generators and partitioners produce.
inline graph banded(int scale, global_index half_width = 8) {
  const global_index n = global_index{1} << scale;
  const auto share = [=](int rank, int ranks) {
    const partita::interval rows = partita::comm::share_of(n, rank, ranks);
    entries list;
    for (global_index row = rows.begin; row < rows.end; ++row)
      for (global_index col = std::max<global_index>(0, row - half_width);
           col <= std::min(n - 1, row + half_width); ++col)
        list.push_back({row, col, weight(row, col)});
    return list;
  };
  return {"banded_" + std::to_string(scale), n, share};
}

}  // namespace bench
