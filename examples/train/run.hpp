// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parts of `train` that are translation units of their own.

#include "command.hpp"
#include "partita/comm/communicator.hpp"
#include "partita/memory/far_forecast.hpp"
#include "partita/train/choose_policy.hpp"

/// What was trained, and how it went.
struct outcome {
  arrangement how;                               ///< of a stage, where there are stages
  std::vector<nn::policy_candidate> candidates;  ///< of `auto`
  nn::training_result result;
  partita::global_index setup_peak_bytes = 0;  ///< of the busiest rank, the trials of `auto` included
  partita::global_index duplicate_edges = 0;   ///< -1: not counted, the data has changed
  std::vector<std::string> notes;              ///< see notes_on
  nn::max_and_total peak_rss_bytes;            ///< of processes
  double read_seconds = 0;                     ///< to read and check the data and to sort its vertices
  double plan_seconds = 0;  ///< from the data to the first epoch, without those of distributing
};

/// Who is told of a run, on the ranks where they are given.
struct observers {
  std::function<void(const outcome&)> begin;  ///< of what will be trained: no result yet
  nn::epoch_observer epoch;
  /// Over far memory, of what an epoch will move, at these rates.
  std::function<void(const partita::far_forecast&, const partita::memory::far_rates&)> forecast;
};

/// What a rank trains. Without `asked`, the candidate with the least product of words and bytes is taken.
struct job {
  const partita::communicator& world;
  std::optional<arrangement> asked;
  const io::dataset& data;
  const command& c;
  observers tell;
};

/// Every rank must call.
outcome train_on_cpu(const job& j);

/// The same on CUDA devices: the first one for all ranks that are threads, one a rank otherwise. Throws error
/// when this program was built without CUDA.
outcome train_on_cuda(const job& j);
