#pragma once
/// Full-graph training of any model under any policy.

#include <cmath>

#include "partita/nn/optimizer.hpp"
#include "partita/train/models.hpp"
#include "partita/train/objective.hpp"
#include "partita/train/summary.hpp"

namespace partita {

/// One model in training. Every rank of the mesh must construct it and call its members.
template <class T, class Place>
class trainer {
 public:
  trainer(const mesh<Place>& m, const dataset& data, const training_options& options,
          std::unique_ptr<model<T, Place>> net);

  /// A training step, and the loss before it. What travels: forward and backward of the model, one all-reduce
  /// of all gradients, one of the loss. The device may still be at work when it returns.
  double step(int number);
  /// A training step and the evaluation after it.
  epoch_report epoch(int number);

  /// What this rank receives in the training step of a steady epoch, in closed form.
  volume predicted() const { return predicted_step(mesh_, *model_); }

  static volume predicted_step(const mesh<Place>& m, const model<T, Place>& net) {
    collective loss;
    loss.kind = operation::all_reduce;
    loss.count = 1;
    return net.predicted() + received(loss, m.rank(), m.size());
  }

 private:
  mesh<Place> mesh_;
  training_options options_;
  objective<T, Place> objective_;
  input_features<T, Place> x_;
  std::unique_ptr<model<T, Place>> model_;
  adam<T, Place> optimizer_;
  dense<T, vertex_rows, Place> gradient_;
};

template <class T, class Place>
trainer<T, Place>::trainer(const mesh<Place>& m, const dataset& data, const training_options& options,
                           std::unique_ptr<model<T, Place>> net)
    : mesh_(m),
      options_(options),
      objective_(m, data),
      x_(distribute_features<T>(m, data, options.raw_features)),
      model_(std::move(net)),
      optimizer_(options.learning_rate),
      gradient_(m, extent{data.vertices, data.classes}) {}

template <class T, class Place>
double trainer<T, Place>::step(int number) {
  double loss = 0;
  {
    const phase_scope phase(mesh_.ledger(), "forward");
    const auto& logits =
        model_->forward(x_, {options_.dropout, options_.seed, static_cast<std::uint64_t>(number)});
    loss = objective_.loss(logits, gradient_);
  }
  {
    const phase_scope phase(mesh_.ledger(), "backward");
    model_->backward(gradient_);
  }
  optimizer_.step(model_->parameters());
  return loss;
}

template <class T, class Place>
epoch_report trainer<T, Place>::epoch(int number) {
  epoch_report report;
  report.epoch = number;
  const double begin = detail::seconds_now();
  report.loss = step(number);
  mesh_.queue().synchronize();
  const double mine = detail::seconds_now() - begin;

  const phase_scope phase(mesh_.ledger(), "evaluation");
  double slowest[] = {mine};
  mesh_.world().all_reduce(slowest, reduction::max);
  report.seconds = slowest[0];
  const auto& logits = model_->forward(x_, {});
  report.train_accuracy = objective_.score(logits, split_part::train);
  report.validation_accuracy = objective_.score(logits, split_part::validation);
  report.test_accuracy = objective_.score(logits, split_part::test);
  return report;
}

/// What one training step of train_model would receive under a policy, without training. Every rank of the
/// mesh must call. What travels: the graph, as distribute says.
template <class T, class Place>
over_ranks predict_words(const mesh<Place>& m, const dataset& data, const training_options& options,
                         const policy& p) {
  const auto net = make_model<T>(m, data, options, p);
  return summarize(m.world(), trainer<T, Place>::predicted_step(m, *net).elements);
}

/// Trains a model on the whole graph; `options` say how. Every rank of the mesh must call, with the same
/// data.
///
/// What travels in an epoch: the model's forward and backward, one all-reduce of all gradients, one of the
/// loss; the evaluation after it runs forward once more and is entered in the ledger apart. Throws
/// input_error when the training set is empty, error when the loss is not finite.
template <class T, class Place>
training_result train_model(const mesh<Place>& m, const dataset& data, const training_options& options,
                            std::unique_ptr<model<T, Place>> net, const epoch_observer& observe = {}) {
  trainer<T, Place> training(m, data, options, std::move(net));
  training_result result;
  result.mesh = m.shape();
  double best = -1;
  for (int e = 1; e <= options.epochs; ++e) {
    m.ledger().clear();
    const epoch_report report = training.epoch(e);
    result.epochs.push_back(report);
    if (report.validation_accuracy > best) {
      best = report.validation_accuracy;
      result.best_validation_epoch = e;
      result.test_accuracy_at_best_validation = report.test_accuracy;
    }
    if (!std::isfinite(report.loss))
      throw error(data.name + ": the loss is not finite in epoch " + std::to_string(e) +
                  "; a lower learning rate may help");
    if (observe) observe(report);
  }

  const std::vector<ledger_entry> last = m.ledger().entries();
  const volume step =
      m.ledger().total([](const ledger_entry& e) { return e.phase == "forward" || e.phase == "backward"; });
  const phase_scope phase(m.ledger(), "summary");
  result.ledger = merge_ledgers(m.world(), last);
  result.words_received = summarize(m.world(), step.elements);
  result.messages = summarize(m.world(), step.messages);
  result.predicted_words_received = summarize(m.world(), training.predicted().elements);
  result.peak_bytes = summarize(m.world(), static_cast<global_index>(m.queue().meter()->peak()));
  std::vector<double> seconds;
  for (const epoch_report& e : result.epochs) seconds.push_back(e.seconds);
  result.seconds_per_epoch = median(std::move(seconds));
  return result;
}

/// The same of the model that `options` name, under a policy. Throws mesh_error when the mesh does not suit
/// it.
template <class T, class Place>
training_result train_model(const mesh<Place>& m, const dataset& data, const training_options& options,
                            const policy& p, const epoch_observer& observe = {}) {
  require_mesh(p, m.shape(), m.size());
  return train_model(m, data, options, make_model<T>(m, data, options, p), observe);
}

}  // namespace partita
