// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mini-batches of the directed graph.
#include <string>
#include <utility>
#include <vector>

#include "partita/train/mini_batch_trainer.hpp"

namespace test_support {

using batch_trainer = partita::nn::mini_batch_trainer<double, partita::host>;
using partita::sampling::placement;

inline constexpr placement placements[] = {placement::any, placement::home, placement::column,
                                           placement::column_gather};
inline constexpr const char* sampled_models[] = {"gcn", "sage", "gin", "gat"};

/// Two layers with dropout, batches of 9 in equal shares.
inline partita::nn::training_options batch_options(std::string model,
                                                   std::vector<partita::local_index> fanouts = {3, 2}) {
  partita::nn::training_options o;
  o.model = std::move(model);
  o.hidden = {6};
  o.heads = 2;
  o.epsilon = 0.25;
  o.dropout = 0.3;
  o.epochs = 2;
  o.seed = 7;
  o.mini_batch = {.batch = 9, .fanouts = std::move(fanouts), .placement = placement::any};
  return o;
}

}  // namespace test_support
