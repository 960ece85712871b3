// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Full-graph training of any model under any policy.

#include <chrono>
#include <cmath>

#include "partita/nn/gradient_check.hpp"
#include "partita/nn/optimizer.hpp"
#include "partita/train/graph_data.hpp"
#include "partita/train/objective.hpp"
#include "partita/train/summary.hpp"

namespace partita::nn {

/// Trains one model on a whole graph. Collective over the mesh, with the same data on every rank: constructor
/// and members.
template <class T, class Device>
class trainer {
 public:
  /// The vertices have the model's row blocking. Uses epochs, learning_rate and raw_features of the options;
  /// dropout, weight decay and blocks are fixed by the model. Throws input_error when the training set is
  /// empty, and shape_error when the width of the logits differs from the number of classes.
  trainer(const mesh<Device>& m, const io::dataset& data, const training_options& options,
          nn::model<T, Device> net)
      : mesh_(m),
        name_(data.name),
        options_(options),
        objective_(m, data, net.row_blocking()),
        features_(m, data, options.raw_features, net.row_blocking()),
        model_(std::move(net)),
        optimizer_(options.learning_rate),
        gradient_(m, model_.row_blocking(), blocking::even(data.classes, m.shape(), nesting::cols)) {
    if (model_.width() != data.classes)
      throw_error<shape_error>({data.name, " has ", data.classes, " classes, the logits of the model have ",
                                model_.width(), " columns"});
  }

  /// One training step; returns the loss before the update. What travels: the model's forward and backward
  /// pass, one all-reduce of all gradients, one of the loss. May return before the device has finished.
  double step(int number);
  /// A training step, then an evaluation.
  epoch_report epoch(int number);
  /// All epochs requested in the options. The mesh's ledger is reset in each; the evaluation has a phase of
  /// its own. Throws error when the loss is not finite.
  training_result run(const epoch_observer& observe = {});

  nn::model<T, Device>& model() { return model_; }
  /// The optimiser; its state may be read and written between steps, see nn::adam::state_of.
  nn::adam<T, Device>& optimizer() { return optimizer_; }
  /// The logits (n x classes) of the current model, without dropout. Valid until the next forward.
  const dense<T, vertex_rows, Device>& evaluate() { return model_.forward(features_.input(), {}); }

  /// The deviation of a training step's gradients from finite differences; see nn::gradient_error.
  double gradient_error(double step) {
    const auto loss = [&](const auto& logits, auto& gradient) { return objective_.loss(logits, gradient); };
    return nn::gradient_error(model_, features_.input(), loss, step, {.training = true, .epoch = 1});
  }

  /// What this rank receives in the training step of a steady epoch, in closed form.
  traffic predicted() const { return predicted_step(mesh_, model_); }

  static traffic predicted_step(const mesh<Device>& m, const nn::model<T, Device>& net) {
    comm::collective loss;
    loss.kind = operation::all_reduce;
    loss.count = 1;
    return net.predicted() + received(loss, m.rank(), m.size());
  }

 private:
  mesh<Device> mesh_;
  std::string name_;
  training_options options_;
  objective<T, Device> objective_;
  feature_matrix<T, Device> features_;
  nn::model<T, Device> model_;
  nn::adam<T, Device> optimizer_;
  dense<T, vertex_rows, Device> gradient_;
};

template <class T, class Device>
double trainer<T, Device>::step(int number) {
  double loss = 0;
  {
    const phase_scope phase(mesh_.ledger(), "forward");
    const auto& logits =
        model_.forward(features_.input(), {.training = true, .epoch = static_cast<std::uint64_t>(number)});
    loss = objective_.loss(logits, gradient_);
  }
  {
    const phase_scope phase(mesh_.ledger(), "backward");
    model_.backward(gradient_);
  }
  optimizer_.step(model_.parameters());
  return loss;
}

template <class T, class Device>
epoch_report trainer<T, Device>::epoch(int number) {
  epoch_report report;
  report.epoch = number;
  const auto begin = std::chrono::steady_clock::now();
  report.loss = step(number);
  mesh_.queue().synchronize();
  const std::chrono::duration<double> mine = std::chrono::steady_clock::now() - begin;

  const phase_scope phase(mesh_.ledger(), "evaluation");
  double slowest[] = {mine.count()};
  mesh_.world().all_reduce(slowest, reduction::max);
  report.seconds = slowest[0];
  const auto& logits = evaluate();
  report.train_accuracy = objective_.score(logits, io::split_part::train);
  report.validation_accuracy = objective_.score(logits, io::split_part::validation);
  report.test_accuracy = objective_.score(logits, io::split_part::test);
  return report;
}

template <class T, class Device>
training_result trainer<T, Device>::run(const epoch_observer& observe) {
  const mesh<Device>& m = mesh_;
  training_result result;
  result.mesh = m.shape();
  const auto setup_peak = static_cast<global_index>(m.queue().meter()->peak());
  double best = -1;
  for (int e = 1; e <= options_.epochs; ++e) {
    m.ledger().clear();
    const epoch_report report = epoch(e);
    result.epochs.push_back(report);
    if (report.validation_accuracy > best) {
      best = report.validation_accuracy;
      result.best_validation_epoch = e;
      result.test_accuracy_at_best_validation = report.test_accuracy;
    }
    if (!std::isfinite(report.loss))
      throw_error<error>(
          {name_, ": the loss is not finite in epoch ", e, "; a lower learning rate may help"});
    if (observe) observe(report);
  }

  const std::vector<ledger_entry> last = m.ledger().entries();
  const traffic step =
      m.ledger().total([](const ledger_entry& e) { return e.phase == "forward" || e.phase == "backward"; });
  const phase_scope phase(m.ledger(), "summary");
  result.ledger = merge_ledgers(m.world(), last);
  result.words_received = summarize(m.world(), step.words);
  result.messages = summarize(m.world(), step.messages);
  result.predicted_words_received = summarize(m.world(), predicted().words);
  result.peak_bytes = summarize(m.world(), static_cast<global_index>(m.queue().meter()->peak()));
  result.setup_peak_bytes = summarize(m.world(), setup_peak);
  std::vector<double> seconds;
  for (const epoch_report& e : result.epochs) seconds.push_back(e.seconds);
  result.seconds_per_epoch = median(std::move(seconds));
  return result;
}

/// Trains a user-defined model on the whole graph, as trainer does with these options. Collective over the
/// mesh, with the same data on every rank. What travels and exceptions: see trainer.
template <class T, class Device>
training_result train_model(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                            nn::model<T, Device> net, const epoch_observer& observe = {}) {
  return trainer<T, Device>(m, data, options, std::move(net)).run(observe);
}

}  // namespace partita::nn
