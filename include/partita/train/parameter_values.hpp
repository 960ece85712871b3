// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What a model has learned, by name and in host memory: for files of models and checkpoints.

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "partita/base/error.hpp"
#include "partita/nn/parameters.hpp"
#include "partita/transfer/redistribution.hpp"

namespace partita::nn {

/// A parameter in host memory, row-major.
template <class T>
struct parameter_values {
  std::string name;
  matrix_shape shape;
  std::vector<T> values;
};

/// The name of a learned input (n x w) among the parameters of its model.
inline constexpr std::string_view embedding_name = "embedding";

/// The parameters of a set by name, in its order. Local.
template <class T, class Device>
std::vector<parameter_values<T>> values_of(parameters<T, Device>& of) {
  std::vector<parameter_values<T>> all;
  for (parameter<T, Device>& p : of.list()) {
    const auto& value = p.value();
    all.push_back({p.name(), p.shape(), std::vector<T>(value.values().size())});
    copy(of.mesh().queue(), value.values(), std::span<T>(all.back().values));
  }
  return all;
}

/// The values of the parameters of a set, from those of the same names, in any order; others are left alone,
/// so that the set may be a part of a model's. Local: every rank gives the same. Throws input_error, which
/// names `source`, when one is missing or has another shape; then no value has changed.
template <class T, class Device>
void assign_values(parameters<T, Device>& to, const std::vector<parameter_values<T>>& values,
                   std::string_view source) {
  std::vector<const parameter_values<T>*> found;
  for (const parameter<T, Device>& p : to.list()) {
    const auto at = std::ranges::find(values, p.name(), &parameter_values<T>::name);
    if (at == values.end())
      base::throw_error<input_error>({source, " has no parameter ", p.name(), " of ", p.shape()});
    const auto elements = static_cast<std::size_t>(p.shape().rows * p.shape().cols);
    if (at->shape != p.shape() || at->values.size() != elements)
      base::throw_error<input_error>(
          {source, ": parameter ", p.name(), " is ", at->shape, ", the model's is ", p.shape()});
    found.push_back(&*at);
  }
  for (std::size_t k = 0; k < found.size(); ++k)
    copy(to.mesh().queue(), std::span<const T>(found[k]->values), to.list()[k].value().values());
}

/// The whole of X, row-major (n x w), on the first rank of its mesh; empty on others. Collective over the
/// mesh. What travels: X to the first rank, for which other layouts than whole rows are redistributed.
template <class T, layout L, class Device>
std::vector<T> values_on_first_rank(const dense<T, L, Device>& x) {
  const auto gathered = [](const auto& rows) {
    const mesh<Device>& m = rows.mesh();
    const auto ranks = static_cast<std::size_t>(m.size());
    std::vector<T> mine(rows.values().size());
    copy(m.queue(), rows.values(), std::span<T>(mine));
    std::vector<global_index> send(ranks, 0), receive(ranks, 0);
    send[0] = std::ssize(mine);
    for (int q = 0; m.rank() == 0 && q < m.size(); ++q)
      receive[static_cast<std::size_t>(q)] =
          rows.row_blocking().block(vertex_rows.rows, m.shape().at(q)).size() * rows.shape().cols;
    return m.world().all_to_all(mine, send, receive);
  };
  return x.layout() == layout(vertex_rows) ? gathered(x) : gathered(redistribute(x, layout(vertex_rows)));
}

/// Rows in the order of vertices: row vertices[i] of the result is row i of `rows` (n x width), as numbers of
/// io::reordered say; the same rows where there are none. Local. Throws shape_error for another number of
/// rows than vertices.
template <class T>
std::vector<T> in_order_of_vertices(std::vector<T> rows, global_index width,
                                    std::span<const global_index> vertices) {
  if (vertices.empty() || rows.empty()) return rows;
  if (std::ssize(rows) != std::ssize(vertices) * width)
    base::throw_error<shape_error>(
        {rows.size(), " values are not ", vertices.size(), " rows of ", width, " columns"});
  std::vector<T> sorted(rows.size());
  for (std::size_t i = 0; i < vertices.size(); ++i)
    std::copy_n(rows.begin() + static_cast<global_index>(i) * width, width,
                sorted.begin() + vertices[i] * width);
  return sorted;
}

/// The rows of X = those of `values` (n x w), row-major on every rank: row i is that of vertices[i], or row i
/// where no vertices are given. Local. Throws shape_error for another number of values.
template <class T, class Device>
void assign_rows(dense<T, vertex_rows, Device>& x, std::span<const T> values,
                 std::span<const global_index> vertices = {}) {
  const global_index width = x.shape().cols;
  if (std::ssize(values) != x.shape().rows * width ||
      (!vertices.empty() && std::ssize(vertices) != x.shape().rows))
    base::throw_error<shape_error>({"a matrix of ", x.shape(), " cannot be made from ", values.size(),
                                    " values of ", vertices.empty() ? x.shape().rows : std::ssize(vertices),
                                    " vertices"});
  const interval mine = x.row_range();
  std::vector<T> rows;
  rows.reserve(x.values().size());
  for (global_index i = mine.begin; i < mine.end; ++i) {
    const auto begin =
        values.begin() + width * (vertices.empty() ? i : vertices[static_cast<std::size_t>(i)]);
    rows.insert(rows.end(), begin, begin + width);
  }
  copy(x.mesh().queue(), std::span<const T>(rows), x.values());
}

}  // namespace partita::nn
