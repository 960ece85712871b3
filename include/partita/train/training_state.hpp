// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What training goes on from, whatever the ranks, their policy and their stages.

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "partita/memory/far_forecast.hpp"
#include "partita/nn/sparse_adam.hpp"
#include "partita/partition/placement.hpp"
#include "partita/train/options.hpp"

namespace partita::nn {

/// The name and the shape of a parameter.
struct named_shape {
  std::string name;
  matrix_shape shape;
};

/// Elements of parameters, and Adam's moments of them.
template <class T>
struct values_with_moments {
  std::vector<T> values, first, second;
};

/// A run between two epochs.
template <class T>
struct training_state {
  std::vector<epoch_report> epochs;      ///< of all epochs so far, without comparisons
  int steps = 0;                         ///< of the optimisers
  std::vector<named_shape> parameters;   ///< in the order of the model
  values_with_moments<T> of_parameters;  ///< one parameter after the other
  matrix_shape embedding_shape = {};     ///< (n x w); (0 x 0) where the data's features are the input
  values_with_moments<T> of_embedding;   ///< row-major, by the numbers of vertices in the data
};

/// How a run goes on from an earlier one, how others may go on from it, and who is told what it will do.
/// Either all ranks have a function, or none has; `load` and `save` are called on the first rank.
template <class T>
struct continuation {
  /// When the trainer has been set up: what to begin with, or nothing for a new run.
  std::function<std::optional<training_state<T>>()> load = {};
  /// After every so many epochs, after the last one, and where the run is stopped.
  std::function<void(training_state<T>)> save = {};
  int every = 1;
  /// After each epoch: whether to end the run there. It ends if any rank says so.
  std::function<bool()> stop = {};
  /// Before the first epoch over far memory, on every rank: its trainer::forecast.
  std::function<void(const far_forecast&)> forecast = {};
  /// The number in the data of each row of the embedding, where the dataset was reordered (see
  /// io::reordered), on the first rank; empty: the row's own.
  std::span<const global_index> old_number = {};
};

namespace detail {

/// The elements of this rank's block.
template <class Matrix>
auto block_in_host_memory(const Matrix& m) {
  std::vector<std::remove_const_t<typename decltype(m.values())::element_type>> values(m.values().size());
  copy(m.mesh().queue(), m.values(), std::span(values));
  return values;
}

/// X, row-major (rows x cols), on the first rank; nothing on others. Collective over the mesh. What travels:
/// each rank's block, to the first.
template <class T, layout L, class Device>
std::vector<T> collect_on_first(const dense<T, L, Device>& x) {
  const mesh<Device>& m = x.mesh();
  const auto block = [&](int r) {
    return partition::block_of(x.row_blocking(), x.col_blocking(), x.layout(), m.shape().at(r));
  };
  std::vector<global_index> send(static_cast<std::size_t>(m.size()), 0), received(send);
  const std::vector<T> mine = block_in_host_memory(x);
  send[0] = std::ssize(mine);
  for (int r = 0; m.rank() == 0 && r < m.size(); ++r) received[static_cast<std::size_t>(r)] = block(r).size();
  const std::vector<T> blocks = m.world().all_to_all(mine, send, received);
  if (m.rank() != 0) return {};
  const global_index columns = x.shape().cols;
  std::vector<T> whole(static_cast<std::size_t>(x.shape().rows * columns));
  auto next = blocks.begin();
  for (int r = 0; r < m.size(); ++r)
    for (global_index i = block(r).rows.begin; i < block(r).rows.end; ++i, next += block(r).cols.size())
      std::copy_n(next, block(r).cols.size(), whole.begin() + i * columns + block(r).cols.begin);
  return whole;
}

/// X = `whole` of the first rank, row-major (rows x cols). Collective over the mesh. What travels: each
/// rank's block, from the first.
template <class T, layout L, class Device>
void assign_from_first(const std::vector<T>& whole, dense<T, L, Device>& x) {
  const mesh<Device>& m = x.mesh();
  std::vector<global_index> send(static_cast<std::size_t>(m.size()), 0), received(send);
  std::vector<T> blocks;
  for (int r = 0; m.rank() == 0 && r < m.size(); ++r) {
    const partition::rectangle block =
        partition::block_of(x.row_blocking(), x.col_blocking(), x.layout(), m.shape().at(r));
    send[static_cast<std::size_t>(r)] = block.size();
    for (global_index i = block.rows.begin; i < block.rows.end; ++i) {
      const auto row = whole.begin() + i * x.shape().cols;
      blocks.insert(blocks.end(), row + block.cols.begin, row + block.cols.end);
    }
  }
  received[0] = static_cast<global_index>(x.values().size());
  const std::vector<T> mine = m.world().all_to_all(blocks, send, received);
  copy(m.queue(), std::span<const T>(mine), x.values());
}

/// The elements [begin, begin + m.values().size()) of `all`.
template <class T, class Matrix>
void assign_part(const std::vector<T>& all, global_index begin, Matrix& m) {
  copy(m.mesh().queue(), std::span<const T>(all).subspan(static_cast<std::size_t>(begin), m.values().size()),
       m.values());
}

/// Row i of the result is row from[i] of (rows x w), or, `back`, row from[i] is row i.
template <class T>
void permute_rows(std::vector<T>& values, std::span<const global_index> from, bool back) {
  if (from.empty() || values.empty()) return;
  const global_index width = std::ssize(values) / std::ssize(from);
  std::vector<T> permuted(values.size());
  for (std::size_t i = 0; i < from.size(); ++i) {
    const global_index here = static_cast<global_index>(i) * width, there = from[i] * width;
    std::copy_n(values.begin() + (back ? here : there), width, permuted.begin() + (back ? there : here));
  }
  values = std::move(permuted);
}

}  // namespace detail

/// The names and shapes of a set. Local; no communication.
template <class T, class Device>
std::vector<named_shape> shapes_of(parameters<T, Device>& set) {
  std::vector<named_shape> found;
  for (auto& p : set.list()) found.push_back({p.name(), p.shape()});
  return found;
}

/// The parameters of a set and what Adam has of them. Local; no communication.
template <class T, class Device>
training_state<T> state_of(parameters<T, Device>& set, adam<T, Device>& optimizer) {
  training_state<T> now;
  now.parameters = shapes_of(set);
  const auto& moments = optimizer.state_of(set);
  now.steps = moments.steps;
  now.of_parameters = {detail::block_in_host_memory(set.values()),
                       detail::block_in_host_memory(moments.first_moment),
                       detail::block_in_host_memory(moments.second_moment)};
  return now;
}

/// Adds an embedding X (n x w), with its moments, to the state on the first rank, rows in their order.
/// Collective over the mesh. What travels: each rank's block, three times, to the first.
template <class T, layout L, class Device>
void add_embedding(const dense<T, L, Device>& x, sparse_adam<T, Device>& optimizer, training_state<T>& to) {
  const auto& moments = optimizer.state_of(x);
  to.embedding_shape = x.shape();
  to.of_embedding = {detail::collect_on_first(x), detail::collect_on_first(moments.first_moment),
                     detail::collect_on_first(moments.second_moment)};
}

/// Throws error, which names a parameter, unless the state has these and an embedding of this shape. Local.
template <class T>
void require_parameters(const training_state<T>& state, const std::vector<named_shape>& wanted,
                        matrix_shape embedding = {}) {
  global_index elements = 0;
  for (std::size_t k = 0; k < std::max(wanted.size(), state.parameters.size()); ++k) {
    if (k == wanted.size())
      base::throw_error<error>({"the state has a parameter ", state.parameters[k].name, ", the model none"});
    if (k == state.parameters.size())
      base::throw_error<error>({"the model has a parameter ", wanted[k].name, ", the state none"});
    const auto& [name, shape] = state.parameters[k];
    if (name != wanted[k].name || shape != wanted[k].shape)
      base::throw_error<error>({"the model has a parameter ", wanted[k].name, " (", wanted[k].shape,
                                ") where the state has ", name, " (", shape, ")"});
    elements += shape.rows * shape.cols;
  }
  if (state.embedding_shape != embedding)
    base::throw_error<error>(
        {"the model has an embedding of ", embedding, ", the state one of ", state.embedding_shape});
  const auto has = [](const values_with_moments<T>& all, global_index size) {
    return std::ssize(all.values) == size && std::ssize(all.first) == size && std::ssize(all.second) == size;
  };
  if (!has(state.of_parameters, elements) || !has(state.of_embedding, embedding.rows * embedding.cols))
    throw error("the state has not as many values and moments as its shapes say");
}

/// The steps and what is of parameters become those of the first rank. Collective. What travels: three values
/// for each element of the parameters, and two more.
template <class T>
void broadcast_parameters(const communicator& world, training_state<T>& state) {
  state.steps = world.broadcast(state.steps, 0);
  const auto elements = static_cast<std::size_t>(
      world.broadcast(static_cast<global_index>(state.of_parameters.values.size()), 0));
  for (std::vector<T>* const list :
       {&state.of_parameters.values, &state.of_parameters.first, &state.of_parameters.second}) {
    list->resize(elements);
    world.broadcast(*list, 0);
  }
}

/// The set and what Adam has of it = the state's, from element `begin` on. Local; no communication.
template <class T, class Device>
void assign_parameters(const training_state<T>& state, global_index begin, parameters<T, Device>& set,
                       adam<T, Device>& optimizer) {
  auto& moments = optimizer.state_of(set);
  detail::assign_part(state.of_parameters.values, begin, set.values());
  detail::assign_part(state.of_parameters.first, begin, moments.first_moment);
  detail::assign_part(state.of_parameters.second, begin, moments.second_moment);
  moments.steps = state.steps;
}

/// X and what Adam has of it = those of the state on the first rank, with the steps that every rank has.
/// Collective over the mesh. What travels: each rank's block, three times, from the first.
template <class T, layout L, class Device>
void assign_embedding(const training_state<T>& state, dense<T, L, Device>& x,
                      sparse_adam<T, Device>& optimizer) {
  auto& moments = optimizer.state_of(x);
  detail::assign_from_first(state.of_embedding.values, x);
  detail::assign_from_first(state.of_embedding.first, moments.first_moment);
  detail::assign_from_first(state.of_embedding.second, moments.second_moment);
  moments.steps = state.steps;
}

}  // namespace partita::nn
