// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Training on sampled neighbourhoods of batches of vertices.

#include <array>
#include <functional>
#include <numeric>

#include "partita/sampling/block_matrix.hpp"
#include "partita/sampling/neighbour_sampler.hpp"
#include "partita/train/batch_input.hpp"
#include "partita/train/batch_order.hpp"
#include "partita/train/models.hpp"
#include "partita/train/objective.hpp"

namespace partita::nn {

/// Sampled blocks as the matrices of all layers; `apart`: that many relations, which are above each other in
/// the blocks, each by itself. Local; no communication.
template <class T, class Device>
layer_matrices<T, Device> block_matrices(const mesh<Device>& alone,
                                         const std::vector<sampling::block<T>>& blocks, bool stores_transpose,
                                         local_index apart = 1) {
  std::vector<sparse<T, dynamic_layout, Device>> matrices;
  for (const sampling::block<T>& b : blocks)
    matrices.push_back(apart == 1 ? block_matrix(alone, b, stores_transpose)
                                  : block_matrix(alone, sampling::apart(b, apart), stores_transpose));
  return layer_matrices<T, Device>(std::move(matrices));
}

/// What their edges have: vectors, and the values of the blocks as factors. Local.
template <class T, class Device>
edges_of_layers<T, Device> edges_of_blocks(const layer_matrices<T, Device>& graph,
                                           const std::vector<sampling::block<T>>& blocks) {
  std::vector<layer_edges<T, Device>> layers(blocks.size());
  for (std::size_t l = 0; l < blocks.size(); ++l) {
    const auto edges = [&](const std::vector<T>& values, local_index width) {
      edge_matrix<T, Device> e(graph[l], width);
      copy(graph[l].mesh().queue(), std::span<const T>(values), e.values());
      return std::make_shared<const edge_matrix<T, Device>>(std::move(e));
    };
    layers[l].factors = edges(blocks[l].values, 1);
    if (blocks[l].width > 0) layers[l].vectors = edges(blocks[l].vectors, blocks[l].width);
  }
  return edges_of_layers<T, Device>(std::move(layers));
}

/// Steps of a model on micro-batches of sampled blocks: all of a rank's work in an iteration, without its
/// communication. The parameters are on a mesh of one rank and begin as those of a whole-graph model.
///
/// On a mesh::alone of a reproducible mesh losses, gradients and scores are those of all ranks' samples
/// together: constructor, run and scores are then collective over mesh::whole, and what travels are the
/// maxima and sums of products, gradients and losses. They have the same bits however roots are dealt to
/// ranks, if those of all ranks are the same and stand apart (sampling::roots_apart): a gradient of a row is
/// rounded, and the sum of two that were rounded is not their sum rounded.
template <class T, class Device>
class block_steps {
 public:
  block_steps(const mesh<Device>& alone, const io::dataset& data, const training_options& options)
      : alone_(alone),
        data_(data),
        options_(options),
        named_(find_model<T, Device>(options)),
        training_weight_(vertex_weights(data, options).of(vertices_in(data, io::split_part::train))) {
    if (!named_.is_on_blocks())
      base::throw_error<error>({"model ", named_.title(), " cannot be trained on sampled neighbours; ",
                                models_that(&model_row::is_on_blocks),
                                " can, coupled and with mean aggregation"});
    if (options.recompute == activation_checkpointing::always)
      throw error("activation checkpointing is not available in mini-batches");
    if (options.mini_batch.placement == sampling::placement::column && !named_.on_blocks.slices)
      base::throw_error<error>(
          {"placement column multiplies slices of the columns of X, not possible with model ",
           named_.title()});
    if (options.mini_batch.placement == sampling::placement::column)
      memory::refuse_reproducible(alone.queue(), "placement column, of partial sums over the columns of X,");
    if (!named_.is_reproducible_on_blocks())
      memory::refuse_reproducible(alone.queue(), "attention on sampled neighbours");
    if (options.mini_batch.sampler == batch_sampler::walks)
      memory::refuse_reproducible(alone.queue(),
                                  "training on subgraphs of walks, which are those of a rank's roots,");
    const auto width = static_cast<local_index>(named_.reads_edge_vectors ? data.edge_features.cols : 0);
    const sampling::block<T> none{0, 0, {0}, {}, {}, width};
    const std::vector<sampling::block<T>> blocks(block_count(named_, data, options), none);
    parameters_ = builder_of(blocks, blocking::even(0, alone.shape(), nesting::rows), false).parameters();
    total_.emplace(alone_, parameters_->values().shape());
  }

