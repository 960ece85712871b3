// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What `train` shows and writes.

#include "run.hpp"

/// Prints a line an epoch, at most a few a second, with scores, accuracies, micro-F1 or R^2, and the time
/// that is left. Only for one rank.
partita::nn::epoch_observer progress_printer(int epochs, partita::io::task task);

/// The run as JSON (docs/train.md names every key). Throws partita::error when the file cannot be written.
void write_json(const std::string& path, const command& c, int ranks, const outcome& run,
                const partita::io::dataset& data);

/// What `auto` chose from, a line each, and on stderr what is odd about the mesh. Only for one rank.
void print_start(const outcome& run);

/// What an epoch over far memory will move, in chunks of what sizes. Only for one rank.
void print_forecast(const partita::far_forecast& f, const partita::memory::far_rates& rates);

/// Some lines for a person.
void print_summary(const std::string& policy, int ranks, const partita::nn::training_result& result,
                   partita::io::task task);
