// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What every way of training does: epochs, a run of them, and the state that it goes on from.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/nn/sparse_adam.hpp"
#include "partita/train/finite.hpp"
#include "partita/train/summary.hpp"
#include "partita/train/training_state.hpp"
#include "partita/train/vertex_weights.hpp"

namespace partita::nn {

/// A model and how it is trained: on the whole graph (trainer), on batches (mini_batch_trainer) or with its
/// layers over stages (pipeline_trainer). Collective over the mesh, with the same data on every rank: all
/// members but where they say otherwise.
template <class T, class Device>
class training {
 public:
  training(training&&) = default;
  virtual ~training() = default;

  /// The training steps of an epoch, with its learning rate, then an evaluation, where there is one
  /// (training_options::evaluate_every); other epochs have scores that are not numbers.
  virtual epoch_report epoch(int number);
  /// All epochs requested in the options that are left, each a call of epoch. If how.stop ends the run after
  /// an epoch without an evaluation, that is evaluated after how.save and reported again. All ranks have far
  /// memory, or none has. The mesh's ledger is cleared before each; what travels in the phases "evaluation"
  /// and "checkpoint" is not counted as training. With patience, the parameters are afterwards those of the
  /// epoch with the best validation score. Throws error when a loss, a gradient or a parameter is not finite,
  /// which it names, before any of it is saved, and if more epochs have been trained than the options ask
  /// for; input_error for patience without vertices for validation; what how.load and how.save throw.
  training_result run(const epoch_observer& observe = {}, const run_hooks<T>& how = {});

  /// What training goes on from, without reports: parameters on every rank, the rows of an embedding on the
  /// first, in their order. What travels: the blocks of an embedding and its moments, to the first rank; the
  /// parameters and moments of stages, between these.
  training_state<T> state();
  /// The training steps of an epoch alone, with the learning rate of the last; returns the loss before the
  /// update, of stages in the last one.
  double step(int number) {
    epoch_report report{.epoch = number};
    (void)train_epoch(report);
    mesh_.queue().synchronize();
    read_loss(report);
    return report.loss;
  }
  /// Goes on from the state of the first rank; steps are counted from there. What travels: that state, of an
  /// embedding each rank's block. Throws error, on the first rank, for the state of another model.
  void restore(training_state<T> from) { go_on(from); }
  /// The parameters by name, in the order of the model, on every rank, and after them, on the first, the
  /// learned input (n x w) if there is one, in the order of the dataset. What travels: as for state.
  state_dict<T> values() { return gathered(false); }
  /// The parameters and the learned input become those of the same names on the first rank. What travels:
  /// these. Throws error, on the first rank, which names one that is missing, or that the model has not.
  void assign(const state_dict<T>& values) { scatter(values, false); }
  /// The logits of the present model without dropout and, if wanted, the input of its last layer with
  /// parameters. What travels: a forward pass, and both matrices to the first rank. Throws error where that
  /// input is the model's own.
  virtual model_outputs<T> outputs(bool with_hidden) = 0;

  /// From now on the loss is this one, of a batch in mini-batches. Every rank gives it. Local.
  virtual void set_loss(loss_function<T, Device> own) = 0;
  /// All scores of the task for the current model, on every rank. Collective.
  virtual task_scores scores() = 0;

  /// The parameters; of a stage, its own. Local.
  virtual nn::parameters<T, Device>& parameters() = 0;
  /// The optimiser; its state may be read and written between steps. Local.
  nn::optimizer<T, Device>& optimizer() { return optimizer_; }
  /// What this rank receives in the training steps of a steady epoch, in closed form. Local.
  virtual traffic predicted() const = 0;

 protected:
  using matrix = dense<T, replicated, Device>;
  using rows = dense<T, dynamic_layout, Device>;

  training(const mesh<Device>& m, const io::dataset& data, const training_options& options)
      : mesh_(m),
        name_(data.name),
        options_(options),
        optimizer_({options.optimizer, options.learning_rate, options.momentum}),
        embedding_optimizer_(options.learning_rate),
        rate_(options.learning_rate, schedule_of(options)) {
    detail::require_training(options, data);
    if (options.patience > 0 && data.validation_links.empty() &&
        std::ranges::count(data.split, static_cast<std::uint8_t>(io::split_part::validation)) == 0)
      base::throw_error<input_error>({name_, ": patience needs vertices for validation, and there are none"});
  }

