// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What trainers and predictors have learned and compute, gathered for files, whatever way of training it
/// was.

#include <string>
#include <utility>
#include <vector>

#include "partita/train/mini_batch_trainer.hpp"
#include "partita/train/parameter_values.hpp"
#include "partita/train/pipeline_trainer.hpp"
#include "partita/train/predictor.hpp"

namespace partita::nn {

/// What a model computes for every vertex, row-major in the order of the dataset, on the first rank; empty on
/// others.
template <class T>
struct model_outputs {
  std::vector<T> logits;          ///< (n, classes)
  std::vector<T> hidden;          ///< (n, hidden_width), the input of the last layer with parameters
  global_index hidden_width = 0;  ///< 0 where it is not asked for
};

namespace detail {

template <class T, class Matrix>
std::vector<parameter_values<T>> with_embedding(std::vector<parameter_values<T>> values,
                                                const Matrix* embedding) {
  if (embedding == nullptr) return values;
  std::vector<T> rows = values_on_first_rank(*embedding);  // (n, w) on the first rank
  if (embedding->mesh().rank() == 0)
    values.push_back({std::string(embedding_name), embedding->shape(), std::move(rows)});
  return values;
}

template <class T, class Device>
model_outputs<T> outputs_of(const dense<T, vertex_rows, Device>& logits,
                            const dense<T, vertex_rows, Device>* hidden, bool with_hidden) {
  if (with_hidden && hidden == nullptr) throw error("a model of one layer has no hidden layer");
  model_outputs<T> found{values_on_first_rank(logits), {}, 0};
  if (!with_hidden) return found;
  found.hidden = values_on_first_rank(*hidden);
  found.hidden_width = hidden->shape().cols;
  return found;
}

}  // namespace detail

/// The parameters of a model by name, in its order, on every rank, and after them, on the first, the learned
/// input (n x w) if there is one, in the order of the dataset. Collective over the mesh. What travels: the
/// learned input to the first rank; in a pipeline, the parameters between stages.
template <class T, class Device>
std::vector<parameter_values<T>> collect_values(trainer<T, Device>& training) {
  return detail::with_embedding(values_of(training.model().parameters()), training.embedding());
}
template <class T, class Device>
std::vector<parameter_values<T>> collect_values(mini_batch_trainer<T, Device>& training) {
  return detail::with_embedding(values_of(training.parameters()), training.embedding());
}
template <class T, class Device>
std::vector<parameter_values<T>> collect_values(pipeline_trainer<T, Device>& training) {
  const std::vector<T> all = training.collect_parameters();
  std::vector<parameter_values<T>> found;
  auto next = all.begin();
  for (const auto& p : training.place().outline.parameters) {
    const auto end = next + p.shape.rows * p.shape.cols;
    found.push_back({p.name, p.shape, std::vector<T>(next, end)});
    next = end;
  }
  return found;
}

/// The logits of the present model without dropout and, if wanted, the input of its last layer with
/// parameters. Collective over the mesh. What travels: a forward pass, and both matrices to the first rank.
/// Throws error where that input is the model's own.
template <class T, class Device>
model_outputs<T> collect_outputs(predictor<T, Device>& of, bool with_hidden) {
  const auto& logits = of.evaluate();  // (n, classes)
  return detail::outputs_of(logits, of.hidden(), with_hidden);
}
template <class T, class Device>
model_outputs<T> collect_outputs(trainer<T, Device>& of, bool with_hidden) {
  const auto& logits = of.evaluate();  // (n, classes)
  return detail::outputs_of(logits, of.model().hidden(), with_hidden);
}
template <class T, class Device>
model_outputs<T> collect_outputs(mini_batch_trainer<T, Device>& of, bool with_hidden) {
  return collect_outputs(of.whole(), with_hidden);
}
/// The last stage has the logits and sends them to the first.
template <class T, class Device>
model_outputs<T> collect_outputs(pipeline_trainer<T, Device>& of, bool with_hidden) {
  const stage_place& place = of.place();
  const communicator& world = of.world();
  const auto& logits = of.evaluate();  // (n, classes), in the last stage
  const mesh<Device>& inside = logits.mesh();
  model_outputs<T> found;
  if (place.is_last()) {
    found = detail::outputs_of(logits, of.hidden(), with_hidden);
    found.logits = in_order_of_vertices(std::move(found.logits), logits.shape().cols, of.vertices());
    found.hidden = in_order_of_vertices(std::move(found.hidden), found.hidden_width, of.vertices());
  }
  const int sender = world.size() - inside.size();  // the first rank of the last stage
  found.hidden_width = world.broadcast(found.hidden_width, sender);
  if (sender == 0) return found;
  if (world.rank() == sender) {
    world.send(found.logits, 0);
    world.send(found.hidden, 0);
    found.logits.clear();
    found.hidden.clear();
  } else if (world.rank() == 0) {
    const auto n = std::ssize(of.vertices());
    found.logits.resize(static_cast<std::size_t>(n * place.outline.output_width));
    found.hidden.resize(static_cast<std::size_t>(n * found.hidden_width));
    world.receive(found.logits, sender);
    world.receive(found.hidden, sender);
  }
  return found;
}

/// What is gathered after training.
struct wanted_values {
  bool values = false, logits = false, hidden = false;
};

/// A report of training and what was gathered after it.
template <class T>
struct trained_model {
  training_result report;
  std::vector<parameter_values<T>> values;  ///< see collect_values
  model_outputs<T> outputs;                 ///< see collect_outputs
};

/// Trains the model named by `options` on the whole graph, in mini-batches or over stages, as these say, and
/// gathers what is wanted. `inside`: the mesh of a stage where there are stages; m is used for its ranks
/// then. `how`: what it goes on from, and what it keeps. Collective over the mesh, with the same data on
/// every rank. What travels and exceptions: see train_model, train_on_mini_batches and train_on_stages;
/// collect_values and collect_outputs.
template <class T, class Device>
trained_model<T> train_and_collect(const mesh<Device>& m, const io::dataset& data,
                                   const training_options& options, const policy& p, mesh_shape inside,
                                   const wanted_values& wanted, const epoch_observer& observe = {},
                                   const continuation<T>& how = {}) {
  trained_model<T> found;
  const auto run = [&](auto&& training) {
    found.report = training.run(observe, how);
    if (wanted.values) found.values = collect_values(training);
    if (wanted.logits || wanted.hidden) found.outputs = collect_outputs(training, wanted.hidden);
  };
  if (options.pipeline.stages > 0) {
    run(pipeline_trainer<T, Device>(m, data, options, p, inside));
    return found;
  }
  require_mesh(p, m.shape(), m.size());
  if (options.mini_batch.batch > 0)
    run(mini_batch_trainer<T, Device>(m, data, options, p));
  else
    run(trainer<T, Device>(m, data, options, make_model<T>(m, data, options, p)));
  return found;
}

}  // namespace partita::nn
