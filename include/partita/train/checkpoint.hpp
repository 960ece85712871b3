// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs that go on after they were killed. Needs nlohmann-json and POSIX.

#include <cmath>
#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partita/io/checkpoint_folder.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/train/fields.hpp"
#include "partita/train/finite.hpp"
#include "partita/train/model_file.hpp"
#include "partita/train/training_state.hpp"

namespace partita::nn {

/// Where checkpoints are, and what becomes of them.
struct checkpoint_options {
  std::filesystem::path folder;
  int every = 10;       ///< epochs
  int keep = 2;         ///< so many of the newest ones
  bool resume = false;  ///< from the newest whole one; otherwise the folder may have none
};

namespace detail {

inline constexpr char options_prefix[] = "option.";

/// By name, what must be as it was for a run to go on: what says which parameters there are, and how a step
/// changes them. Ranks, policies, stages and the number of epochs may differ.
template <class T>
io::tensor_metadata lasting_options(training_options o, const io::dataset& data) {
  if (o.schedule.curve == rate_curve::cosine)
    o.schedule = schedule_of(o);  // which has a period of the epochs
  const std::string prefix = options_prefix;
  io::tensor_metadata found{{prefix + "precision", std::same_as<T, double> ? "f64" : "f32"},
                            {prefix + "vertices", std::to_string(data.vertices)},
                            {prefix + "features", std::to_string(data.features)},
                            {prefix + "classes", std::to_string(data.classes)}};
  if (data.task != io::task::classes) found[prefix + "task"] = detail::word_of(data.task);
  for (const field& f : fields) {
    const bool kept = f.kept >= field_kept::by_checkpoints ||
                      (f.kept == field_kept::by_checkpoints_if_given && !is_default(f, o));
    if (!kept || !f.mode.refusal(o).empty()) continue;
    const std::string text = text_of(f, o);
    found[prefix + std::string(f.name)] = text == "true" ? "yes" : text == "false" ? "no" : text;
  }
  return found;
}

/// "with --dropout 0.5", "without --embedding" or "on data of 34 vertices": what an option says of a run.
inline std::string phrase_of(const std::string& name, const std::string& value) {
  if (name == "vertices" || name == "features" || name == "classes")
    return "on data of " + value + " " + name;
  if (name == "task") return "for " + (value.empty() ? word_of(io::task::classes) : value);
  const auto f = std::ranges::find(fields, name, &field::name);
  const bool is_off =
      value.empty() || value == "no" || (f != fields.end() && f->range.or_none && value == text_of(*f, {}));
  return (is_off ? "without --" : "with --") + name + (is_off || value == "yes" ? "" : " " + value);
}

/// Throws input_error, which names the first option that differs.
inline void require_options(const io::safetensors_file& file, const io::tensor_metadata& wanted) {
  const auto require_equal = [&](const std::string& key, const std::string& there, const std::string& here) {
    const std::string name = key.substr(sizeof(options_prefix) - 1);
    if (there == here || (there.empty() && name == "task" && here == "labels")) return;  // as of older ones
    base::throw_error<input_error>({file.name(), ": that run was trained ",
                                    phrase_of(name, io::printable(there)), ", this one is ",
                                    phrase_of(name, here)});
  };
  const io::tensor_metadata& had = file.metadata();
  for (const auto& [key, value] : wanted) {
    const auto found = had.find(key);
    require_equal(key, found == had.end() ? "" : found->second, value);
  }
  for (const auto& [key, value] : had)
    if (key.starts_with(options_prefix) && !wanted.contains(key)) require_equal(key, value, "");
}

inline int number_in(const io::safetensors_file& file, const std::string& key) {
  int number = 0;
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end() || !parse_number(found->second, number, -HUGE_VAL))
    base::throw_error<input_error>({file.name(), ": its ", key, " is not a number"});
  return number;
}

/// Columns of the tensor "epochs".
inline constexpr std::size_t report_columns = 5;
inline constexpr char epochs_name[] = "epochs";

}  // namespace detail

