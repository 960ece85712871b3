// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a model or a run consists of, by name and in host memory, whole: for files of models and checkpoints.

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/nn/parameters.hpp"
#include "partita/partition/block_layout.hpp"

namespace partita::nn {

/// A parameter, or what an optimiser has of one, in host memory, row-major.
template <class T>
struct parameter_values {
  std::string name;
  matrix_shape shape;
  std::vector<T> values = {};
};

/// Matrices by name, in an order that is the same wherever a model is trained.
template <class T>
using state_dict = std::vector<parameter_values<T>>;

/// The name of a learned input (n x w) among the parameters of its model.
inline constexpr std::string_view embedding_name = "embedding";

namespace detail {

/// The elements of this rank's block.
template <class Matrix>
auto block_in_host_memory(const Matrix& m) {
  std::vector<std::remove_const_t<typename decltype(m.values())::element_type>> values(m.values().size());
  copy(m.mesh().queue(), m.values(), std::span(values));
  return values;
}

/// The blocks that the ranks have of a matrix that is placed like X.
template <class T, layout L, class Device>
partition::rectangle block_like(const dense<T, L, Device>& x, int rank) {
  return partition::block_of(x.row_blocking(), x.col_blocking(), x.layout(), x.mesh().shape().at(rank));
}

/// A matrix that is placed like X, row-major, on the first rank, from each rank's block; nothing on others.
/// Collective over the mesh. What travels: each rank's block, to the first.
template <class T, layout L, class Device>
std::vector<T> from_blocks(const dense<T, L, Device>& x, const std::vector<T>& mine) {
  const mesh<Device>& m = x.mesh();
  std::vector<global_index> send(static_cast<std::size_t>(m.size()), 0), received(send);
  send[0] = std::ssize(mine);
  for (int r = 0; m.rank() == 0 && r < m.size(); ++r)
    received[static_cast<std::size_t>(r)] = block_like(x, r).size();
  const std::vector<T> blocks = m.world().all_to_all(mine, send, received);
  if (m.rank() != 0) return {};
  const global_index columns = x.shape().cols;
  std::vector<T> whole(static_cast<std::size_t>(x.shape().rows * columns));
  auto next = blocks.begin();
  for (int r = 0; r < m.size(); ++r) {
    const partition::rectangle block = block_like(x, r);
    for (global_index i = block.rows.begin; i < block.rows.end; ++i, next += block.cols.size())
      std::copy_n(next, block.cols.size(), whole.begin() + i * columns + block.cols.begin);
  }
  return whole;
}

/// This rank's block of a matrix that is placed like X, from the first rank's `whole`. Collective over the
/// mesh. What travels: each rank's block, from the first.
template <class T, layout L, class Device>
std::vector<T> to_blocks(const dense<T, L, Device>& x, const std::vector<T>& whole) {
  const mesh<Device>& m = x.mesh();
  std::vector<global_index> send(static_cast<std::size_t>(m.size()), 0), received(send);
  std::vector<T> blocks;
  for (int r = 0; m.rank() == 0 && r < m.size(); ++r) {
    const partition::rectangle block = block_like(x, r);
    send[static_cast<std::size_t>(r)] = block.size();
    for (global_index i = block.rows.begin; i < block.rows.end; ++i) {
      const auto row = whole.begin() + i * x.shape().cols;
      blocks.insert(blocks.end(), row + block.cols.begin, row + block.cols.end);
    }
  }
  received[0] = static_cast<global_index>(x.values().size());
  return m.world().all_to_all(blocks, send, received);
}

/// The matrices of a state, which messages call `source`, in the order of the model's. Local. Throws
/// input_error, which names one, unless they are the same, or the state has them `among_others`.
template <class T>
state_dict<T> matched(const state_dict<T>& state, const state_dict<T>& model, std::string_view source,
                      bool among_others = false) {
  state_dict<T> found;
  for (const parameter_values<T>& wanted : model) {
    const auto at = std::ranges::find(state, wanted.name, &parameter_values<T>::name);
    if (at == state.end())
      base::throw_error<input_error>(
          {"the model has a parameter ", wanted.name, ", which ", source, " lacks"});
    if (at->shape != wanted.shape)
      base::throw_error<input_error>({"the model has a parameter ", wanted.name, " (", wanted.shape,
                                      ") where ", source, " has one of ", at->shape});
    if (std::ssize(at->values) != at->shape.rows * at->shape.cols)
      base::throw_error<input_error>(
          {source, " has ", at->values.size(), " values of ", at->name, " (", at->shape, ")"});
    found.push_back(*at);
  }
  for (const parameter_values<T>& given : state)
    if (!among_others && std::ranges::find(model, given.name, &parameter_values<T>::name) == model.end())
      base::throw_error<input_error>({source, " has a parameter ", given.name, ", which the model lacks"});
  return found;
}

}  // namespace detail

/// The parameters of a set by name, in its order. Local.
template <class T, class Device>
state_dict<T> values_of(parameters<T, Device>& of) {
  state_dict<T> all;
  for (parameter<T, Device>& p : of.list())
    all.push_back({p.name(), p.shape(), detail::block_in_host_memory(p.value())});
  return all;
}

/// The values of the parameters of a set, from those of the same names, in any order; others are left alone,
/// so that the set may be a part of a model's. Local: every rank gives the same. Throws input_error, which
/// names `source`, when one is missing or has another shape; then no value has changed.
template <class T, class Device>
void assign_values(parameters<T, Device>& to, const state_dict<T>& values, std::string_view source) {
  state_dict<T> wanted;
  for (const parameter<T, Device>& p : to.list()) wanted.push_back({p.name(), p.shape()});
  const state_dict<T> found = detail::matched(values, wanted, source, true);
  for (std::size_t k = 0; k < found.size(); ++k)
    copy(to.mesh().queue(), std::span<const T>(found[k].values), to.list()[k].value().values());
}

/// The whole of X, row-major (n x w), on the first rank of its mesh; empty on others. Collective over the
/// mesh. What travels: each rank's block, to the first.
template <class T, layout L, class Device>
std::vector<T> values_on_first_rank(const dense<T, L, Device>& x) {
  return detail::from_blocks(x, detail::block_in_host_memory(x));
}

/// Rows in the order of vertices: row vertices[i] of the result is row i of `rows` (n x width), as numbers of
/// io::reordered say; the same rows where there are none. `back`: row i of the result is row vertices[i].
/// Local. Throws shape_error for another number of rows than vertices.
template <class T>
std::vector<T> in_order_of_vertices(std::vector<T> rows, global_index width,
                                    std::span<const global_index> vertices, bool back = false) {
  if (vertices.empty() || rows.empty()) return rows;
  if (std::ssize(rows) != std::ssize(vertices) * width)
    base::throw_error<shape_error>(
        {rows.size(), " values are not ", vertices.size(), " rows of ", width, " columns"});
  std::vector<T> sorted(rows.size());
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    const global_index here = static_cast<global_index>(i) * width, there = vertices[i] * width;
    std::copy_n(rows.begin() + (back ? there : here), width, sorted.begin() + (back ? here : there));
  }
  return sorted;
}

