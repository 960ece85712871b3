// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Mini-batch training of a model over the ranks of a mesh.

#include <array>
#include <memory>

#include "partita/base/background.hpp"
#include "partita/sampling/roots_apart.hpp"
#include "partita/train/batch_sampler.hpp"
#include "partita/train/batch_share.hpp"
#include "partita/train/batch_traffic.hpp"
#include "partita/train/input_gradient.hpp"
#include "partita/train/mini_batch.hpp"

namespace partita::nn {

/// Trains one model on sampled neighbourhoods. In an iteration, each rank samples the neighbourhoods of its
/// share of the batch, gets the rows of X that they need, and computes the gradients of its share of the mean
/// loss, which one all-reduce sums. Samples of the iteration after the next are drawn, and rows for the next
/// are on their way, while the present one computes; rows of an embedding travel after its step, and their
/// gradients back to those who have them. What is computed does not depend on the placement, the ranks or the
/// micro-batches, except that subgraphs of walks are those of a micro-batch's roots. On a reproducible mesh
/// that is so in every bit for ranks and placement: micro-batches are then cut from the whole batch, and each
/// root's neighbourhood is computed apart.
///
/// Collective over the mesh, with the same data on every rank: constructor and members. Sources: LeapGNN
/// (Chen et al., FAST 2025), without its motion of models; P3 (Gandhi, Iyer, OSDI 2021); DistDGL (Zheng et
/// al., IA3 2020).
template <class T, class Device>
class mini_batch_trainer final : public training<T, Device> {
  using above = training<T, Device>;
  using above::embedding_optimizer_;
  using above::mesh_;
  using above::options_;

 public:
  /// `p`: the policy under which the whole graph is evaluated. `data` must outlive the trainer. From now on
  /// the mesh's queue recycles memory. Throws input_error when the training set is empty, error for a model
  /// that cannot be trained on blocks, and what make_sampler throws.
  mini_batch_trainer(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                     const policy& p);

  model_outputs<T> outputs(bool with_hidden) override { return whole().outputs(with_hidden); }
  /// Throws error for samples of walks, in which vertices count more or less than once.
  void set_loss(loss_function<T, Device> own) override {
    if (options_.mini_batch.sampler == batch_sampler::walks)
      throw error("samples of walks weigh vertices, which a loss of one's own does not");
    steps_.set_loss(std::move(own));
  }
  /// Where scores are sampled, the first one of each part.
  task_scores scores() override {
    if (!options_.mini_batch.sampled_scores) return whole().scores();
    const auto [train, validation, test] = split_scores(options_.epochs);
    return {data_.task, {part_scores{train}, part_scores{validation}, part_scores{test}}};
  }
  /// The loss of one batch and, in parameters(), its gradients, without a step.
  double gradients(std::uint64_t epoch, std::size_t batch) {
    order_.begin(epoch);
    prepare(order_.batch(batch), epoch, slots_[0]);
    get_rows(*inputs_[0], slots_[0].samples);
    return of_all_ranks(backward(slots_[0], *inputs_[0], step_number(epoch, batch)));
  }

  nn::parameters<T, Device>& parameters() override { return steps_.parameters(); }
  /// The embedding X (n x w), cut by rows or columns as the placement needs it; null where the data's
  /// features are the input.
  dense<T, dynamic_layout, Device>* embedding() { return learns_input() ? &*x_ : nullptr; }
  /// d loss / d X of the last batch (rows x columns of this rank's block), on a mesh of one rank: for those
  /// rows of the block that the samples of any rank contain.
  const std::vector<global_index>& embedding_rows() const { return x_gradient_->rows(); }
  const dense<T, vertex_rows, Device>& embedding_gradient() const { return x_gradient_->value(); }
  /// The same model on the whole graph, with the present parameters, built at the first call where scores are
  /// sampled. Valid until the next step.
  trainer<T, Device>& whole();
  sampling::placement placement() const { return result_.placement; }
  std::size_t iterations() const { return order_.iterations(); }
  traffic predicted() const override { return predicted_; }

