// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Golden cases: small graphs with a model's logits, loss and every gradient from automatic differentiation
/// in float64.

#include <filesystem>
#include <map>

#include "partita/io/dataset_type.hpp"
#include "partita/io/npy.hpp"
#include "partita/train/options.hpp"

struct golden_case {
  std::filesystem::path folder;
  std::string name;
  partita::io::npy_array<double> x, logits;
  std::vector<std::int64_t> labels;  ///< [n], or [n, C] when there are several a vertex
  std::vector<std::uint8_t> mask;
  bool several_labels = false;  ///< the loss is binary cross-entropy over all labels
  double loss = 0;
  std::map<std::string, std::vector<double>> values,
      gradients;                          ///< by the name of the parameter, or edge_features
  partita::io::dataset graph;             ///< without features and labels
  partita::nn::training_options options;  ///< what makes the model

  partita::global_index classes() const { return logits.shape[1]; }
  bool counts(partita::global_index v) const { return mask[static_cast<std::size_t>(v)] != 0; }
};

/// Every case folder under `folder`, in order of their names. Throws input_error when there is none.
std::vector<golden_case> read_golden_cases(const std::filesystem::path& folder);

/// The largest |found - expected| over the largest |expected|, by what was compared.
struct golden_errors {
  std::vector<std::pair<std::string, double>> parts;

  double worst() const;
};
