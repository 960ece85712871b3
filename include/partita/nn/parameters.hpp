// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parameters of a model: replicated matrices in one buffer and their gradients in another, so that a
/// single all-reduce sums all gradients.

#include <deque>
#include <optional>
#include <span>
#include <string>

#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/reproducible_verbs.hpp"

namespace partita::nn {

/// One replicated matrix of a set and its gradient, which is this rank's contribution until
/// parameters::sum_gradients.
template <class T, class Device>
class parameter {
 public:
  using matrix = dense<T, replicated, Device>;

  parameter(std::string name, matrix_shape shape, double decay, std::size_t offset)
      : name_(std::move(name)),
        shape_(shape),
        decay_(decay),
        offset_(offset),
        summed_(shape.rows * shape.cols) {}

  const std::string& name() const { return name_; }
  matrix_shape shape() const { return shape_; }
  /// Weight decay.
  double decay() const { return decay_; }

  matrix& value() { return *value_; }
  matrix& gradient() { return *gradient_; }

  /// For layers that compute the gradient as part of a larger one: how many elements are summed for it at
  /// once, where each gradient is (algebra::predicted_part); none if it comes with that of another parameter.
  void is_summed_as(std::optional<global_index> elements) { summed_ = elements; }

 private:
  template <class, class>
  friend class parameters;

  std::string name_;
  matrix_shape shape_;
  double decay_;
  std::size_t offset_;
  std::optional<global_index> summed_;
  std::optional<matrix> value_, gradient_;  ///< views into the set's buffers
};

/// The parameters of a model, with the same values on every rank. Not copyable, since layers hold references
/// to members.
template <class T, class Device>
class parameters {
 public:
  using matrix = dense<T, replicated, Device>;

  explicit parameters(partita::mesh<Device> m) : mesh_(std::move(m)) { view_all(); }
  parameters(const parameters&) = delete;
  parameters& operator=(const parameters&) = delete;

  /// Adds a zero-initialised matrix; existing values are preserved.
  parameter<T, Device>& add(std::string name, matrix_shape shape, double decay = 0) {
    list_.emplace_back(std::move(name), shape, decay, values_.size());
    const auto size = static_cast<std::size_t>(shape.rows * shape.cols);
    grow(values_, size);
    grow(gradients_, size);
    view_all();
    return list_.back();
  }

  const partita::mesh<Device>& mesh() const { return mesh_; }
  std::deque<parameter<T, Device>>& list() { return list_; }
  /// All values, and all gradients, as one row (1 x number of elements), in list order.
  matrix& values() { return *all_values_; }
  const matrix& values() const { return *all_values_; }
  matrix& gradients() { return *all_gradients_; }

  /// gradient = the sum over the ranks, for all matrices at once. Collective over the mesh. What travels: one
  /// all-reduce of all parameter elements, see algebra::sum_parts.
  void sum_gradients() { algebra::sum_parts(mesh_, gradients_.span()); }
  /// What this rank receives in sum_gradients, and for the gradients as they are computed.
  traffic predicted() const {
    traffic v = algebra::predicted_sum_of_parts<T>(mesh_, static_cast<global_index>(values_.size()));
    for (const parameter<T, Device>& p : list_)
      if (p.summed_) v += algebra::predicted_part<T>(mesh_, *p.summed_);
    return v;
  }

 private:
  void grow(buffer<T, Device>& b, std::size_t by) {
    buffer<T, Device> larger(mesh_.queue(), b.size() + by);
    copy(mesh_.queue(), std::span<const T>(b.span()), larger.span().first(b.size()));
    matrix added = view({1, static_cast<global_index>(by)}, larger.span().subspan(b.size()));
    fill(added, 0);
    b = std::move(larger);
  }
  matrix view(matrix_shape shape, std::span<T> values) const {
    return matrix::view(mesh_, replicated, blocking::even(shape.rows, mesh_.shape(), nesting::rows),
                        blocking::even(shape.cols, mesh_.shape(), nesting::cols), values);
  }
  void view_all() {
    const matrix_shape row{1, static_cast<global_index>(values_.size())};
    all_values_.emplace(view(row, values_.span()));
    all_gradients_.emplace(view(row, gradients_.span()));
    for (parameter<T, Device>& p : list_) {
      const auto size = static_cast<std::size_t>(p.shape().rows * p.shape().cols);
      p.value_.emplace(view(p.shape(), values_.span().subspan(p.offset_, size)));
      p.gradient_.emplace(view(p.shape(), gradients_.span().subspan(p.offset_, size)));
    }
  }

  partita::mesh<Device> mesh_;
  std::deque<parameter<T, Device>> list_;
  buffer<T, Device> values_, gradients_;
  std::optional<matrix> all_values_, all_gradients_;
};

}  // namespace partita::nn
