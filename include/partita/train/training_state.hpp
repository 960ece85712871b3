// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What training goes on from, whatever the ranks, their policy and their stages.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "partita/memory/far_forecast.hpp"
#include "partita/train/fields.hpp"
#include "partita/train/state_dict.hpp"

namespace partita::nn {

namespace detail {

/// Throws error for options of training that do not go together, input_error for relations of data without.
inline void require_training(const training_options& o, const io::dataset& data) {
  for (const field& f : fields)
    if (f.group == field_group::training && !f.name.starts_with("schedule-") && !is_default(f, o) &&
        !f.mode.refusal(o).empty())
      base::throw_error<error>({"option ", f.name, f.mode.refusal(o)});
  if (o.evaluate_every < 1)
    base::throw_error<error>({"an evaluation is for at least one epoch, not ", o.evaluate_every});
  const model_row* const row = find_row(o);
  if (row != nullptr && row->reads_edge_types() && data.relations == 0)
    base::throw_error<input_error>({data.name, ": relations need the type of each edge, edge_type.npy"});
}

}  // namespace detail

/// A run between two epochs.
template <class T>
struct training_state {
  std::vector<epoch_report> epochs;  ///< of all epochs so far, without comparisons
  int steps = 0;                     ///< of the optimisers
  /// Each parameter in the order of the model, then an embedding (n x w) by the numbers of vertices in the
  /// data; each followed by what the optimiser has of it, adam.first.NAME and adam.second.NAME, or
  /// sgd.momentum.NAME, and, with patience, by best.NAME, its values in the best epoch.
  state_dict<T> tensors = {};
};

/// How a run resumes an earlier one and saves its own state, and who observes its forecast.
/// Either all ranks have a function, or none has; `load`, `initial` and `save` are called on
/// the first rank.
template <class T>
struct run_hooks {
  /// When the trainer has been set up: what to begin with, or nothing for a new run.
  std::function<std::optional<training_state<T>>()> load = {};
  /// For a new run: the parameters to begin with, and the rows of an embedding; see training::assign.
  std::function<state_dict<T>()> initial = {};
  std::string source = "the state";  ///< what messages call `initial`
  /// Called at a fixed interval of epochs, after the last one, and when the run is stopped; in that case
  /// without the scores of an evaluation that is made only because the run ends.
  std::function<void(training_state<T>)> save = {};
  int every = 1;
  /// After each epoch: whether to end the run there. It ends if any rank says so.
  std::function<bool()> stop = {};
  /// Before the first epoch over far memory, on every rank: its trainer::forecast.
  std::function<void(const far_forecast&)> forecast = {};
  /// The number in the data of each row of the embedding, where the dataset was reordered (see
  /// io::reordered), on the first rank; empty: the row's own.
  std::span<const global_index> old_number = {};
};

}  // namespace partita::nn
