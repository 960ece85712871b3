#pragma once
/// Full-graph training of a GCN under any policy.

#include "partita/nn/gcn.hpp"
#include "partita/nn/optimizer.hpp"
#include "partita/train/graph_data.hpp"
#include "partita/train/summary.hpp"

namespace partita {

namespace detail {

inline std::vector<global_index> gcn_widths(const dataset& data, const training_options& options) {
  std::vector<global_index> widths{data.features};
  widths.insert(widths.end(), options.hidden.begin(), options.hidden.end());
  widths.push_back(data.classes);
  return widths;
}

/// What this rank receives when the loss is summed.
template <class Place>
volume loss_traffic(const mesh<Place>& m) {
  collective op;
  op.kind = operation::all_reduce;
  op.count = 1;
  return received(op, m.rank(), m.size());
}

template <class T, class Policy, class Place>
class trainer {
 public:
  trainer(const mesh<Place>& m, const dataset& data, const training_options& options)
      : mesh_(m),
        options_(options),
        x_(make_features(m, data, options)),
        train_(labels_of(m, data, split_part::train)),
        validation_(labels_of(m, data, split_part::validation)),
        test_(labels_of(m, data, split_part::test)),
        model_(distribute_adjacency<Policy, T>(m, data), gcn_widths(data, options), options.seed),
        optimizer_(options.learning_rate, options.weight_decay),
        gradient_(m, extent{data.vertices, data.classes}) {
    if (data.multi_label)
      throw input_error(data.name + ": training needs one label a vertex, and there are several");
    if (train_.counted() == 0) throw input_error(data.name + ": the training set is empty");
  }

  epoch_report epoch(int number) {
    epoch_report report;
    report.epoch = number;
    const double begin = seconds_now();
    {
      const phase_scope phase(mesh_.ledger(), "forward");
      const auto& logits = forward(options_.dropout, number);
      report.loss = cross_entropy(logits, train_, gradient_);
    }
    {
      const phase_scope phase(mesh_.ledger(), "backward");
      model_.backward(gradient_);
    }
    optimizer_.step(model_.parameters());
    const double mine = seconds_now() - begin;

    const phase_scope phase(mesh_.ledger(), "evaluation");
    double slowest[] = {mine};
    mesh_.world().all_reduce(std::span<double>(slowest), reduction::max);
    report.seconds = slowest[0];
    const auto& logits = forward(0, number);
    report.train_accuracy = accuracy(logits, train_);
    report.validation_accuracy = accuracy(logits, validation_);
    report.test_accuracy = accuracy(logits, test_);
    return report;
  }

  /// What this rank receives in the training step of one epoch, in closed form.
  volume predicted() const { return model_.predicted() + loss_traffic(mesh_); }

 private:
  using features = std::variant<dense<T, vertex_rows, Place>, sparse_features<T, Place>>;

  static features make_features(const mesh<Place>& m, const dataset& data, const training_options& options) {
    if (data.vertex_features.is_sparse()) return local_sparse_features<T>(m, data, options.raw_features);
    return local_features<T>(m, data, options.raw_features);
  }
  const dense<T, vertex_rows, Place>& forward(double dropout, int number) {
    const auto apply = [&](auto& x) {
      return &model_.forward(x, dropout, static_cast<std::uint64_t>(number));
    };
    return *std::visit(apply, x_);
  }

  mesh<Place> mesh_;
  training_options options_;
  features x_;
  vertex_labels<Place> train_, validation_, test_;
  gcn<T, Policy, Place> model_;
  adam<T, Place> optimizer_;
  dense<T, vertex_rows, Place> gradient_;
};

}  // namespace detail

/// What one training step of train_gcn would receive, without training. Every rank of the mesh must call.
template <class T, class Policy, class Place>
over_ranks predict_words(const mesh<Place>& m, const dataset& data, const training_options& options) {
  const gcn<T, Policy, Place> model(distribute_adjacency<Policy, T>(m, data),
                                    detail::gcn_widths(data, options), options.seed);
  return summarize(m.world(), model.predicted().elements + detail::loss_traffic(m).elements);
}

/// Trains a GCN of widths f, hidden, classes on the whole graph. Every rank of the mesh must call, with the
/// same data.
///
/// What travels in an epoch: each layer's propagation forward and backward, one all-reduce of all gradients,
/// one of the loss; the evaluation after it propagates forward once more and is entered in the ledger apart.
/// Throws input_error when the training set is empty, mesh_error when the mesh does not suit the policy.
template <class T, class Policy, class Place>
training_result train_gcn(const mesh<Place>& m, const dataset& data, const training_options& options,
                          const epoch_observer& observe = {}) {
  require_mesh<Policy>(m.shape(), m.size());
  detail::trainer<T, Policy, Place> trainer(m, data, options);
  training_result result;
  result.mesh = m.shape();
  double best = -1;
  for (int e = 1; e <= options.epochs; ++e) {
    m.ledger().clear();
    const epoch_report report = trainer.epoch(e);
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
  result.predicted_words_received = summarize(m.world(), trainer.predicted().elements);
  result.peak_bytes = summarize(m.world(), static_cast<global_index>(m.queue().meter()->peak()));
  std::vector<double> seconds;
  for (const epoch_report& e : result.epochs) seconds.push_back(e.seconds);
  result.seconds_per_epoch = median(std::move(seconds));
  return result;
}

}  // namespace partita
