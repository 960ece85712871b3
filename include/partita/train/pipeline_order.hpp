// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Chunks of vertices in a pipeline whose stages have consecutive layers: in which order they pass through.

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/base/random.hpp"

namespace partita::nn {

/// The order in which the chunks of an epoch run forward: 0 ... chunks - 1, or a permutation drawn anew in
/// each epoch. Backward runs in the reverse order. Local, and the same on every rank: a function of its
/// arguments. Throws error unless there is a chunk. Source: GNNPipe (arXiv 2308.10087), chunk shuffling.
inline std::vector<int> chunk_order(std::uint64_t seed, std::uint64_t epoch, int chunks, bool shuffled) {
  if (chunks < 1) base::throw_error<error>({"a pipeline has at least one chunk, not ", chunks});
  constexpr std::uint64_t stream = 0x63686e6b;
  std::vector<int> order(static_cast<std::size_t>(chunks));
  std::iota(order.begin(), order.end(), 0);
  if (shuffled) base::shuffle(order, random_key{seed, epoch, stream}.word());
  return order;
}

enum class direction : std::uint8_t { forward, backward };

/// The work of a stage on one chunk: all of its layers, forward or backward.
struct pipeline_task {
  nn::direction direction = nn::direction::forward;
  int chunk = 0;

  friend constexpr bool operator==(pipeline_task, pipeline_task) = default;
};

/// What every stage does in an epoch, in this order: all chunks forward, then all backward in the reverse
/// order. A stage begins a task when it has finished the one before and has the input: forward from the stage
/// before, backward from the stage after; a first or last stage needs none. Local. Source: GNNPipe, the
/// schedule; the flush between the directions is GPipe's (Huang et al., NeurIPS 2019).
inline std::vector<pipeline_task> pipeline_tasks(std::span<const int> order) {
  std::vector<pipeline_task> tasks;
  tasks.reserve(2 * order.size());
  for (const int chunk : order) tasks.push_back({direction::forward, chunk});
  for (std::size_t i = order.size(); i > 0; --i) tasks.push_back({direction::backward, order[i - 1]});
  return tasks;
}

}  // namespace partita::nn
