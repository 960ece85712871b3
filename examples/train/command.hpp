// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What the command line of `train` asks for.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ordering.hpp"
#include "partita/train/options.hpp"

/// The words that name the values of an option.
template <class T>
using value_names = std::vector<std::pair<std::string, T>>;

inline const value_names<partita::nn::chunk_history> history_names{
    {"window", partita::nn::chunk_history::window},
    {"exact", partita::nn::chunk_history::exact},
    {"halo", partita::nn::chunk_history::halo},
    {"zero", partita::nn::chunk_history::zero},
};

/// Whether neighbours are kept for a window of epochs.
inline bool keeps_window(partita::nn::chunk_history history) {
  return history == partita::nn::chunk_history::window || history == partita::nn::chunk_history::halo;
}

inline const value_names<partita::nn::guard_action> guard_action_names{
    {"report", partita::nn::guard_action::report},   {"refresh", partita::nn::guard_action::refresh},
    {"warm-up", partita::nn::guard_action::warm_up}, {"exact", partita::nn::guard_action::exact},
    {"stop", partita::nn::guard_action::stop},
};

struct command {
  std::vector<std::string> words;  ///< as they were given, the program's name first
  std::string data;
  std::string policy = "auto";
  std::optional<int> ranks;
  std::optional<std::string> mesh;  ///< "RxCxD"
  std::optional<int> replication;
  std::optional<int> threads;  ///< of each rank; known when ranks train
  ordering partition;
  std::string chunk_cut = "even";  ///< or nonzeros, or metis
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
