// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training with the layers of a model cut into stages, through which chunks of vertices flow.

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/train/objective.hpp"
#include "partita/train/pipeline_guard.hpp"
#include "partita/train/pipeline_link.hpp"
#include "partita/train/pipeline_order.hpp"
#include "partita/train/pipeline_setup.hpp"
#include "partita/train/pipeline_stage.hpp"
#include "partita/train/training.hpp"

namespace partita::nn {

/// Trains one model over stages: groups of consecutive ranks, each with its own mesh and policy, on the whole
/// graph. A stage holds consecutive layers, and only it has their parameters. In an epoch, chunks of vertices
/// pass through the stages forward and, when all have arrived, backward in reverse order. A stage works on a
/// chunk as soon as it arrives, while others are in flight. Neighbours in chunks that have not run yet have
/// their values from an earlier epoch (see pipeline_options::history), and are not sent; gradients for
/// vertices of chunks that have already run backward are lost, and the others are doubled to make up for
/// them. Each epoch ends with one optimiser step.
///
/// Collective over the mesh, with the same data on every rank: constructor and members. What travels in an
/// epoch: between stages, for each vertex a row of the hidden matrix and of skip connections, and their
/// gradients; inside a stage, each copied row of each product (see chunk_graph) and one all-reduce of its
/// gradients. Sources: GNNPipe (Chen, Chen, Qian, arXiv:2308.10087).
template <class T, class Device>
class pipeline_trainer final : public training<T, Device> {
  using above = training<T, Device>;
  using above::mesh_;
  using above::name_;
  using above::options_;

 public:
  /// `m`: a mesh of all ranks, which is used for its ranks and its queue; `inside`: the mesh of each stage,
  /// under policy `p`. Throws mesh_error unless the ranks are stages of this size and the policy suits it;
  /// error for a model that cannot be cut, an embedding, and options out of range; shape_error for more
  /// stages than layers; input_error when the training set is empty.
  pipeline_trainer(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                   const policy& p, mesh_shape inside);

  /// As training::epoch. In a run with guard_action::stop, throws error after an epoch in which the pipeline
  /// no longer follows the exact computation.
  epoch_report epoch(int number) override {
    const comm::task_scope at(link_->task({"epoch ", number}));
    return above::epoch(number);
  }

  /// The parameters of this rank's stage, and its layers [first, last) of the model.
  nn::parameters<T, Device>& parameters() override { return stage_->parameters(); }
  const stage_place& place() const { return stage_->place(); }
  int stage() const { return link_->stage(); }
  const communicator& world() const { return mesh_.world(); }
  /// The gradients of a step, without the update; returns as step does, 0 in other stages.
  double gradients(int number) {
    const double found = forward_backward(number);
    const comm::phase_scope phase(mesh_.ledger(), "backward");
    comm::in_task(link_->task({"sum of gradients"}), [&] { stage_->sum_gradients(); });
    return found;
  }
  /// Replaces the rows that chunks read from others by those of an exact forward pass with the current
  /// parameters and the dropout of this epoch.
  void refresh_history(int number) { forward_whole(pass_of(number), true); }
  /// The logits (n x classes) of the current model, in the order of chunks, in the last stage.
  const dense<T, vertex_rows, Device>& evaluate() {
    forward_whole({}, false);
    return stage_->whole().logits();
  }
  /// The last stage has the logits and sends them to the first.
  model_outputs<T> outputs(bool with_hidden) override;
  void set_loss(loss_function<T, Device> own) override {
    if (objective_) objective_->set_loss(std::move(own), vertices());
  }
  /// What travels: a forward pass, objective::scores in the last stage, and these.
  task_scores scores() override {
    return scored([](auto& o, const auto& logits) { return o.scores(logits); });
  }
  /// The input of its last layer with parameters, after evaluate, in the last stage; or null, see
  /// model::hidden.
  const dense<T, vertex_rows, Device>* hidden() { return stage_->whole().hidden(); }
  /// The vertex of each row in the order of chunks.
  const std::vector<global_index>& vertices() const { return stage_->vertex_of_rows(); }

  /// What this rank receives in a steady epoch's step, in closed form; and of that, from other stages.
  traffic predicted() const override {
    return stage_->predicted(epochs_.exact(0)) + boundary() + of_loss_and_norm();
  }
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
  double train_epoch(epoch_report& report) override;
  void share(epoch_report& report, double mine) override {
    idle_ += report.seconds - (mine - link_->taken_idle());
    seconds_ += report.seconds;
    report.loss = mesh_.world().broadcast(report.loss, mesh_.size() - 1);
  }
  std::array<double, 3> split_scores(int) override {
    return scored([](auto& o, const auto& logits) { return o.split_scores(logits); });
  }
  template <class Of>
  auto scored(Of of);
  global_index elements_before() const override {
    return stage_->place().weights_before(stage_->place().first);
  }
  std::vector<T> of_all_parts(std::vector<T> mine) override { return link_->of_all_stages(mine); }
  std::vector<std::pair<std::string, matrix_shape>> all_shapes() override {
    std::vector<std::pair<std::string, matrix_shape>> found;
    for (const auto& p : place().outline.parameters) found.emplace_back(p.name, p.shape);
    return found;
  }
  /// What travels: one number, in an all-reduce between stages.
  double norm_of_gradients() override {
    const double mine = gradient_norm(parameters());
    const comm::phase_scope phase(mesh_.ledger(), "backward");
    return std::sqrt(link_->ranks().all_reduce(mine * mine));
  }
  /// The history is not stored: it is recomputed by an exact forward pass with these parameters and the
  /// dropout of the last epoch.
  void restored(int steps) override {
    const chunk_history history = options_.pipeline.history;
    if (!epochs_.exact(0) && (history == chunk_history::window || history == chunk_history::halo))
      refresh_history(steps);
  }
  void observed(const epoch_report& report) override;
  void summarize_run(training_result& result) override;
  traffic of_loss_and_norm() const;

