// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Full-graph training of any model under any policy.

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "partita/nn/gradient_check.hpp"
#include "partita/train/feature_matrix.hpp"
#include "partita/train/objective.hpp"
#include "partita/train/training.hpp"

namespace partita::nn {

/// Trains one model on a whole graph. Collective over the mesh, with the same data on every rank: constructor
/// and members.
template <class T, class Device>
class trainer : public training<T, Device> {
  using above = training<T, Device>;
  using above::embedding_optimizer_;
  using above::optimizer_;
  using above::rate_;

 protected:
  using above::mesh_;
  using above::options_;

 public:
  /// The vertices have the model's row blocking. Uses epochs, learning_rate, raw_features and embedding (with
  /// seed) of the options; dropout, weight decay and blocks are fixed by the model, which for an embedding is
  /// built with model_options::learned_input. With matrix_contents::unread only predicted() may be called.
  /// Throws input_error when the training set is
  /// empty, and shape_error when the width of the logits differs from the number of classes.
  trainer(const mesh<Device>& m, const io::dataset& data, const training_options& options,
          nn::model<T, Device> net, matrix_contents input = matrix_contents::filled)
      : above(m, data, options),
        objective_(m, data, options, net.row_blocking()),
        features_(m, data, options, net.row_blocking(), input),
        model_(std::move(net)),
        gradient_(m, model_.row_blocking(), blocking::even(data.classes, m.shape(), nesting::cols)) {
    if (model_.width() != data.classes)
      base::throw_error<shape_error>({data.name, " has ", data.classes,
                                      " classes, the logits of the model have ", model_.width(), " columns"});
  }

  nn::model<T, Device>& model() { return model_; }
  const nn::model<T, Device>& model() const { return model_; }
  nn::parameters<T, Device>& parameters() override { return model_.parameters(); }
  model_outputs<T> outputs(bool with_hidden) override {
    const auto& logits = evaluate();  // (n, classes)
    return detail::outputs_of(logits, model_.hidden(), with_hidden);
  }
  /// The embedding X (n x w), learned as a parameter without weight decay by nn::sparse_adam, in which every
  /// row takes part in every step; null where the data's features are the input.
  dense<T, vertex_rows, Device>* embedding() { return features_.learned(); }
  /// The input X, features or embedding, where it is stored as S; see feature_matrix::dense_rows.
  template <class S = T>
  dense<S, vertex_rows, Device>* dense_input() {
    return features_.template dense_rows<S>();
  }
  /// d loss / d X of the last step. A step must precede the call.
  const dense<T, vertex_rows, Device>& embedding_gradient() const { return embedding_gradient_.value(); }
  /// The logits (n x classes) of the current model, without dropout. Valid until the next forward.
  const dense<T, vertex_rows, Device>& evaluate() { return model_.forward(features_.input(), {}); }

  std::array<double, 3> split_scores(int) override { return objective_.split_scores(evaluate()); }

  void set_loss(loss_function<T, Device> own) override { objective_.set_loss(std::move(own)); }
  /// What travels: a forward pass, and see objective::scores.
  task_scores scores() override { return objective_.scores(evaluate()); }

  /// The deviation of a training step's gradients from finite differences; see nn::gradient_error.
  double gradient_error(double step) {
    const auto loss = [&](const auto& logits, auto& gradient) { return objective_.loss(logits, gradient); };
    return nn::gradient_error(model_, features_.input(), loss, step, {.training = true, .epoch = 1});
  }

  /// What this rank will move between near and far memory in a steady epoch, evaluation included: the sum of
  /// the closed forms of its operations. To find it, two epochs and an evaluation are dry-run: operations on
  /// far rows neither move nor compute; operations on near matrices, and those that address far ones in
  /// place, run. Afterwards the model and the optimisers are unchanged, and the products are planned. Nothing
  /// without far memory; not for a reproducible mesh. What travels: the messages of two epochs and an
  /// evaluation.
  far_forecast forecast();

  /// What this rank receives in the training step of a steady epoch, in closed form.
  traffic predicted() const override { return predicted_step(mesh_, model_); }

  static traffic predicted_step(const mesh<Device>& m, const nn::model<T, Device>& net) {
    return net.predicted() + algebra::predicted_sum<double>(m, 1);  // of the loss
  }

 protected:
  /// The loss of a step and its gradient, where it is not one of vertices.
  virtual std::optional<double> loss_of_pairs(int, const dense<T, vertex_rows, Device>&,
                                              dense<T, vertex_rows, Device>&) {
    return {};
  }
  /// Writes the gradients of parameters that are not the model's own.
  virtual void add_gradients() {}

