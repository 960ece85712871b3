// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Models with the hyperparameters of their papers.

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "command.hpp"

/// By the model's name: options as NAME=VALUE.
inline constexpr std::pair<const char*, const char*> presets[] = {
    // Klicpera et al. (ICLR 2019), section 5
    {"appnp", "hidden=64 hops=10 alpha=0.1 epochs=200 weight-decay=5e-3 dropout=0.5"},
    // Velickovic et al. (ICLR 2018), section 3.3
    {"gat", "hidden=8 heads=8 epochs=400 lr=0.005 weight-decay=5e-4 dropout=0.6"},
    // Kipf, Welling (ICLR 2017), section 5.2
    {"gcn", "hidden=16 epochs=200 weight-decay=5e-4 dropout=0.5"},
    // Chen et al. (ICML 2020), table 7, 16 layers
    {"gcnii",
     "hidden=64 layers=16 alpha=0.1 lambda=0.5 epochs=300 weight-decay=5e-4 convolution-decay=0.01 "
     "dropout=0.6"},
    // the settings of gcn
    {"sage", "hidden=16 epochs=200 weight-decay=5e-4 dropout=0.5"},
    // Wu et al. (ICML 2019), section 6
    {"sgc", "hops=2 epochs=100 lr=0.2 weight-decay=5e-5"},
};

inline std::string preset_names(const std::string& between) {
  std::string names;
  for (const auto& [name, options] : presets) names += (names.empty() ? "" : between) + name;
  return names;
}

/// Throws usage_error when there is none of that name.
inline nn::training_options preset_named(const std::string& name) {
  const auto* const found = std::ranges::find(presets, name, &std::pair<const char*, const char*>::first);
  if (found == std::end(presets))
    throw usage_error("there is no preset '" + name + "'; the presets are " + preset_names(", "));
  nn::training_options options{.model = name};
  std::istringstream words(found->second);
  for (std::string option, value; std::getline(words, option, '=') && words >> value; words >> std::ws)
    if (const auto f = std::ranges::find(nn::fields, option, &nn::field::name);
        f == nn::fields.end() || !take(*f, options, value))
      throw partita::error("preset " + name + " has a wrong " + option);
  return options;
}
