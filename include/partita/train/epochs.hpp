// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What every way of training does around its epochs.

#include <cmath>
#include <functional>
#include <string>

#include "partita/comm/mesh.hpp"
#include "partita/train/summary.hpp"

namespace partita::nn {

/// epoch(1), ..., epoch(epochs), and their results, without predicted_words_received. The mesh's ledger is
/// cleared before each; what travels in the phase "evaluation" is not counted as training. Collective over
/// the mesh. Throws error naming `name` when a loss is not finite.
template <class Device>
training_result run_epochs(const mesh<Device>& m, const std::string& name, int epochs,
                           const std::function<epoch_report(int)>& epoch, const epoch_observer& observe) {
  training_result result;
  result.mesh = m.shape();
  const auto setup_peak = static_cast<global_index>(m.queue().meter()->peak());
  double best = -1;
  for (int e = 1; e <= epochs; ++e) {
    m.ledger().clear();
    const epoch_report report = epoch(e);
    result.epochs.push_back(report);
    if (report.validation_accuracy > best) {
      best = report.validation_accuracy;
      result.best_validation_epoch = e;
      result.test_accuracy_at_best_validation = report.test_accuracy;
    }
    if (!std::isfinite(report.loss))
      throw_error<error>({name, ": the loss is not finite in epoch ", e, "; a lower learning rate may help"});
    if (observe) observe(report);
  }

  const std::vector<ledger_entry> last = m.ledger().entries();
  const traffic step = m.ledger().total([](const ledger_entry& e) { return e.phase != "evaluation"; });
  const phase_scope phase(m.ledger(), "summary");
  result.ledger = merge_ledgers(m.world(), last);
  result.words_received = summarize(m.world(), step.words);
  result.messages = summarize(m.world(), step.messages);
  result.peak_bytes = summarize(m.world(), static_cast<global_index>(m.queue().meter()->peak()));
  result.setup_peak_bytes = summarize(m.world(), setup_peak);
  std::vector<double> seconds;
  for (const epoch_report& e : result.epochs) seconds.push_back(e.seconds);
  result.seconds_per_epoch = median(std::move(seconds));
  return result;
}

}  // namespace partita::nn
