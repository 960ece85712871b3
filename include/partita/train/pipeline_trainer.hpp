// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training with the layers of a model cut into stages, through which chunks of vertices flow.

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/nn/optimizer.hpp"
#include "partita/train/epochs.hpp"
#include "partita/train/objective.hpp"
#include "partita/train/pipeline_guard.hpp"
#include "partita/train/pipeline_link.hpp"
#include "partita/train/pipeline_order.hpp"
#include "partita/train/pipeline_setup.hpp"
#include "partita/train/pipeline_stage.hpp"
#include "partita/train/pipeline_state.hpp"

namespace partita::nn {

/// Trains one model over stages: groups of consecutive ranks, each a mesh of its own with a policy of its
/// own, on the whole graph. A stage has consecutive layers and alone their parameters. In an epoch, chunks of
/// vertices pass through the stages forward, then, when all have arrived, backward in the reverse order; a
/// stage works on a chunk when it is there, while others are on their way. Neighbours in chunks that have not
/// run yet are those of an earlier epoch (see pipeline_options::history), and nothing of them travels;
/// gradients for vertices of chunks that have run backward are lost, and the others doubled in their place.
/// One step of the optimiser follows an epoch.
///
/// Collective over the mesh, with the same data on every rank: constructor and members. What travels in an
/// epoch: between stages, for each vertex a row of the hidden matrix and of what skips layers, and their
/// gradients; inside a stage, each copied row of each product (see chunk_graph) and one all-reduce of its
/// gradients. Sources: GNNPipe (Chen, Chen, Qian, arXiv:2308.10087).
template <class T, class Device>
class pipeline_trainer {
 public:
  /// `m`: a mesh of all ranks, which is used for its ranks and its queue; `inside`: the mesh of each stage,
  /// under policy `p`. Throws mesh_error unless the ranks are stages of this size and the policy suits it;
  /// error for a model that cannot be cut, an embedding, and options out of range; shape_error for more
  /// stages than layers; input_error when the training set is empty.
  pipeline_trainer(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                   const policy& p, mesh_shape inside);

  /// All epochs requested in the options that are left; see run_epochs. Throws error after one in which the
  /// pipeline no longer follows the exact computation, with guard_action::stop.
  training_result run(const epoch_observer& observe = {}, const continuation<T>& how = {});
  /// A training step, then an evaluation.
  epoch_report epoch(int number);
  /// One training step; returns the loss before the update, in the last stage, 0 in others.
  double step(int number) {
    const double found = gradients(number);
    update(number);
    return found;
  }

  /// The parameters of this rank's stage, and its layers [first, last) of the model.
  nn::parameters<T, Device>& parameters() { return stage_->parameters(); }
  const stage_place& place() const { return stage_->place(); }
  int stage() const { return link_->stage(); }
  const communicator& world() const { return mesh_.world(); }
  /// The gradients of a step, without the update; returns as step does.
  double gradients(int number) {
    const double found = forward_backward(number);
    const comm::phase_scope phase(mesh_.ledger(), "backward");
    comm::in_task(link_->task({"sum of gradients"}), [&] { stage_->sum_gradients(); });
    return found;
  }
  /// The rows that chunks read of others become those of an exact forward pass with the current parameters
  /// and the dropout of this epoch.
  void refresh_history(int number) { forward_whole(pass_of(number), true); }
  /// The logits (n x classes) of the current model, in the order of chunks, in the last stage.
  const dense<T, vertex_rows, Device>& evaluate() {
    forward_whole({}, false);
    return stage_->whole().logits();
  }

  /// All scores of the task for the current model, on every rank. What travels: a forward pass and
  /// objective::scores in the last stage, and the scores from there.
  task_scores scores() {
    const auto& logits = evaluate();
    task_scores found;
    comm::in_task(link_->task({"scores"}), [&] {
      if (objective_) found = objective_->scores(logits);
      found = broadcast(mesh_.world(), found, mesh_.size() - 1);
    });
    return found;
  }

  /// What training goes on from: the parameters of all stages, under the names that they have on the whole
  /// graph, on every rank, without reports. What travels: parameters and moments, between stages.
  training_state<T> state() { return state_of_stages(*link_, parameters(), optimizer_); }
  /// Goes on from the state of the first rank. History is not kept: it becomes that of an exact forward pass
  /// with these parameters and the dropout of the last epoch. What travels: parameters and moments, from the
  /// first rank, and that pass. Throws error, on the first rank, for the state of another model.
  void restore(training_state<T> from) {
    restore_stage(mesh_.world(), *link_, stage_->place(), from, parameters(), optimizer_);
    const chunk_history history = options_.pipeline.history;
    if (!epochs_.exact(0) && (history == chunk_history::window || history == chunk_history::halo))
      refresh_history(from.steps);
  }
  /// The input of its last layer with parameters, after evaluate, in the last stage; null where that is the
  /// model's input.
  const dense<T, vertex_rows, Device>* hidden() { return stage_->whole().hidden(); }
  /// The vertex of each row in the order of chunks.
  const std::vector<global_index>& vertices() const { return stage_->vertex_of_rows(); }