  /// The loss of the rows of a micro-batch, in place of the objective's.
  void set_loss(loss_function<T, Device> own) { own_ = std::move(own); }
  /// Before the micro-batches of an iteration.
  void begin() {
    fill(*total_, T(0));
    predicted_ = {};
  }
  /// Adds `share` times the gradients of the mean loss over the sample's training vertices; returns so much
  /// of the loss. Where the sample has weights, the gradients are those of the weighted sum of losses over
  /// the number of all training vertices instead of the mean. `step` seeds dropout. In input_gradient, unless
  /// null, the gradient of the input.
  double run(const algebra::operand<T, Device>& input, const sampling::sample<T>& sample, double share,
             std::uint64_t step, dense<T, vertex_rows, Device>* input_gradient = nullptr) {
    model<T, Device> net = model_of(sample, input_gradient != nullptr);
    const auto& logits = net.forward(input, pass_of(sample, step, true));
    objective<T, Device> labels(alone_, data_, options_, net.row_blocking(), sample.vertices);
    if (own_) labels.set_loss(own_, sample.vertices);
    dense<T, vertex_rows, Device> dlogits(alone_, logits.row_blocking(), logits.col_blocking());
    const double loss = share * labels.loss(logits, dlogits);
    if (sample.weights.empty())
      transform(dlogits, dlogits, base::scaled<T>{static_cast<T>(share)});
    else
      weigh(sample.weights, share * labels.weight(), dlogits);
    net.backward(dlogits, input_gradient);
    zip(*total_, parameters_->gradients(), *total_, std::plus<>{});
    predicted_ += predicted_run(net, labels.set_up_sums());
    return loss;
  }
  /// What this rank receives in the runs since begin, in closed form.
  traffic predicted() const { return predicted_; }
  /// The gradients of all micro-batches become those of the parameters: this rank's contribution.
  std::span<T> gradients() {
    copy(*total_, parameters_->gradients());
    return parameters_->gradients().values();
  }
  /// Predictions for the roots of a sample, by part of the split.
  std::array<score_counts, 3> scores(const algebra::operand<T, Device>& input,
                                     const sampling::sample<T>& sample) {
    model<T, Device> net = model_of(sample, false);
    const auto& logits = net.forward(input, pass_of(sample, 0, false));
    objective<T, Device> labels(alone_, data_, options_, net.row_blocking(), sample.vertices);
    return {labels.counts(logits, io::split_part::train), labels.counts(logits, io::split_part::validation),
            labels.counts(logits, io::split_part::test)};
  }

  const named_model<T, Device>& named() const { return named_; }
  nn::parameters<T, Device>& parameters() { return *parameters_; }
  /// Columns of the first weight.
  global_index first_width() const { return parameters_->list().front().shape().cols; }

 private:
  void weigh(const std::vector<double>& weights, double factor,
             dense<T, vertex_rows, Device>& dlogits) const {
    std::vector<T> of_rows;
    for (const double w : weights) of_rows.push_back(static_cast<T>(w * factor / training_weight_));
    dense<T, vertex_rows, Device> rows(alone_, {std::ssize(of_rows), 1});  // (roots, 1)
    copy(alone_.queue(), std::span<const T>(of_rows), rows.values());
    transform_rows(dlogits, rows, dlogits, std::multiplies<>{});
  }
  model<T, Device> make(const std::vector<sampling::block<T>>& blocks, const builder<T, Device>& b) const {
    const bool transposes = !named_.on_blocks.aggregates;  // attention works on the entries of A^T
    const global_index apart = transposes && named_.reads_edge_types() ? relation_count(data_, options_) : 1;
    const auto graph = block_matrices(alone_, blocks, transposes, static_cast<local_index>(apart));
    return named_.make(
        {graph, data_, options_, b,
         named_.reads_edge_vectors ? edges_of_blocks(graph, blocks) : edges_of_layers<T, Device>()});
  }
  builder<T, Device> builder_of(const std::vector<sampling::block<T>>& blocks, const blocking& inputs,
                                bool input_gradient) {
    model_options how = options_of_model(options_, data_);
    how.sampled = true;
    how.learned_input = input_gradient;
    const builder<T, Device> b(alone_, inputs, how, parameters_);
    if (!parameters_) make(blocks, b);
    return b;
  }
  model<T, Device> model_of(const sampling::sample<T>& sample, bool input_gradient) {
    const auto inputs = static_cast<global_index>(sample.vertices.size());
    return make(
        sample.blocks,
        builder_of(sample.blocks, blocking::even(inputs, alone_.shape(), nesting::rows), input_gradient));
  }
  /// Those of the model, of the sums of the objective's constructor, of the grid of the loss and of its sum.
  traffic predicted_run(const model<T, Device>& net, const std::vector<global_index>& set_up_sums) const {
    comm::collective op;
    op.kind = operation::all_reduce;
    const auto reduced = [&](global_index count) {
      op.count = count;
      return received(op, alone_.whole().rank(), alone_.whole().size());
    };
    traffic all = net.predicted() + reduced(1) + global_index{2} * reduced(2);
    for (const global_index count : set_up_sums) all += reduced(count);
    return all;
  }
  pass pass_of(const sampling::sample<T>& sample, std::uint64_t step, bool training) {
    if (!training || options_.dropout == 0) return {.training = training, .epoch = step};
    vertices_ = buffer<global_index, Device>(alone_.queue(), sample.vertices.size());
    copy(alone_.queue(), std::span<const global_index>(sample.vertices), vertices_.span());
    return {.training = training, .epoch = step, .vertices = vertices_.data()};
  }

  mesh<Device> alone_;
  const io::dataset& data_;
  training_options options_;
  const named_model<T, Device>& named_;
  double training_weight_;
  loss_function<T, Device> own_;
  std::shared_ptr<nn::parameters<T, Device>> parameters_;
  std::optional<dense<T, replicated, Device>> total_;
  buffer<global_index, Device> vertices_;
  traffic predicted_;
};

}  // namespace partita::nn