  /// The steps of an epoch; in the report the loss before the update, if only on the rank that has it, or
  /// once the device was waited for, with read_loss. Returns the seconds that it spent on something else.
  virtual double train_epoch(epoch_report& report) = 0;
  /// Puts the loss of the last step into the report, once the device was waited for. Collective.
  virtual void read_loss(epoch_report&) {}
  /// Makes the report that of every rank, who waited for so many seconds.
  virtual void share(epoch_report&, double) {}
  /// The scores of the current model, after this epoch, on the three parts of the split.
  virtual std::array<double, 3> split_scores(int epoch) = 0;
  /// This rank's rows of a learned input; none where the data's features are the input.
  virtual std::optional<rows> learned_rows() { return {}; }
  /// Where the ranks have different parameters: those before this rank's; lists of all of them one after the
  /// other; the norm of all gradients.
  virtual global_index elements_before() const { return 0; }
  virtual std::vector<T> of_all_parts(std::vector<T> mine) { return mine; }
  virtual std::vector<std::pair<std::string, matrix_shape>> all_shapes() {
    std::vector<std::pair<std::string, matrix_shape>> all;
    for (auto& p : parameters().list()) all.emplace_back(p.name(), p.shape());
    return all;
  }
  virtual double norm_of_gradients() { return gradient_norm(parameters()); }
  /// After the parameters were restored, or after an epoch was observed; adds to the results of a run.
  virtual void restored(int) {}
  virtual void observed(const epoch_report&) {}
  virtual void summarize_run(training_result&) {}
  virtual std::optional<far_forecast> foretold() { return {}; }  ///< over far memory

  /// A step with the gradients of the parameters, clipped.
  void move_parameters(memory::step_numbers* numbers = nullptr) {
    if (options_.clip > 0) clip_gradients(parameters(), options_.clip, norm_of_gradients());
    optimizer_.step(parameters(), numbers);
  }
  bool evaluates(int epoch) const { return epoch % options_.evaluate_every == 0 || epoch == options_.epochs; }
  double seconds() const { return mesh_.ledger().seconds(); }
  /// Seconds until what has been called is done.
  double seconds_since(double begin) { return mesh_.queue().synchronize(), seconds() - begin; }

  mesh<Device> mesh_;
  std::string name_;
  training_options options_;
  nn::optimizer<T, Device> optimizer_;
  nn::sparse_adam<T, Device> embedding_optimizer_;
  learning_rate rate_;

 private:
  /// A matrix of the state in each of its forms: for the parameters in one row, and like a learned input.
  struct part {
    std::string_view prefix;
    matrix* of_parameters = nullptr;
    rows* of_rows = nullptr;
    std::vector<T>*kept = nullptr, *kept_rows = nullptr;  ///< where it is in host memory instead
  };
  std::vector<part> parts(std::optional<rows>& x, bool with_moments);
  state_dict<T> gathered(bool with_moments);
  void scatter(const state_dict<T>& from, bool with_moments, std::string_view source = "the state");
  void go_on(training_state<T>& from);
  std::vector<epoch_report> begin(const run_hooks<T>& how);
  void save(const std::vector<epoch_report>& reports, const run_hooks<T>& how);
  void keep();