  /// The parameters of all stages, in the order of the model's, on every rank; and those of this stage, from
  /// all. What travels in the first: the parameters, between stages. The second is local, and throws
  /// shape_error for another number of elements.
  std::vector<T> collect_parameters();
  void assign_parameters(std::span<const T> values);

  /// What this rank receives in the training step of a steady epoch, in closed form; and of that, from other
  /// stages.
  traffic predicted() const { return stage_->predicted(epochs_.exact(0)) + boundary() + of_loss(); }
  traffic boundary() const { return stage_->boundary(); }

 private:
  using layers = stage_layers<T, Device>;
  using matrices = typename layers::boundary;

  void make_stage(const io::dataset& data, const policy& p);
  bool is_last() const { return stage_->place().is_last(); }
  pass pass_of(int number) const { return {.training = true, .epoch = static_cast<std::uint64_t>(number)}; }

  template <class Work, class Output>
  void all_at_once(int from, int to, const matrices& input, Work work, Output output);
  double forward_backward(int number);
  /// In the last stage the loss, and its gradient with respect to the logits.
  double loss() {
    layers& all = stage_->whole();
    const auto found = [&] { return objective_->loss(all.logits(), all.logits_gradient()); };
    return objective_ ? comm::in_task(link_->task({"loss"}), found) : 0;
  }
  void forward_whole(const pass& p, bool refreshes);
  double exactly(const pass& p, bool refreshes, std::string_view forward, std::string_view backward);
  void run_exactly(int number);
  pipeline_comparison compare(int number, double loss);
  void update(int number);
  void score(epoch_report& report);
  traffic of_loss() const;

  mesh<Device> mesh_;
  std::string name_;
  training_options options_;
  std::optional<mesh<Device>> of_stage_;
  std::unique_ptr<pipeline_stage<T, Device>> stage_;
  std::optional<pipeline_link<T, Device>> link_;   ///< ends before the stage, whose rows are under way
  std::optional<objective<T, Device>> objective_;  ///< in the last stage
  nn::adam<T, Device> optimizer_;
  pipeline_guard<T, Device> guard_;  ///< in the last stage
  guarded_epochs epochs_;
  pipeline_result result_;
  double idle_ = 0, seconds_ = 0;  ///< of all steps: not at work, and in all
};

/// Trains the model named by `options` over stages; see pipeline_trainer.
template <class T, class Device>
training_result train_on_stages(const mesh<Device>& m, const io::dataset& data,
                                const training_options& options, const policy& p, mesh_shape inside,
                                const epoch_observer& observe = {}, const continuation<T>& how = {}) {
  return pipeline_trainer<T, Device>(m, data, options, p, inside).run(observe, how);
}

template <class T, class Device>
pipeline_trainer<T, Device>::pipeline_trainer(const mesh<Device>& m, const io::dataset& data,
                                              const training_options& options, const policy& p,
                                              mesh_shape inside)
    : mesh_(m),
      name_(data.name),
      options_(options),
      optimizer_(options.learning_rate),
      epochs_(options.pipeline) {
  memory::refuse_reproducible(m.queue(), "training on stages");
  require_pipeline(options);
  const int stages = options.pipeline.stages;
  if (m.size() != stages * inside.size())
    base::throw_error<mesh_error>({m.size(), " ranks are not ", stages, " stages of a mesh ", inside});
  require_mesh(p, inside, inside.size());
  const int rank = m.world().rank(), ways = inside.size();
  const communicator of_stage = m.world().split(rank / ways, rank % ways, "stage");
  of_stage_.emplace(of_stage, inside, m.queue());
  link_.emplace(m.world().split(rank % ways, rank / ways, "stages"), m.queue());
  make_stage(data, p);
}

template <class T, class Device>
void pipeline_trainer<T, Device>::make_stage(const io::dataset& data, const policy& p) {
  const pipeline_options& how = options_.pipeline;
  const blocking rows = graph::vertex_blocking(*of_stage_, data, options_);
  if (how.chunk_count() > data.vertices)
    base::throw_error<error>({how.chunk_count(), " chunks of ", data.vertices, " vertices"});
  const auto chunks =
      std::make_shared<const chunked_vertices>(data, rows, vertex_chunks(data, rows, how), how.chunk_count());
  const model_outline outline = outline_of<T, Device>(mesh_.queue(), data, options_);
  const std::vector<std::size_t> cuts = stage_cuts<T>(mesh_, outline, data, how);
  const auto s = static_cast<std::size_t>(link_->stage());
  const auto a = graph_in_chunks<T>(*of_stage_, *chunks, options_);
  stage_ = std::make_unique<pipeline_stage<T, Device>>(*of_stage_, chunks, a, options_, p,
                                                       stage_place{outline, cuts[s], cuts[s + 1]});
  if (is_last()) objective_.emplace(*of_stage_, chunks->data(), options_, chunks->rows());
  result_.stages = how.stages;
  result_.chunks = how.chunk_count();
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k)
    result_.layers.push_back(static_cast<int>(cuts[k + 1] - cuts[k]));
}