 private:
  /// What travels: the model's forward and backward pass, the sums of all gradients, one all-reduce of the
  /// loss.
  double train_epoch(epoch_report& report) override;
  void read_loss(epoch_report& report) override {
    if (loss_) {
      report.loss = *loss_;
      return;
    }
    const comm::phase_scope phase(mesh_.ledger(), "forward");
    report.loss = objective_.finish_loss();
  }
  /// Whether a step is the same each time, and waits for nothing: on one rank, of layers that repeat, with a
  /// loss that is late.
  bool repeats() const {
    return mesh_.size() == 1 && options_.clip == 0 && options_.embedding == 0 && objective_.is_late() &&
           model_.repeats();
  }
  std::optional<typename above::rows> learned_rows() override {
    auto* const x = embedding();
    if (x == nullptr) return {};
    return above::rows::view(mesh_, vertex_rows, x->row_blocking(), x->col_blocking(), x->values());
  }
  std::optional<far_forecast> foretold() override { return forecast(); }

  objective<T, Device> objective_;
  feature_matrix<T, Device> features_;
  nn::model<T, Device> model_;
  dense<T, vertex_rows, Device> gradient_;
  std::optional<double> loss_;  ///< of the last step, where it is not late
  memory::captured<Device> repeated_;
  std::optional<dense<T, vertex_rows, Device>> embedding_gradient_;
};

template <class T, class Device>
double trainer<T, Device>::train_epoch(epoch_report& report) {
  const auto epoch = static_cast<std::uint64_t>(report.epoch);
  const auto step = [&](memory::step_numbers* numbers) {
    {
      const comm::phase_scope phase(mesh_.ledger(), "forward");
      pass p{.training = true, .epoch = epoch};
      p.numbers = numbers;
      const auto& logits = model_.forward(features_.input(), p);
      loss_ = loss_of_pairs(report.epoch, logits, gradient_);
      if (!loss_ && objective_.is_late())
        objective_.start_loss(logits, gradient_);
      else if (!loss_)
        loss_ = objective_.loss(logits, gradient_);
    }
    auto* const x = embedding();
    if (x != nullptr && !embedding_gradient_)
      embedding_gradient_.emplace(mesh_, x->row_blocking(), x->col_blocking());  // (n, w)
    {
      const comm::phase_scope phase(mesh_.ledger(), "backward");
      model_.backward(gradient_, embedding_gradient_ ? &*embedding_gradient_ : nullptr);
      add_gradients();
    }
    this->move_parameters(numbers);
    if (x != nullptr) embedding_optimizer_.step(*x, *embedding_gradient_);
  };
  if (repeats())
    repeated_(mesh_.queue(), epoch, step);
  else
    step(nullptr);
  return 0;
}

template <class T, class Device>
far_forecast trainer<T, Device>::forecast() {
  far_forecast steady, other;
  auto* const channel = far_of(mesh_.queue());
  if (channel == nullptr) return steady;
  auto& values = model_.parameters().values();
  auto* const x = embedding();
  if (x != nullptr && !embedding_gradient_)
    embedding_gradient_.emplace(mesh_, x->row_blocking(), x->col_blocking());  // (n, w)
  // Operations on parameters, and on an embedding, run if these are near.
  const std::vector<T> kept = detail::block_in_host_memory(values);
  std::vector<T> kept_rows;
  if (x != nullptr && !channel->is_far(embedding_gradient_->values().data()))
    kept_rows = detail::block_in_host_memory(*x);
  const learning_rate rate = rate_;
  auto optimizer = std::exchange(
      optimizer_, nn::optimizer<T, Device>({options_.optimizer, options_.learning_rate, options_.momentum}));
  auto embedding_optimizer =
      std::exchange(embedding_optimizer_, nn::sparse_adam<T, Device>(options_.learning_rate));
  const auto rehearse = [&](far_forecast& to, const auto& work) {
    const memory::far_rehearsal rehearsal(*channel, to);
    work();
  };
  rehearse(other, [&] { this->epoch(options_.epochs); });
  const memory::far_traffic before = channel->traffic();
  rehearse(steady, [&] { this->epoch(options_.epochs); });
  if (const memory::far_traffic run = channel->traffic() - before; run.read + run.written > 0)
    steady.add("operation that was run", run);
  // What layers keep of a constant input is not there: they compute it again after one that is not.
  rehearse(other, [&] {
    features_.input().visit([&](auto& input) { model_.forward(algebra::operand<T, Device>(input), {}); });
  });
  rate_ = rate;
  optimizer_ = std::move(optimizer);
  embedding_optimizer_ = std::move(embedding_optimizer);
  copy(mesh_.queue(), std::span<const T>(kept), values.values());
  if (!kept_rows.empty()) copy(mesh_.queue(), std::span<const T>(kept_rows), x->values());
  return steady;
}

/// Trains a user-defined model on the whole graph, as trainer does with these options. Collective over the
/// mesh, with the same data on every rank. What travels and exceptions: see trainer; also error for options
/// of mini-batches and stages.
template <class T, class Device>
training_result train_model(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                            nn::model<T, Device> net, const epoch_observer& observe = {},
                            const run_hooks<T>& how = {}) {
  if (options.mini_batch.batch > 0 || options.pipeline.stages > 0)
    throw error("train_model trains on the whole graph; for mini-batches and stages call nn::train");
  return trainer<T, Device>(m, data, options, std::move(net)).run(observe, how);
}

}  // namespace partita::nn