 private:
  using iteration = batch_share<T>;

  double train_epoch(epoch_report& report) override;
  std::optional<typename above::rows> learned_rows() override {
    if (!learns_input()) return {};
    return above::rows::view(mesh_, x_->layout(), x_->row_blocking(), x_->col_blocking(), x_->values());
  }
  void summarize_run(training_result& result) override {
    const communicator& world = mesh_.world();
    result_.iterations = static_cast<int>(order_.iterations());
    result_.remote_rows = summarize(world, remote_rows_);
    result_.requested_rows = world.all_reduce(requested_rows_);
    result_.sampled_edges = world.all_reduce(sampled_edges_);
    result.mini_batch = result_;
  }

  bool learns_input() const { return options_.embedding > 0; }
  bool by_columns() const {
    return result_.placement == sampling::placement::column ||
           result_.placement == sampling::placement::column_gather;
  }

  void choose_placement();
  void make_inputs();
  template <class S>
  void make_inputs_from(std::optional<dense<S, dynamic_layout, Device>>& x);
  void divide(std::span<const global_index> batch, std::uint64_t epoch, sampling::placement how,
              iteration& to);
  void sample(iteration& of) {
    for (std::size_t k = 0; k < of.roots.size(); ++k) {
      auto& sampled = apart_ ? together_ : of.samples[k];
      (*sampler_)(of.roots[k], of.epoch, sampled);
      if (apart_) roots_apart(sampled, of.samples[k]);
    }
  }
  void prepare(std::span<const global_index> batch, std::uint64_t epoch, iteration& to) {
    divide(batch, epoch, result_.placement, to);
    sample(to);
  }
  std::uint64_t step_number(std::uint64_t epoch, std::size_t batch) const {
    return (epoch - 1) * order_.iterations() + batch + 1;
  }
  double of_all_ranks(double part) const {
    algebra::sum_host_parts(mesh_, std::span(&part, 1));
    return part;
  }
  void assign_rows(batch_input<T, Device>& input, const std::vector<sampling::sample<T>>& samples) {
    input.assign(samples);
    if (row_cache_) input.read_own(*row_cache_);
  }
  void finish_rows(batch_input<T, Device>& input) {
    input.finish();
    if (row_cache_) row_cache_->finish();
  }
  void get_rows(batch_input<T, Device>& input, const std::vector<sampling::sample<T>>& samples) {
    assign_rows(input, samples);
    input.start();
    finish_rows(input);
  }
  void foresee_rows(std::uint64_t epoch);
  void begin_sampling(std::size_t batch, std::uint64_t epoch);
  void begin_input(std::size_t batch);
  double backward(iteration& of, batch_input<T, Device>& input, std::uint64_t step);
  std::array<double, 3> split_scores(int epoch) override {
    using enum io::split_part;
    if (!options_.mini_batch.sampled_scores) return whole().split_scores(epoch);
    return {sampled_score(train, epoch), sampled_score(validation, epoch), sampled_score(test, epoch)};
  }
  double sampled_score(io::split_part part, int epoch);

