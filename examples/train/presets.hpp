// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Models with the hyperparameters of their papers.

#include <map>
#include <string>

#include "../ranks/arrangement.hpp"
#include "command.hpp"

inline const std::map<std::string, partita::nn::training_options>& presets() {
  using options = partita::nn::training_options;
  static const std::map<std::string, options> all{
      // Kipf, Welling (ICLR 2017), section 5.2
      {"gcn", {.model = "gcn", .hidden = {16}, .epochs = 200, .weight_decay = 5e-4, .dropout = 0.5}},
      // the same settings
      {"sage", {.model = "sage", .hidden = {16}, .epochs = 200, .weight_decay = 5e-4, .dropout = 0.5}},
      // Velickovic et al. (ICLR 2018), section 3.3
      {"gat",
       {.model = "gat",
        .hidden = {8},
        .heads = 8,
        .epochs = 400,
        .learning_rate = 0.005,
        .weight_decay = 5e-4,
        .dropout = 0.6}},
      // Wu et al. (ICML 2019), section 6
      {"sgc", {.model = "sgc", .hops = 2, .epochs = 100, .learning_rate = 0.2, .weight_decay = 5e-5}},
      // Klicpera et al. (ICLR 2019), section 5
      {"appnp",
       {.model = "appnp",
        .hidden = {64},
        .hops = 10,
        .alpha = 0.1,
        .epochs = 200,
        .weight_decay = 5e-3,
        .dropout = 0.5}},
      // Chen et al. (ICML 2020), table 7, 16 layers
      {"gcnii",
       {.model = "gcnii",
        .hidden = {64},
        .layers = 16,
        .alpha = 0.1,
        .lambda = 0.5,
        .epochs = 300,
        .weight_decay = 5e-4,
        .convolution_decay = 0.01,
        .dropout = 0.6}},
  };
  return all;
}

inline std::string preset_names(const std::string& between) {
  std::string names;
  for (const auto& [name, options] : presets()) names += (names.empty() ? "" : between) + name;
  return names;
}

/// Throws usage_error when there is none of that name.
inline partita::nn::training_options preset_named(const std::string& name) {
  const auto found = presets().find(name);
  if (found == presets().end())
    throw usage_error("there is no preset '" + name + "'; the presets are " + preset_names(", "));
  return found->second;
}
