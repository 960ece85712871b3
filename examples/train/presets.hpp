// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Models with the hyperparameters of their papers.

#include <map>
#include <sstream>
#include <string>

#include "../ranks/arrangement.hpp"
#include "partita/train/fields.hpp"

/// Options as NAME=VALUE, by the model's name.
inline const std::map<std::string, std::string>& presets() {
  static const std::map<std::string, std::string> all{
      // Kipf, Welling (ICLR 2017), section 5.2
      {"gcn", "hidden=16 epochs=200 weight-decay=5e-4 dropout=0.5"},
      // the same settings
      {"sage", "hidden=16 epochs=200 weight-decay=5e-4 dropout=0.5"},
      // Velickovic et al. (ICLR 2018), section 3.3
      {"gat", "hidden=8 heads=8 epochs=400 lr=0.005 weight-decay=5e-4 dropout=0.6"},
      // Wu et al. (ICML 2019), section 6
      {"sgc", "hops=2 epochs=100 lr=0.2 weight-decay=5e-5"},
      // Klicpera et al. (ICLR 2019), section 5
      {"appnp", "hidden=64 hops=10 alpha=0.1 epochs=200 weight-decay=5e-3 dropout=0.5"},
      // Chen et al. (ICML 2020), table 7, 16 layers
      {"gcnii",
       "hidden=64 layers=16 alpha=0.1 lambda=0.5 epochs=300 weight-decay=5e-4 convolution-decay=0.01 "
       "dropout=0.6"},
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
  using partita::nn::field, partita::nn::fields;
  const auto found = presets().find(name);
  if (found == presets().end())
    throw usage_error("there is no preset '" + name + "'; the presets are " + preset_names(", "));
  partita::nn::training_options options{.model = name};
  std::istringstream words(found->second);
  for (std::string option, value; std::getline(words, option, '=') && words >> value; words >> std::ws) {
    const auto f = std::ranges::find(fields, option, &field::name);
    if (f == fields.end() || !take(*f, options, value))
      throw partita::error("preset " + name + " has a wrong " + option);
  }
  return options;
}