/// Writes a run as the checkpoint of its last epoch: the tensors of the state under their names; `epochs`
/// (epochs x 5): loss, accuracies in training, validation and test, seconds; epochs without an evaluation
/// have accuracies that are not numbers. The metadata has steps, the best epoch by validation, and `more`.
/// Local: the first rank calls it. Throws what checkpoint_folder::write throws, and input_error for what is
/// not finite.
template <class T>
void save_state(const io::checkpoint_folder& folder, const training_state<T>& state,
                const io::tensor_metadata& more = {}) {
  for (const parameter_values<T>& t : state.tensors)
    detail::require_finite(std::span(t.values),
                           folder.path_of(static_cast<int>(state.epochs.size())).string(),
                           "what would be saved");
  std::vector<io::named_tensor> tensors = tensors_of(state.tensors);
  std::vector<double> reports;
  const epoch_report* best = nullptr;
  for (const epoch_report& r : state.epochs) {
    reports.insert(reports.end(),
                   {r.loss, r.train_accuracy, r.validation_accuracy, r.test_accuracy, r.seconds});
    if (r.validation_accuracy > (best == nullptr ? -HUGE_VAL : best->validation_accuracy)) best = &r;
  }
  tensors.push_back(io::tensor_of(
      detail::epochs_name, {std::ssize(state.epochs), static_cast<global_index>(detail::report_columns)},
      std::span(reports)));
  io::tensor_metadata metadata = more;
  metadata["steps"] = std::to_string(state.steps);
  if (best != nullptr) {
    metadata["best_validation_epoch"] = std::to_string(best->epoch);
    metadata["best_validation_accuracy"] = std::to_string(best->validation_accuracy);
    metadata["test_accuracy_at_best_validation"] = std::to_string(best->test_accuracy);
  }
  folder.write(static_cast<int>(state.epochs.size()), tensors, std::move(metadata));
}

/// What save_state has written. Local. Throws input_error when something is missing, has another shape or
/// type, or is not finite.
template <class T>
training_state<T> load_state(const io::safetensors_file& file) {
  training_state<T> state;
  state.steps = detail::number_in(file, "steps");
  if (state.steps < 0) base::throw_error<input_error>({file.name(), ": its steps are ", state.steps});
  state.tensors = values_in<T>(file, detail::epochs_name);
  for (const parameter_values<T>& t : state.tensors)
    for (const std::string_view prefix : {"adam.first.", "adam.second.", "sgd.momentum.", "best."})
      if (t.name.starts_with(prefix) &&
          file.at(t.name.substr(prefix.size())).shape != std::vector{t.shape.rows, t.shape.cols})
        base::throw_error<input_error>(
            {file.name(), ": the tensor ", io::printable(t.name), " has another shape than its parameter"});
  const std::vector<global_index>& rows = file.at(detail::epochs_name).shape;
  if (rows.size() != 2 || rows[1] != static_cast<global_index>(detail::report_columns))
    base::throw_error<input_error>({file.name(), ": its epochs do not have 5 numbers each"});
  const std::vector<double> reports = file.values<double>(detail::epochs_name);
  std::vector<double> numbers;  // that every epoch has
  for (std::size_t k = 0; k < reports.size(); ++k)
    if (k % detail::report_columns == 0 || k % detail::report_columns == 4 || !std::isnan(reports[k]))
      numbers.push_back(reports[k]);
  detail::require_finite(std::span<const double>(numbers), file.name(), "the tensor epochs");
  for (std::size_t k = 0; k < reports.size(); k += detail::report_columns) {
    const double* const n = &reports[k];
    state.epochs.push_back({static_cast<int>(state.epochs.size()) + 1, n[0], n[1], n[2], n[3], n[4], {}});
  }
  return state;
}

/// How a run goes on from the checkpoints in a folder, and writes its own there. `tell` is given a sentence
/// for each checkpoint that is passed over because it is damaged, and for a folder that has none to go on
/// from; then the run begins anew. Local, on every rank; the first alone looks at the folder, when its
/// trainer asks. Then throws input_error when the folder has checkpoints and the run is not to go on from
/// them, when the newest whole one is of another model, other data or a run with another option that bears on
/// a step, naming the first that differs, and what checkpoint_folder throws.
template <class T>
run_hooks<T> checkpoints_in(const checkpoint_options& where, const training_options& options,
                            const io::dataset& data, std::function<void(const std::string&)> tell = {}) {
  if (where.every < 1)
    base::throw_error<error>({"a checkpoint is for at least one epoch, not ", where.every});
  const auto folder = std::make_shared<std::optional<io::checkpoint_folder>>();
  const io::tensor_metadata lasting = detail::lasting_options<T>(options, data);
  const auto load = [=]() -> std::optional<training_state<T>> {
    const io::checkpoint_folder& here = folder->emplace(where.folder, where.keep);
    const std::vector<int> epochs = here.epochs();
    if (!where.resume && !epochs.empty())
      base::throw_error<input_error>({where.folder.string(),
                                      ": has checkpoints of an earlier run, the newest of epoch ",
                                      epochs.front(), "; resume it, or take another folder"});
    if (!where.resume) return {};
    const auto say = [&](const std::string& what) {
      if (tell) tell(what);
    };
    const auto file = here.newest([&](const std::string& what) { say(what + "; it is passed over"); });
    if (!file) {
      say(where.folder.string() + " has no checkpoint to resume from; training starts anew");
      return {};
    }
    detail::require_options(*file, lasting);
    return load_state<T>(*file);
  };
  const auto save = [=](const training_state<T>& state) { save_state(**folder, state, lasting); };
  return {.load = load, .save = save, .every = where.every};
}

}  // namespace partita::nn