/// The rows of X = those of `values` (n x w), row-major on every rank: row i is that of vertices[i], or row i
/// where no vertices are given. Local. Throws shape_error for another number of values.
template <class T, class Device>
void assign_rows(dense<T, vertex_rows, Device>& x, std::vector<T> values,
                 std::span<const global_index> vertices = {}) {
  const auto [rows, width] = x.shape();
  if (std::ssize(values) != rows * width || (!vertices.empty() && std::ssize(vertices) != rows))
    base::throw_error<shape_error>({"a matrix of ", x.shape(), " cannot be made from ", values.size(),
                                    " values of ", vertices.empty() ? rows : std::ssize(vertices),
                                    " vertices"});
  const std::vector<T> sorted = in_order_of_vertices(std::move(values), width, vertices, true);
  const auto begin = static_cast<std::size_t>(x.row_range().begin * width);
  copy(x.mesh().queue(), std::span(sorted).subspan(begin, x.values().size()), x.values());
}

/// What a model computes for every vertex, row-major in the order of the dataset, on the first rank; empty on
/// others.
template <class T>
struct model_outputs {
  std::vector<T> logits = {};     ///< (n, classes)
  std::vector<T> hidden = {};     ///< (n, hidden_width), the input of the last layer with parameters
  global_index hidden_width = 0;  ///< 0 where it is not asked for
};

namespace detail {

template <class T, class Device>
model_outputs<T> outputs_of(const dense<T, vertex_rows, Device>& logits,
                            const dense<T, vertex_rows, Device>* hidden, bool with_hidden) {
  if (with_hidden && hidden == nullptr) throw error("a model of one layer has no hidden layer");
  model_outputs<T> found{.logits = values_on_first_rank(logits)};
  if (!with_hidden) return found;
  found.hidden = values_on_first_rank(*hidden);
  found.hidden_width = hidden->shape().cols;
  return found;
}

/// A learned input, and what an optimiser has of it, by in_order_of_vertices.
template <class T>
void sort_embedding(state_dict<T>& state, std::span<const global_index> vertices, bool back) {
  const std::string name(embedding_name);
  for (parameter_values<T>& p : state)
    if (p.name == name || p.name.ends_with("." + name))
      p.values = in_order_of_vertices(std::move(p.values), p.shape.cols, vertices, back);
}

}  // namespace detail

}  // namespace partita::nn
