// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the command line of `train` asks for.

#include <optional>
#include <string>

#include "partita/train/options.hpp"

struct command {
  std::string data;
  std::string policy = "auto";
  std::optional<int> ranks;
  std::optional<std::string> mesh;  ///< "RxCxD"
  std::optional<int> replication;
  std::optional<int> threads;  ///< of each rank; known when ranks train
  std::string comm = "threads";
  std::string device = "cpu";
  std::string precision = "f32";
  std::string json;
  bool quiet = false;
  partita::nn::training_options training;
};