template <class T, class Device>
double pipeline_trainer<T, Device>::forward_backward(int number) {
  const int s = link_->stage();
  const pass p = pass_of(number);
  stage_->begin_epoch();
  if (epochs_.exact(number))
    return exactly(p, options_.pipeline.history != chunk_history::exact, "forward", "backward");
  const std::vector<int> order =
      chunk_order(options_.seed, p.epoch, static_cast<int>(stage_->chunks()), options_.pipeline.shuffle);
  const std::vector<pipeline_task> tasks = pipeline_tasks(order);
  const std::span all(tasks);
  const comm::phase_scope ahead(mesh_.ledger(), "forward");
  link_->flow(
      all.first(order.size()), s - 1, s + 1, [&](std::size_t c) { return stage_->chunk(c).forward_input(); },
      [&](std::size_t c) { stage_->forward(c, p); },
      [&](std::size_t c) { return stage_->chunk(c).forward_output(); });
  const double found = loss();
  const comm::phase_scope behind(mesh_.ledger(), "backward");
  link_->flow(
      all.subspan(order.size()), s + 1, s - 1,
      [&](std::size_t c) { return stage_->chunk(c).backward_input(); },
      [&](std::size_t c) { stage_->backward(c); },
      [&](std::size_t c) { return stage_->chunk(c).backward_output(); });
  return found;
}

/// All chunks at once, stage after stage; what passes between stages does so in chunks.
template <class T, class Device>
template <class Work, class Output>
void pipeline_trainer<T, Device>::all_at_once(int from, int to, const matrices& input, Work work,
                                              Output output) {
  const char* const what = from < to ? "forward" : "backward";
  comm::in_task(link_->task({"all chunks, ", what}), [&] {
    for (std::size_t c = 0; link_->has(from) && c < stage_->chunks(); ++c)
      link_->expect(stage_->part(c, input), from);
    link_->arrive();
    work();
    for (std::size_t c = 0; link_->has(to) && c < stage_->chunks(); ++c)
      link_->send(stage_->part(c, output()), to);
    link_->sent();
  });
}

template <class T, class Device>
void pipeline_trainer<T, Device>::forward_whole(const pass& p, bool refreshes) {
  const int s = link_->stage();
  layers& all = stage_->whole();
  all_at_once(
      s - 1, s + 1, all.forward_input(), [&] { stage_->forward_whole(p, refreshes); },
      [&] { return all.forward_output(); });
}

template <class T, class Device>
void pipeline_trainer<T, Device>::update(int number) {
  optimizer_.step(parameters());
  stage_->end_epoch(static_cast<std::uint64_t>(number));
}

/// Forward and backward without history; returns the loss as step does.
template <class T, class Device>
double pipeline_trainer<T, Device>::exactly(const pass& p, bool refreshes, std::string_view forward,
                                            std::string_view backward) {
  const comm::phase_scope ahead(mesh_.ledger(), forward);
  forward_whole(p, refreshes);
  const double found = loss();
  const comm::phase_scope behind(mesh_.ledger(), backward);
  layers& all = stage_->whole();
  all_at_once(
      stage() + 1, stage() - 1, all.backward_input(), [&] { stage_->backward_whole(); },
      [&] { return all.backward_output(); });
  return found;
}

/// The exact step of an epoch, without an update, for compare.
template <class T, class Device>
void pipeline_trainer<T, Device>::run_exactly(int number) {
  stage_->begin_epoch();
  const double exact_loss = exactly(pass_of(number), epochs_.taken_refreshes(), "evaluation", "evaluation");
  if (is_last()) guard_.keep(exact_loss, stage_->whole().logits());
  stage_->sum_gradients();
  guard_.keep(parameters().gradients());
}

