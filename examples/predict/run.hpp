// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of `predict` that are translation units of their own.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "../ranks/arrangement.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/train/model_file.hpp"
#include "partita/train/objective.hpp"

struct predict_command {
  std::string model, data, out;
  std::string links;  ///< file of pairs whose scores are wanted; empty: rows of vertices are
  std::string policy = "row_1d";
  std::optional<int> ranks;
  std::optional<std::string> mesh;  ///< "RxCxD"
  std::optional<int> threads;       ///< of each rank; known when ranks predict
  std::string comm = "threads";
  std::string device = "cpu";
  std::string precision;  ///< of the model, where none is given
  bool quiet = false;
  std::string task;                         ///< classes, labels or values; empty: as the labels are stored
  std::optional<std::size_t> unpack_limit;  ///< bytes of an array of features
  std::optional<double> timeout;            ///< of a wait, in seconds
};

/// A model and the graph on which it predicts.
struct prediction_task {
  partita::io::safetensors_file file;
  partita::nn::saved_model model;
  partita::io::dataset data;
  bool has_labels = false;
  partita::io::array<partita::io::edge> pairs;  ///< of --links
};

/// Predictions that are right and wrong, in the training, validation and test set.
using split_counts = std::array<partita::nn::score_counts, 3>;

/// Writes the logits, or the scores of pairs, to c.out; every rank must call, and the first writes. Returns
/// there the counts, where the data has labels.
split_counts predict_on_cpu(const partita::communicator& world, const arrangement& how,
                            const prediction_task& task, const predict_command& c);

/// The same on CUDA devices: see cuda_queue. Throws error when this program was built without CUDA.
split_counts predict_on_cuda(const partita::communicator& world, const arrangement& how,
                             const prediction_task& task, const predict_command& c);
