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
  return {.model = std::move(model),
          .hidden = {6},
          .heads = 2,
          .epsilon = 0.25,
          .epochs = 2,
          .dropout = 0.3,
          .seed = 7,
          .mini_batch = {.batch = 9, .fanouts = std::move(fanouts), .placement = placement::any}};
}

}  // namespace test_support