/// Compares the gradients of an epoch with the exact ones before, and acts. What travels: the loss, and two
/// numbers in an all-reduce and a broadcast each.
template <class T, class Device>
pipeline_comparison pipeline_trainer<T, Device>::compare(int number, double loss) {
  const comm::phase_scope phase(mesh_.ledger(), "evaluation");
  std::array<double, 3> found{};
  if (is_last()) found = {loss, guard_.loss(), guard_.difference(stage_->whole().logits())};
  mesh_.world().broadcast(found, mesh_.size() - 1);
  const double cosine = guard_.cosine(parameters().gradients(), link_->ranks());
  pipeline_comparison c{number, found[0], found[1], found[2], cosine};
  c.reason = divergence(c, options_.pipeline);
  c.diverged = !c.reason.empty();
  result_.comparisons.push_back(c);
  if (c.diverged) {
    epochs_.diverged(number);
    if (options_.pipeline.on_divergence != guard_action::report)
      copy(guard_.gradients(), parameters().gradients());
  }
  return c;
}

template <class T, class Device>
epoch_report pipeline_trainer<T, Device>::epoch(int number) {
  const comm::task_scope at(link_->task({"epoch ", number}));
  const bool compared = epochs_.compares(number);
  if (compared || epochs_.refreshes()) {
    const comm::phase_scope phase(mesh_.ledger(), "evaluation");
    run_exactly(number);
  }
  link_->taken_idle();
  epoch_report report{.epoch = number};
  double mine = 0;
  const auto timed = [&](auto work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    mesh_.queue().synchronize();
    mine += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  timed([&] { report.loss = gradients(number); });
  if (compared) report.comparison = compare(number, report.loss);
  timed([&] { update(number); });

  const comm::phase_scope phase(mesh_.ledger(), "evaluation");
  detail::report_step(mesh_.world(), mine, detail::not_finite_in(parameters(), optimizer_), report);
  idle_ += report.seconds - (mine - link_->taken_idle());
  seconds_ += report.seconds;
  report.loss = mesh_.world().broadcast(report.loss, mesh_.size() - 1);
  score(report);
  return report;
}

/// The scores of the current model on the three parts of the split.
template <class T, class Device>
void pipeline_trainer<T, Device>::score(epoch_report& report) {
  const auto& logits = evaluate();
  std::array<double, 3> scores{};
  comm::in_task(link_->task({"scores"}), [&] {
    if (objective_)
      scores = {objective_->score(logits, io::split_part::train),
                objective_->score(logits, io::split_part::validation),
                objective_->score(logits, io::split_part::test)};
    mesh_.world().broadcast(scores, mesh_.size() - 1);
  });
  report.train_accuracy = scores[0];
  report.validation_accuracy = scores[1];
  report.test_accuracy = scores[2];
}

template <class T, class Device>
training_result pipeline_trainer<T, Device>::run(const epoch_observer& observe, const continuation<T>& how) {
  const auto observe_and_stop = [&](const epoch_report& r) {
    if (observe) observe(r);
    const bool stops = options_.pipeline.on_divergence == guard_action::stop;
    if (!stops || !r.comparison || !r.comparison->diverged) return;
    mesh_.world().all_gather(r.epoch);  // every rank has observed it before the first one leaves
    base::throw_error<error>({name_, ": the pipeline no longer follows the exact computation in epoch ",
                              r.epoch, ": ", r.comparison->reason,
                              "; more exact epochs, another history or fewer chunks may help"});
  };
  training_result result = run_epochs<T>(mesh_, name_, options_.epochs, *this, observe_and_stop, how);
  const comm::phase_scope phase(mesh_.ledger(), "summary");
  const communicator& world = mesh_.world();
  result.mesh = of_stage_->shape();
  result.scores = scores();
  result.predicted_words_received = summarize(world, predicted().words);
  result_.boundary_words = summarize(world, boundary().words);
  result_.history_bytes = summarize(world, stage_->history_bytes());
  const std::vector<double> shares = world.all_gather(seconds_ > 0 ? idle_ / seconds_ : 0);
  result_.bubble = means_of_groups(shares, static_cast<std::size_t>(of_stage_->size()));
  result.pipeline = result_;
  return result;
}

template <class T, class Device>
traffic pipeline_trainer<T, Device>::of_loss() const {
  if (!is_last()) return {};
  comm::collective loss;
  loss.kind = operation::all_reduce;
  loss.count = 1;
  return received(loss, of_stage_->rank(), of_stage_->size());
}

template <class T, class Device>
std::vector<T> pipeline_trainer<T, Device>::collect_parameters() {
  return link_->of_all_stages(collect(parameters().values()));
}

template <class T, class Device>
void pipeline_trainer<T, Device>::assign_parameters(std::span<const T> values) {
  const stage_place& here = stage_->place();
  if (std::ssize(values) != here.weights_before(here.outline.layers.size()))
    base::throw_error<shape_error>({"the model has ", here.weights_before(here.outline.layers.size()),
                                    " parameter elements, not ", values.size()});
  const global_index begin = here.weights_before(here.first), end = here.weights_before(here.last);
  copy(mesh_.queue(), values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
       parameters().values().values());
}

}  // namespace partita::nn
