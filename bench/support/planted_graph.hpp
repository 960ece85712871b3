// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A benchmark graph with planted communities and power-law degrees, as a pure function of a seed.

#include <cmath>

#include "graphs.hpp"

namespace bench {

/// What planted_graph generates.
struct planted {
  global_index vertices = 200'000;
  global_index communities = 64;
  global_index degree = 14;  ///< average, before duplicates are removed
  double mixing = 0.15;      ///< share of the edges that ignore communities
  double decay = 0.5;  ///< expected degree of the i-th vertex of a community: i^-decay times the first's
  bool in_random_order = false;  ///< vertices are renumbered at random, else communities are contiguous
  std::uint64_t seed = 1;
};

/// A random permutation of 0 ... n - 1.
inline std::vector<global_index> permutation(global_index n, std::uint64_t seed) {
  std::vector<global_index> order(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto j = partita::base::random_bits(seed, static_cast<global_index>(i), 0) % (i + 1);
    order[i] = order[j];
    order[j] = static_cast<global_index>(i);
  }
  return order;
}

/// n x n, symmetric, without loops, every entry 1: both ends of an edge are drawn by expected degree, the
/// second, except for the share `mixing`, from the community of the first. Sources: Chung, Lu, PNAS 99(25),
/// 2002; Condon, Karp, Random Structures and Algorithms 18(2), 2001.
inline entries planted_graph(const planted& p) {
  const std::uint64_t word = partita::random_key{.seed = p.seed}.word();
  const std::vector<global_index> names =
      p.in_random_order ? permutation(p.vertices, word) : std::vector<global_index>();
  const global_index edges = p.vertices * p.degree / 2;
  entries list;
  list.reserve(static_cast<std::size_t>(2 * edges));
  for (global_index e = 0; e < edges; ++e) {
    const auto uniform = [&](int draw) { return partita::base::random_uniform(word, e, draw); };
    const auto community = [&](int draw) {
      return static_cast<int>(uniform(draw) * static_cast<double>(p.communities));
    };
    const auto vertex = [&](int of, int draw) {
      const partita::interval all = partita::comm::share_of(p.vertices, of, static_cast<int>(p.communities));
      const double place = std::pow(uniform(draw), 1 / (1 - p.decay)) * static_cast<double>(all.size());
      const global_index v = all.begin + static_cast<global_index>(place);
      return names.empty() ? v : names[static_cast<std::size_t>(v)];
    };
    const int home = community(0);
    const global_index v = vertex(home, 1);
    const global_index u = vertex(uniform(2) < p.mixing ? community(3) : home, 4);
    if (u != v) list.insert(list.end(), {{v, u, 1}, {u, v, 1}});
  }
  const auto at = [](const auto& t) { return std::pair(t.row, t.col); };
  std::sort(list.begin(), list.end(), [&](const auto& s, const auto& t) { return at(s) < at(t); });
  list.erase(
      std::unique(list.begin(), list.end(), [&](const auto& s, const auto& t) { return at(s) == at(t); }),
      list.end());
  return list;
}

}  // namespace bench
