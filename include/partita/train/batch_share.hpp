// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A rank's share of a batch, in micro-batches.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "partita/sampling/block.hpp"
#include "partita/sampling/placement.hpp"

namespace partita::nn {

/// The roots of a rank and what was sampled for them.
template <class T>
struct batch_share {
  double weight = 0;                             ///< of all ranks' roots, by vertex_weights
  std::vector<std::vector<global_index>> roots;  ///< of each micro-batch
  /// The part of each micro-batch's mean loss in that of the batch; 0 for one of no weight.
  std::vector<double> weights;
  std::vector<sampling::sample<T>> samples;
  std::uint64_t epoch = 0;
};

/// How the mean losses of micro-batches make one.
enum class batch_mean : std::uint8_t {
  of_roots,  ///< each weighs as many terms as its roots have
  of_parts   ///< each weighs the same: subgraphs that all estimate one loss
};

/// Deals the batch to the ranks, and cuts each share into micro-batches. deal(roots): the root_lists of the
/// ranks. weights: see vertex_weights. Returns the most roots of a rank. Local, or collective
/// as `deal` is.
template <class T, class Deal, class Weights>
global_index split_by_rank_then_batch(std::span<const global_index> batch, int rank, int micro_batches,
                                      batch_mean mean, const Deal& deal, const Weights& weights,
                                      batch_share<T>& to) {
  const sampling::root_lists lists = deal(batch);
  global_index most = 0, parts = 0;
  for (const auto& list : lists) {
    most = std::max(most, std::ssize(list));
    parts += std::min<global_index>(micro_batches, std::ssize(list));
  }
  to.weight = weights.of(batch);
  to.roots = sampling::equal_shares(lists[static_cast<std::size_t>(rank)], micro_batches);
  to.weights.clear();
  for (const auto& roots : to.roots)
    to.weights.push_back(roots.empty() || to.weight == 0 ? 0
                         : mean == batch_mean::of_parts  ? 1 / static_cast<double>(parts)
                                                         : weights.terms(roots) / to.weight);
  return most;
}

/// Cuts the batch into micro-batches, and deals each to the ranks: micro-batches of all ranks together do not
/// depend on the ranks, and `weights` are theirs. Otherwise as above.
template <class T, class Deal, class Weights>
global_index split_by_batch_then_rank(std::span<const global_index> batch, int rank, int micro_batches,
                                      const Deal& deal, const Weights& weights, batch_share<T>& to) {
  std::vector<global_index> sizes;
  to.weight = weights.of(batch);
  to.roots.clear();
  to.weights.clear();
  for (const auto& part : sampling::equal_shares(batch, micro_batches)) {
    const sampling::root_lists lists = deal(part);
    sizes.resize(lists.size(), 0);
    for (std::size_t q = 0; q < lists.size(); ++q) sizes[q] += std::ssize(lists[q]);
    to.roots.push_back(lists[static_cast<std::size_t>(rank)]);
    to.weights.push_back(to.weight == 0 ? 0 : weights.terms(part) / to.weight);
  }
  return std::ranges::max(sizes);
}

}  // namespace partita::nn
