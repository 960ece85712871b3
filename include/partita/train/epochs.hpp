// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What every way of training does around its epochs.

#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "partita/comm/mesh.hpp"
#include "partita/train/finite.hpp"
#include "partita/train/summary.hpp"
#include "partita/train/training_state.hpp"

namespace partita::nn {

namespace detail {

/// The reports of the first rank, on every rank. Collective. What travels: five numbers for each.
inline void broadcast_reports(const communicator& world, std::vector<epoch_report>& reports) {
  reports.resize(static_cast<std::size_t>(world.broadcast(static_cast<global_index>(reports.size()), 0)));
  std::vector<double> numbers;
  for (const epoch_report& r : reports)
    numbers.insert(numbers.end(),
                   {r.loss, r.train_accuracy, r.validation_accuracy, r.test_accuracy, r.seconds});
  world.broadcast(numbers, 0);
  for (std::size_t k = 0; k < reports.size(); ++k) {
    const double* const n = &numbers[5 * k];
    reports[k] = {static_cast<int>(k) + 1, n[0], n[1], n[2], n[3], n[4], {}};
  }
}

/// Gives the trainer what the run begins with; returns the reports of earlier epochs, none for a new run.
template <class T, class Trainer>
std::vector<epoch_report> begin_run(const communicator& world, Trainer& training, int epochs,
                                    const continuation<T>& how) {
  if (!how.load) return {};
  std::optional<training_state<T>> found;
  if (world.rank() == 0) found = how.load();
  if (world.broadcast(static_cast<int>(found.has_value()), 0) == 0) return {};
  training_state<T> state = found ? *std::move(found) : training_state<T>{};
  broadcast_reports(world, state.epochs);
  if (std::ssize(state.epochs) > epochs)
    base::throw_error<error>(
        {state.epochs.size(), " epochs have been trained, more than the ", epochs, " that are asked for"});
  for (auto* const list : {&state.of_embedding.values, &state.of_embedding.first, &state.of_embedding.second})
    permute_rows(*list, how.old_number, false);
  std::vector<epoch_report> reports = state.epochs;
  training.restore(std::move(state));
  return reports;
}

template <class T, class Trainer>
void save_run(const communicator& world, Trainer& training, const std::vector<epoch_report>& reports,
              const continuation<T>& how) {
  training_state<T> state = training.state();
  if (world.rank() != 0) return;
  state.epochs = reports;
  for (auto* const list : {&state.of_embedding.values, &state.of_embedding.first, &state.of_embedding.second})
    permute_rows(*list, how.old_number, true);
  how.save(std::move(state));
}

/// What how.forecast was told, if it is there and this way of training, on a queue with far memory, can tell.
template <class T, class Device, class Trainer>
std::optional<memory::far_traffic> forecast_of(const mesh<Device>& m, Trainer& training,
                                               const continuation<T>& how) {
  if constexpr (requires { training.forecast(); })
    if (how.forecast && far_of(m.queue()) != nullptr && !m.reproducible()) {
      const far_forecast found = training.forecast();
      how.forecast(found);
      return found.total();
    }
  return {};
}

}  // namespace detail

/// The epochs that are left up to number `epochs`, each a call of training.epoch(number), and the results,
/// without predicted_words_received. All ranks have far memory, or none has. The mesh's ledger is cleared
/// before each; what travels in the phases "evaluation" and "checkpoint" is not counted as training.
/// Collective over the mesh. Throws error naming `name` when a loss, a gradient or a parameter is not finite,
/// which it names, before any of it is saved, and when more epochs are
/// behind than `epochs`; what how.load and how.save throw.
template <class T, class Device, class Trainer>
training_result run_epochs(const mesh<Device>& m, const std::string& name, int epochs, Trainer& training,
                           const epoch_observer& observe, const continuation<T>& how) {
  training_result result;
  result.mesh = m.shape();
  const auto setup_peak = static_cast<global_index>(m.queue().meter()->peak());
  double distribute[] = {m.ledger().seconds_in("distribute")};
  m.world().all_reduce(distribute, reduction::max);
  result.distribute_seconds = distribute[0];
  const std::optional<memory::far_traffic> predicted = detail::forecast_of(m, training, how);
  result.first_epoch = std::chrono::steady_clock::now();
  double best = -1;
  const auto add = [&](const epoch_report& report) {
    result.epochs.push_back(report);
    if (!(report.validation_accuracy > best)) return;  // also where there is none
    best = report.validation_accuracy;
    result.best_validation_epoch = report.epoch;
    result.test_accuracy_at_best_validation = report.test_accuracy;
  };
  {
    const comm::phase_scope phase(m.ledger(), "checkpoint");
    for (const epoch_report& r : detail::begin_run(m.world(), training, epochs, how)) add(r);
  }
  result.resumed_from = static_cast<int>(result.epochs.size());
  std::vector<comm::ledger_entry> last;
  traffic step;
  auto* const far = far_of(m.queue());
  memory::far_traffic before, of_epoch;
  for (int e = result.resumed_from + 1; e <= epochs && !result.stopped; ++e) {
    m.ledger().clear();
    if (far != nullptr) before = far->traffic();
    const epoch_report report = training.epoch(e);
    if (far != nullptr) of_epoch = far->traffic() - before;
    add(report);
    if (!std::isfinite(report.loss))
      base::throw_error<error>(
          {name, ": the loss is not finite in epoch ", e, "; a lower learning rate may help"});
    if (!report.not_finite.empty())
      base::throw_error<error>(
          {name, ": ", report.not_finite, " is not finite in epoch ", e,
           "; features or weights of edges may be too large or too small for this precision, "
           "or the learning rate too high"});
    if (observe) observe(report);
    if (how.stop && e < epochs) {
      const comm::phase_scope phase(m.ledger(), "evaluation");
      result.stopped = m.world().all_reduce(static_cast<int>(how.stop()), reduction::max) > 0;
    }
    const bool ends = e == epochs || result.stopped;
    if (ends) {
      last = m.ledger().entries();
      step = m.ledger().total([](const comm::ledger_entry& entry) { return entry.phase != "evaluation"; });
    }
    if (how.save && (ends || e % how.every == 0)) {
      const comm::phase_scope phase(m.ledger(), "checkpoint");
      detail::save_run(m.world(), training, result.epochs, how);
    }
  }

  const comm::phase_scope phase(m.ledger(), "summary");
  result.ledger = merge_ledgers(m.world(), last);
  result.words_received = summarize(m.world(), step.words);
  result.messages = summarize(m.world(), step.messages);
  result.peak_bytes = summarize(m.world(), static_cast<global_index>(m.queue().meter()->peak()));
  result.setup_peak_bytes = summarize(m.world(), setup_peak);
  if (far != nullptr) result.far = summarize_far(m.world(), of_epoch, predicted, far->meter().peak());
  std::vector<double> seconds;
  for (std::size_t k = static_cast<std::size_t>(result.resumed_from); k < result.epochs.size(); ++k)
    seconds.push_back(result.epochs[k].seconds);
  result.seconds_per_epoch = median(std::move(seconds));
  return result;
}

}  // namespace partita::nn
