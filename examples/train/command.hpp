// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the command line of `train` asks for.

#include <optional>
#include <string>
#include <vector>

#include "ordering.hpp"
#include "partita/train/options.hpp"

struct command {
  std::vector<std::string> words;  ///< as they were given, the program's name first
  std::string data;
  std::string policy = "auto";
  std::optional<int> ranks;
  std::optional<std::string> mesh;  ///< "RxCxD"
  std::optional<int> replication;
  std::optional<int> threads;  ///< of each rank; known when ranks train
  ordering partition;
  std::string comm = "threads";
  std::string device = "cpu";
  std::string precision = "f32";
  std::string json;
  bool quiet = false;
  partita::nn::training_options training;
};

/// Whether --data names the graph that is built in, and no directory hides it.
bool is_built_in(const std::string& data);

/// Prints the help or the version and exits where that is asked for. Throws usage_error.
command parse_command(int argc, char** argv);
