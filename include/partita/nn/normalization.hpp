#pragma once
/// The adjacency matrix that a graph convolution propagates with.

#include <cmath>
#include <span>
#include <vector>

#include "partita/base/triplet.hpp"
#include "partita/comm/communicator.hpp"

namespace partita {

/// D^-1/2 (A + I) D^-1/2, D the row sums of A + I; a row whose sum is not positive becomes zero (n x n).
///
/// `entries` are this rank's part of A, entry (v, u) the weight of the edge from u to v; the result is its
/// part of the normalised matrix. Every rank must call. What travels: an all-reduce of n elements. Source:
/// Kipf, Welling (ICLR 2017), section 2; for directed graphs with in-degrees.
template <class T>
std::vector<triplet<T>> gcn_normalized(const communicator& world, global_index n,
                                       std::span<const triplet<double>> entries) {
  std::vector<double> degree(static_cast<std::size_t>(n), 0);
  const interval loops = share_of(n, world.rank(), world.size());
  for (const auto& e : entries) degree[static_cast<std::size_t>(e.row)] += e.value;
  for (global_index v = loops.begin; v < loops.end; ++v) degree[static_cast<std::size_t>(v)] += 1;
  world.all_reduce(std::span<double>(degree));

  std::vector<triplet<T>> normalized;
  normalized.reserve(entries.size() + static_cast<std::size_t>(loops.size()));
  const auto scale = [&](global_index v) {
    const double d = degree[static_cast<std::size_t>(v)];
    return d > 0 ? 1 / std::sqrt(d) : 0;
  };
  for (const auto& e : entries)
    normalized.push_back({e.row, e.col, static_cast<T>(e.value * (scale(e.row) * scale(e.col)))});
  for (global_index v = loops.begin; v < loops.end; ++v)
    normalized.push_back({v, v, static_cast<T>(scale(v) * scale(v))});
  return normalized;
}

}  // namespace partita
