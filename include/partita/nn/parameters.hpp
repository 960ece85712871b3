// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The parameters of a model: replicated matrices in one buffer and their gradients in another, so that those
/// of several layers are summed in one all-reduce.

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

  /// gradient = the sum over the ranks, for all matrices. Collective over the mesh. What travels: one
  /// all-reduce of all parameter elements, or one for each 2^16 bytes of them at least, in whole matrices
  /// from the last on; see algebra::sum_parts.
  void sum_gradients() {
    start_sums(0);
    for (request& r : under_way_) r.wait();
    under_way_.clear();
  }
  /// Begins the part of it that takes no matrix before number `first`: the others are this rank's
  /// contribution already, and are left alone until sum_gradients. Collective over the mesh.
  void start_sums(std::size_t first) {
    const std::vector<part> all = parts();
    while (under_way_.size() < all.size() && all[under_way_.size()].first >= first) {
      const part& p = all[under_way_.size()];
      under_way_.push_back(algebra::start_sum_of_parts(mesh_, gradients_.span().subspan(p.begin, p.size)));
    }
  }
  /// What this rank receives in sum_gradients, and for the gradients as they are computed.
  traffic predicted() const {
    traffic v;
    for (const part& p : parts())
      v += algebra::predicted_sum_of_parts<T>(mesh_, static_cast<global_index>(p.size));
    for (const parameter<T, Device>& p : list_)
      if (p.summed_) v += algebra::predicted_part<T>(mesh_, *p.summed_);
    return v;
  }

 private:
  /// Elements of the buffers that are summed at once, those of the matrices from number `first` on.
  struct part {
    std::size_t first, begin, size;
  };
  std::vector<part> parts() const {
    constexpr std::size_t least = (std::size_t{1} << 16) / sizeof(T);
    std::vector<part> found;
    std::size_t end = values_.size();
    for (std::size_t k = list_.size(); k-- > 0;) {
      const std::size_t begin = list_[k].offset_;
      if (k > 0 && end - begin < least) continue;
      found.push_back({k, begin, end - begin});
      end = begin;
    }
    return found;
  }
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
  std::vector<request> under_way_;  ///< sums of parts(), from the first on
};

}  // namespace partita::nn