  std::vector<T> kept_, kept_rows_;  ///< with patience: this rank's part of the best epoch's
};

/// What there is of each parameter, the values first; `x`: of a learned input.
template <class T, class Device>
auto training<T, Device>::parts(std::optional<rows>& x, bool with_moments) -> std::vector<part> {
  auto& set = parameters();
  std::vector<part> all{{"", &set.values(), x ? &*x : nullptr}};
  if (!with_moments) return all;
  auto& of_set = optimizer_.state_of(set);
  auto* const of_rows = x ? &embedding_optimizer_.state_of(*x) : nullptr;
  if (options_.optimizer != update_rule::sgd) {
    all.push_back({"adam.first.", &of_set.first_moment, x ? &of_rows->first_moment : nullptr});
    all.push_back({"adam.second.", &of_set.second_moment, x ? &of_rows->second_moment : nullptr});
  } else if (options_.momentum != 0) {
    all.push_back({"sgd.momentum.", &of_set.first_moment});
  }
  if (options_.patience > 0) {
    if (kept_.empty()) keep();
    all.push_back({"best.", &set.values(), x ? &*x : nullptr, &kept_, &kept_rows_});
  }
  return all;
}

template <class T, class Device>
state_dict<T> training<T, Device>::gathered(bool with_moments) {
  std::optional<rows> x = learned_rows();
  const std::vector<part> forms = parts(x, with_moments);
  std::vector<std::vector<T>> lists;
  for (const part& p : forms)
    lists.push_back(of_all_parts(p.kept ? *p.kept : detail::block_in_host_memory(*p.of_parameters)));
  state_dict<T> all;
  global_index begin = 0;
  for (const auto& [name, shape] : all_shapes()) {
    const global_index end = begin + shape.rows * shape.cols;
    for (std::size_t k = 0; k < forms.size(); ++k)
      all.push_back({std::string(forms[k].prefix) + name, shape,
                     std::vector<T>(lists[k].begin() + begin, lists[k].begin() + end)});
    begin = end;
  }
  for (const part& p : forms) {
    if (!x) break;
    const std::vector<T> mine = p.kept_rows ? *p.kept_rows : detail::block_in_host_memory(*p.of_rows);
    std::vector<T> whole = detail::from_blocks(*x, mine);
    if (mesh_.rank() == 0)
      all.push_back({std::string(p.prefix) + std::string(embedding_name), x->shape(), std::move(whole)});
  }
  return all;
}

/// `from`: of the first rank, as gathered.
template <class T, class Device>
void training<T, Device>::scatter(const state_dict<T>& from, bool with_moments, std::string_view source) {
  std::optional<rows> x = learned_rows();
  const std::vector<part> forms = parts(x, with_moments);
  state_dict<T> wanted;
  const auto want = [&](const std::string& name, matrix_shape shape) {
    for (const part& p : forms) wanted.push_back({std::string(p.prefix) + name, shape});
    return shape.rows * shape.cols;
  };
  global_index elements = 0;
  for (const auto& [name, shape] : all_shapes()) elements += want(name, shape);
  const std::size_t matrices = wanted.size();
  if (x) want(std::string(embedding_name), x->shape());
  const state_dict<T> given = mesh_.rank() == 0 ? detail::matched(from, wanted, source) : state_dict<T>();
  for (std::size_t k = 0; k < forms.size(); ++k) {
    std::vector<T> all;
    for (std::size_t i = k; mesh_.rank() == 0 && i < matrices; i += forms.size())
      all.insert(all.end(), given[i].values.begin(), given[i].values.end());
    all.resize(static_cast<std::size_t>(elements));
    mesh_.world().broadcast(all, 0);
    const auto mine = std::span<const T>(all).subspan(static_cast<std::size_t>(elements_before()),
                                                      forms[k].of_parameters->values().size());
    if (forms[k].kept)
      forms[k].kept->assign(mine.begin(), mine.end());
    else
      copy(mesh_.queue(), mine, forms[k].of_parameters->values());
  }
  for (std::size_t k = 0; x && k < forms.size(); ++k) {
    std::vector<T> mine =
        detail::to_blocks(*x, mesh_.rank() == 0 ? given[matrices + k].values : std::vector<T>());
    if (forms[k].kept_rows)
      *forms[k].kept_rows = std::move(mine);
    else
      copy(mesh_.queue(), std::span<const T>(mine), forms[k].of_rows->values());
  }
}

template <class T, class Device>
training_state<T> training<T, Device>::state() {
  return {.epochs = {}, .steps = optimizer_.state_of(parameters()).steps, .tensors = gathered(true)};
}

template <class T, class Device>
void training<T, Device>::go_on(training_state<T>& from) {
  detail::broadcast_reports(mesh_.world(), from.epochs);
  scatter(from.tensors, true);
  from.steps = mesh_.world().broadcast(from.steps, 0);
  optimizer_.state_of(parameters()).steps = from.steps;
  if (const auto x = learned_rows()) embedding_optimizer_.state_of(*x).steps = from.steps;
  rate_.set({});
  for (const epoch_report& r : from.epochs) rate_.end_epoch(r.loss);
  restored(from.steps);
}

template <class T, class Device>
void training<T, Device>::keep() {
  kept_ = detail::block_in_host_memory(parameters().values());
  if (const auto x = learned_rows()) kept_rows_ = detail::block_in_host_memory(*x);
}

/// What the run begins with: the reports of earlier epochs, none for a new run.
template <class T, class Device>
std::vector<epoch_report> training<T, Device>::begin(const run_hooks<T>& how) {
  const communicator& world = mesh_.world();
  std::optional<training_state<T>> found;
  if (how.load && world.rank() == 0) found = how.load();
  if (how.load && world.broadcast(static_cast<int>(found.has_value()), 0) != 0) {
    training_state<T> state = found ? *std::move(found) : training_state<T>{};
    detail::sort_embedding(state.tensors, how.old_number, true);
    go_on(state);
    if (std::ssize(state.epochs) > options_.epochs)
      base::throw_error<error>(
          {state.epochs.size(), " epochs have been trained, more than the ", options_.epochs, " requested"});
    return std::move(state.epochs);
  }
  if (how.initial) {
    state_dict<T> given;
    if (world.rank() == 0) given = how.initial();
    detail::sort_embedding(given, how.old_number, true);
    scatter(given, false, how.source);
  }
  return {};
}

template <class T, class Device>
void training<T, Device>::save(const std::vector<epoch_report>& reports, const run_hooks<T>& how) {
  training_state<T> now = state();
  if (mesh_.rank() != 0) return;
  now.epochs = reports;
  detail::sort_embedding(now.tensors, how.old_number, false);
  how.save(std::move(now));
}

template <class T, class Device>
epoch_report training<T, Device>::epoch(int number) {
  optimizer_.set_rate(rate_.now());
  embedding_optimizer_.set_rate(rate_.now());
  epoch_report report{.epoch = number};
  report.set_scores({detail::no_score, detail::no_score, detail::no_score});
  const double begin = seconds(), aside = train_epoch(report);
  const std::string not_finite = detail::not_finite_in(parameters(), optimizer_);  // waits for a device
  const double mine = seconds() - begin - aside;
  read_loss(report);
  const comm::phase_scope phase(mesh_.ledger(), "evaluation");
  detail::report_step(mesh_.world(), mine, not_finite, report);
  share(report, mine);
  if (evaluates(number)) report.set_scores(split_scores(number));
  rate_.end_epoch(report.loss);
  return report;
}

template <class T, class Device>
training_result training<T, Device>::run(const epoch_observer& observe, const run_hooks<T>& how) {
  const mesh<Device>& m = mesh_;
  training_result result;
  result.mesh = m.shape();
  const auto setup_peak = static_cast<global_index>(m.queue().meter()->peak());
  result.distribute_seconds = m.world().all_reduce(m.ledger().seconds_in("distribute"), reduction::max);
  auto* const far = far_of(m.queue());
  std::optional<memory::far_traffic> predicted;
  if (how.forecast && far != nullptr && !m.reproducible())
    if (const auto found = foretold()) {
      how.forecast(*found);
      predicted = found->total();
    }
  result.first_epoch = std::chrono::steady_clock::now();
  early_stopping best(std::max(options_.patience, 1));
  const auto add = [&](const epoch_report& r) { return detail::add_epoch(result, r, best, options_); };
  {
    const comm::phase_scope phase(m.ledger(), "checkpoint");
    for (const epoch_report& r : begin(how)) add(r);
  }
  result.resumed_from = static_cast<int>(result.epochs.size());
  std::vector<comm::ledger_entry> last;
  traffic step;
  memory::far_traffic before, of_epoch;
  bool ends = result.out_of_patience;
  for (int e = result.resumed_from + 1; e <= options_.epochs && !ends; ++e) {
    m.ledger().clear();
    if (far != nullptr) before = far->traffic();
    const epoch_report report = epoch(e);
    if (far != nullptr) of_epoch = far->traffic() - before;
    const bool better = add(report);
    detail::require_finite(report, name_, options_);
    if (better && options_.patience > 0) keep();
    if (observe) observe(report);
    observed(report);
    if (how.stop && e < options_.epochs) {
      const comm::phase_scope phase(m.ledger(), "evaluation");
      result.stopped = m.world().all_reduce(static_cast<int>(how.stop()), reduction::max) > 0;
    }
    ends = e == options_.epochs || result.stopped || result.out_of_patience;
    if (ends) {
      last = m.ledger().entries();
      step = m.ledger().total(detail::is_of_step);
    }
    if (how.save && (ends || e % how.every == 0)) {
      const comm::phase_scope phase(m.ledger(), "checkpoint");
      save(result.epochs, how);
    }
  }
  if (result.stopped && !result.out_of_patience && !evaluates(result.epochs.back().epoch)) {
    const comm::phase_scope phase(m.ledger(), "evaluation");
    epoch_report report = result.epochs.back();
    report.set_scores(split_scores(report.epoch));
    if (add(report) && options_.patience > 0) keep();
    if (observe) observe(report);
    result.out_of_patience = false;
  }
  if (std::ssize(result.epochs) == options_.epochs) result.out_of_patience = false;
  const comm::phase_scope phase(m.ledger(), "summary");
  if (result.best_validation_epoch > 0 && options_.patience > 0) {
    copy(m.queue(), std::span<const T>(kept_), parameters().values().values());
    if (auto x = learned_rows()) copy(m.queue(), std::span<const T>(kept_rows_), x->values());
  }
  result.scores = scores();
  result.ledger = merge_ledgers(m.world(), last);
  result.words_received = summarize(m.world(), step.words);
  result.messages = summarize(m.world(), step.messages);
  result.peak_bytes = summarize(m.world(), static_cast<global_index>(m.queue().meter()->peak()));
  result.setup_peak_bytes = summarize(m.world(), setup_peak);
  if (far != nullptr) result.far = summarize_far(m.world(), of_epoch, predicted, far->meter().peak());
  result.seconds_per_epoch = median_seconds(result.epochs, result.resumed_from);
  result.predicted_words_received = summarize(m.world(), this->predicted().words);
  summarize_run(result);
  return result;
}

}  // namespace partita::nn