  std::optional<mesh<Device>> of_stage_;
  std::unique_ptr<pipeline_stage<T, Device>> stage_;
  std::optional<pipeline_link<T, Device>> link_;   ///< ends before the stage, whose rows are under way
  std::optional<objective<T, Device>> objective_;  ///< in the last stage
  pipeline_guard<T, Device> guard_;                ///< in the last stage
  guarded_epochs epochs_;
  pipeline_result result_;
  double idle_ = 0, seconds_ = 0;  ///< of all steps: not at work, and in all
};

template <class T, class Device>
pipeline_trainer<T, Device>::pipeline_trainer(const mesh<Device>& m, const io::dataset& data,
                                              const training_options& options, const policy& p,
                                              mesh_shape inside)
    : above(m, data, options), epochs_(options.pipeline) {
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

/// All chunks at once, stage after stage; rows pass between stages in chunks.
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
double pipeline_trainer<T, Device>::train_epoch(epoch_report& report) {
  const int number = report.epoch;
  const bool compared = epochs_.compares(number);
  double aside = 0;
  if (compared || epochs_.refreshes()) {
    const comm::phase_scope phase(mesh_.ledger(), "evaluation");
    const double begin = this->seconds();
    run_exactly(number);
    aside = this->seconds_since(begin);
  }
  link_->taken_idle();
  report.loss = gradients(number);
  if (compared) {
    mesh_.queue().synchronize();
    const double begin = this->seconds();
    report.comparison = compare(number, report.loss);
    aside += this->seconds_since(begin);
  }
  this->move_parameters();
  stage_->end_epoch(static_cast<std::uint64_t>(number));
  return aside;
}

/// The scores that the last stage computes for the current model, on every rank.
template <class T, class Device>
template <class Of>
auto pipeline_trainer<T, Device>::scored(Of of) {
  const auto& logits = evaluate();
  return comm::in_task(link_->task({"scores"}), [&] {
    decltype(of(*objective_, logits)) found{};
    if (objective_) found = of(*objective_, logits);
    return broadcast(mesh_.world(), found, mesh_.size() - 1);
  });
}

template <class T, class Device>
void pipeline_trainer<T, Device>::observed(const epoch_report& r) {
  const bool stops = options_.pipeline.on_divergence == guard_action::stop;
  if (!stops || !r.comparison || !r.comparison->diverged) return;
  mesh_.world().all_gather(r.epoch);  // every rank has observed it before the first one leaves
  base::throw_error<error>({name_, ": the pipeline no longer follows the exact computation in epoch ",
                            r.epoch, ": ", r.comparison->reason,
                            "; more exact epochs, another history or fewer chunks may help"});
}

template <class T, class Device>
void pipeline_trainer<T, Device>::summarize_run(training_result& result) {
  const communicator& world = mesh_.world();
  result.mesh = of_stage_->shape();
  result_.boundary_words = summarize(world, boundary().words);
  result_.history_bytes = summarize(world, stage_->history_bytes());
  const std::vector<double> shares = world.all_gather(seconds_ > 0 ? idle_ / seconds_ : 0);
  result_.bubble = means_of_groups(shares, static_cast<std::size_t>(of_stage_->size()));
  result.pipeline = result_;
}

template <class T, class Device>
model_outputs<T> pipeline_trainer<T, Device>::outputs(bool with_hidden) {
  const communicator& world = mesh_.world();
  const auto& logits = evaluate();  // (n, classes), in the last stage
  model_outputs<T> found;
  if (is_last()) {
    found = detail::outputs_of(logits, hidden(), with_hidden);
    found.logits = in_order_of_vertices(std::move(found.logits), logits.shape().cols, vertices());
    found.hidden = in_order_of_vertices(std::move(found.hidden), found.hidden_width, vertices());
  }
  const int sender = world.size() - of_stage_->size();  // the first rank of the last stage
  found.hidden_width = world.broadcast(found.hidden_width, sender);
  if (sender == 0) return found;
  if (world.rank() == sender) {
    world.send(found.logits, 0);
    world.send(found.hidden, 0);
    found.logits.clear();
    found.hidden.clear();
  } else if (world.rank() == 0) {
    const auto n = std::ssize(vertices());
    found.logits.resize(static_cast<std::size_t>(n * place().outline.output_width));
    found.hidden.resize(static_cast<std::size_t>(n * found.hidden_width));
    world.receive(found.logits, sender);
    world.receive(found.hidden, sender);
  }
  return found;
}

template <class T, class Device>
traffic pipeline_trainer<T, Device>::of_loss_and_norm() const {
  traffic all = is_last() ? algebra::predicted_sum<double>(*of_stage_, 1) : traffic();
  comm::collective norm;
  norm.kind = operation::all_reduce, norm.count = 1;
  if (options_.clip > 0) all += received(norm, link_->ranks().rank(), link_->ranks().size());
  return all;
}

}  // namespace partita::nn