  mesh<Device> alone_;
  /// Whether micro-batches are cut from the whole batch, and each root's neighbourhood is computed apart, so
  /// that what is rounded does not depend on the ranks: on a reproducible mesh.
  bool apart_;
  const io::dataset& data_;
  policy policy_;
  sampling::vertex_owners owner_;
  vertex_weights weights_;
  batch_order order_;
  block_steps<T, Device> steps_;
  std::unique_ptr<sampling::sampler<T>> sampler_;
  std::optional<trainer<T, Device>> whole_;  ///< for exact scores
  std::optional<dense<T, dynamic_layout, Device>> x_;
  std::optional<dense<base::bfloat16, dynamic_layout, Device>> stored_x_;  ///< in place of x_
  bool shares_x_ = false;                                                  ///< with whole_
  std::optional<input_gradient<T, Device>> x_gradient_;                    ///< of a learned X
  std::unique_ptr<memory::row_cache> row_cache_;  ///< of an X that is far and not learned
  std::array<std::unique_ptr<batch_input<T, Device>>, 2> inputs_;
  std::array<iteration, 3> slots_;
  sampling::sample<T> together_;  ///< before roots are set apart
  mini_batch_result result_;
  traffic predicted_;  ///< of the last epoch, as the counts below
  global_index remote_rows_ = 0, requested_rows_ = 0, sampled_edges_ = 0;
  base::background beside_;  ///< draws samples; ends first
};

template <class T, class Device>
mini_batch_trainer<T, Device>::mini_batch_trainer(const mesh<Device>& m, const io::dataset& data,
                                                  const training_options& options, const policy& p)
    : above(m, data, options),
      alone_(partita::mesh<Device>::alone(m)),
      apart_(m.reproducible()),
      data_(data),
      policy_(p),
      owner_{graph::vertex_blocking(m, data, options), vertex_rows.rows, m.size()},
      weights_(data, options),
      order_(training_vertices(data), options.mini_batch.batch, options.seed),
      steps_(alone_, data, options) {
  const mini_batch_options& how = options.mini_batch;
  const auto graph =
      sampled_graph<T>(m, data, options, steps_.named().multiplies_with, steps_.named().reads_edge_vectors);
  sampler_ = make_sampler(graph, options, steps_.named(), block_count(steps_.named(), data, options),
                          vertices_in(data, io::split_part::train), m.size() * how.micro_batches);
  if (!how.sampled_scores) whole_.emplace(m, data, options, make_model<T>(m, data, options, p));
  result_.placement = how.placement;
  if (how.placement == sampling::placement::automatic) choose_placement();
  make_inputs();
  m.queue().recycle_memory();
}

template <class T, class Device>
void mini_batch_trainer<T, Device>::divide(std::span<const global_index> batch, std::uint64_t epoch,
                                           sampling::placement how, iteration& to) {
  const auto deal = [&](std::span<const global_index> roots) {
    return sampling::shares(sampler_->graph(), roots, how, owner_);
  };
  const auto& o = options_.mini_batch;
  const auto mean = o.sampler == batch_sampler::walks ? batch_mean::of_parts : batch_mean::of_roots;
  const global_index most =
      apart_ ? split_by_batch_then_rank(batch, mesh_.rank(), o.micro_batches, deal, weights_, to)
             : split_by_rank_then_batch(batch, mesh_.rank(), o.micro_batches, mean, deal, weights_, to);
  result_.most_roots = std::max(result_.most_roots, most);
  to.epoch = epoch;
  to.samples.resize(to.roots.size());
}

template <class T, class Device>
void mini_batch_trainer<T, Device>::choose_placement() {
  const std::size_t batches = std::min<std::size_t>(3, order_.iterations());
  batch_traffic cost(mesh_.rank(), mesh_.size(), input_width(data_, options_), steps_.first_width(),
                     steps_.named().on_blocks, learns_input());
  order_.begin(1);
  for (std::size_t i = 0; i < batches; ++i)
    for (const auto how : {sampling::placement::even, sampling::placement::owner}) {
      divide(order_.batch(i), 1, how, slots_[0]);
      sample(slots_[0]);
      cost.add(how, slots_[0].samples, owner_);
    }
  result_.candidates = cost.busiest_rank(mesh_.world(), static_cast<global_index>(batches));
  if (apart_ || !steps_.named().on_blocks.slices)
    std::erase_if(result_.candidates, [](const auto& k) { return k.first == sampling::placement::column; });
  result_.placement = std::ranges::min(result_.candidates, {}, [](const auto& k) { return k.second; }).first;
  result_.most_roots = 0;
}

template <class T, class Device>
void mini_batch_trainer<T, Device>::make_inputs() {
  if constexpr (algebra::stored_as<base::bfloat16, T, Device>)
    if (!learns_input() && options_.storage == operand_precision::bfloat16)
      return make_inputs_from(stored_x_);
  make_inputs_from(x_);
  if (learns_input()) x_gradient_.emplace(*x_, alone_);
}

/// Makes X, too, whose dense rows are shared with the model of the whole graph.
template <class T, class Device>
template <class S>
void mini_batch_trainer<T, Device>::make_inputs_from(std::optional<dense<S, dynamic_layout, Device>>& x) {
  auto* const whole = whole_ && !by_columns() ? whole_->template dense_input<S>() : nullptr;
  shares_x_ = whole != nullptr;
  using rows = dense<S, dynamic_layout, Device>;  // (n, f)
  x.emplace(shares_x_ ? rows::view(mesh_, vertex_rows, whole->row_blocking(), whole->col_blocking(),
                                   whole->values())
                      : batch_features<T, S>(mesh_, data_, options_, owner_.rows, by_columns()));
  if (!learns_input()) row_cache_ = transfer::make_row_cache(*x);
  const sampling_traits layer = steps_.named().on_blocks;
  const bool rounds = std::max(options_.operands, options_.storage) == operand_precision::bfloat16;
  for (auto& input : inputs_)
    if (result_.placement == sampling::placement::column)
      input = std::make_unique<sliced_input<T, Device, S>>(*x, alone_, layer.aggregates, layer.products,
                                                           learns_input(), rounds);
    else
      input = std::make_unique<gathered_input<T, Device, S>>(*x, alone_);
}

/// Which rows of a far X an epoch needs: its samples are drawn, and forgotten, unless that takes messages.
template <class T, class Device>
void mini_batch_trainer<T, Device>::foresee_rows(std::uint64_t epoch) {
  if (!row_cache_) return;
  row_cache_->begin();
  if (!row_cache_->chooses() || !sampler_->graph().is_replicated() ||
      result_.placement == sampling::placement::column)
    return;
  const comm::phase_scope phase(mesh_.ledger(), "sampling");
  for (std::size_t i = 0; i < order_.iterations(); ++i) {
    prepare(order_.batch(i), epoch, slots_[0]);
    for (const auto& s : slots_[0].samples) row_cache_->foresee(s.vertices);
    row_cache_->end_batch();
  }
}

/// Draws samples in the background, unless that takes messages.
template <class T, class Device>
void mini_batch_trainer<T, Device>::begin_sampling(std::size_t batch, std::uint64_t epoch) {
  const comm::phase_scope phase(mesh_.ledger(), "sampling");
  iteration& to = slots_[batch % slots_.size()];
  divide(order_.batch(batch), epoch, result_.placement, to);
  if (sampler_->graph().is_replicated())
    beside_.start([this, &to] { sample(to); });
  else
    sample(to);
}

template <class T, class Device>
void mini_batch_trainer<T, Device>::begin_input(std::size_t batch) {
  beside_.wait();
  const comm::phase_scope phase(mesh_.ledger(), "features");
  batch_input<T, Device>& input = *inputs_[batch % 2];
  const iteration& of = slots_[batch % slots_.size()];
  assign_rows(input, of.samples);
  if (!learns_input()) input.start();
  predicted_ += input.predicted() + input.predicted_products(steps_.first_width());
  remote_rows_ += input.remote_rows();
  requested_rows_ += input.requested_rows();
  for (const auto& s : of.samples) sampled_edges_ += static_cast<global_index>(s.sampled_edges);
}

/// This rank's share of the loss, or all of it where sums are reproducible.
template <class T, class Device>
double mini_batch_trainer<T, Device>::backward(iteration& of, batch_input<T, Device>& input,
                                               std::uint64_t step) {
  double loss = 0;
  steps_.begin();
  if (learns_input()) x_gradient_->begin(of.samples);
  const bool alone = result_.placement != sampling::placement::column;
  for (std::size_t k = 0; k < of.samples.size(); ++k) {
    if (alone && of.weights[k] == 0) continue;
    auto* const dh = learns_input() ? input.gradient(k) : nullptr;
    loss += steps_.run(input.input(k), of.samples[k], of.weights[k], step, dh);
    if (dh != nullptr) x_gradient_->add(input, k, *dh);
  }
  input.release();
  const auto gradients = steps_.gradients();
  algebra::sum_parts(mesh_, gradients);
  if (learns_input()) x_gradient_->sum(input);
  return loss;
}

template <class T, class Device>
double mini_batch_trainer<T, Device>::train_epoch(epoch_report& report) {
  const auto epoch = static_cast<std::uint64_t>(report.epoch);
  predicted_ = {};
  remote_rows_ = requested_rows_ = sampled_edges_ = result_.most_roots = 0;
  order_.begin(epoch);
  foresee_rows(epoch);
  const std::size_t batches = order_.iterations();
  double loss = 0;
  begin_sampling(0, epoch);
  begin_input(0);
  if (batches > 1) begin_sampling(1, epoch);
  for (std::size_t i = 0; i < batches; ++i) {
    {
      const comm::phase_scope phase(mesh_.ledger(), "features");
      if (learns_input()) inputs_[i % 2]->start();  // X has changed since the rows were assigned
      finish_rows(*inputs_[i % 2]);
    }
    if (i + 1 < batches) begin_input(i + 1);
    if (i + 2 < batches) begin_sampling(i + 2, epoch);
    const comm::phase_scope phase(mesh_.ledger(), "training");
    iteration& now = slots_[i % slots_.size()];
    loss += backward(now, *inputs_[i % 2], step_number(epoch, i)) * now.weight;
    predicted_ += steps_.predicted();
    this->move_parameters();
    if (!learns_input()) continue;
    predicted_ += x_gradient_->predicted(*inputs_[i % 2]);
    embedding_optimizer_.step(*x_, x_gradient_->rows(), x_gradient_->value());
  }
  const comm::phase_scope phase(mesh_.ledger(), "training");
  predicted_ += static_cast<global_index>(batches) *
                    algebra::predicted_sum_of_parts<T>(mesh_, steps_.parameters().values().shape().cols) +
                algebra::predicted_sum_of_parts<double>(mesh_, 1);
  report.loss = of_all_ranks(loss) / weights_.of(order_.vertices());
  return 0;
}

template <class T, class Device>
trainer<T, Device>& mini_batch_trainer<T, Device>::whole() {
  if (!whole_) whole_.emplace(mesh_, data_, options_, make_model<T>(mesh_, data_, options_, policy_));
  const auto& trained = steps_.parameters().values();
  copy(mesh_.queue(), trained.values(), whole_->model().parameters().values().values());
  if (learns_input() && !shares_x_)
    redistribution<T, Device>(mesh_, x_->row_blocking(), x_->col_blocking(), x_->layout(), vertex_rows)(
        *x_, *whole_->embedding());
  return *whole_;
}

template <class T, class Device>
double mini_batch_trainer<T, Device>::sampled_score(io::split_part part, int epoch) {
  const std::vector<global_index> all = vertices_in(data_, part);
  const global_index roots_before = result_.most_roots;
  score_counts counts;
  iteration& now = slots_[0];
  for (std::span rest(all); !rest.empty();) {
    const auto batch = rest.first(std::min(static_cast<std::size_t>(options_.mini_batch.batch), rest.size()));
    rest = rest.subspan(batch.size());
    prepare(batch, static_cast<std::uint64_t>(epoch), now);
    batch_input<T, Device>& input = *inputs_[0];
    get_rows(input, now.samples);
    for (std::size_t k = 0; k < now.samples.size(); ++k)
      counts += steps_.scores(input.input(k), now.samples[k])[static_cast<std::size_t>(part) - 1];
    input.release();
  }
  result_.most_roots = roots_before;
  counts.vertices = static_cast<double>(all.size());
  counts.sums.resize(data_.task == io::task::values ? static_cast<std::size_t>(data_.classes) : 2);
  algebra::sum_host_parts(mesh_, std::span(counts.sums));
  return counts.score(data_, part);
}

}  // namespace partita::nn
