// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What vertices count in the loss, and a loss of one's own.

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "partita/algebra/soft_targets.hpp"
#include "partita/train/options.hpp"

namespace partita::nn {

/// A loss of one's own: gradient = d loss / d logits (rows x C), and the loss is returned. `vertices`: those
/// of this rank's rows. Collective over the mesh of the logits.
template <class T, class Device>
using loss_function =
    std::function<double(const dense<T, vertex_rows, Device>& logits, std::span<const global_index> vertices,
                         dense<T, vertex_rows, Device>& gradient)>;

/// Throws error for options of a loss that the task of the data does not have, or that do not fit its
/// classes. Local.
inline void require_loss(const io::dataset& data, const training_options& o) {
  const auto refuse = [&](const char* what, const char* needs) {
    base::throw_error<error>({data.name, ": ", what, " for ", needs, ", and this graph's vertices have ",
                              detail::name_of(data.task)});
  };
  if (data.task != io::task::classes && !o.class_weights.empty()) refuse("class weights are", "classes");
  if (data.task != io::task::classes && o.label_smoothing != 0) refuse("label smoothing is", "classes");
  if (data.task != io::task::values && o.error != value_error::squared)
    refuse("an error of values is", "values");
  algebra::require_target_options({o.label_smoothing, o.class_weights}, data.classes);
}

/// Weights with which all classes of the training set count the same; see algebra::balanced_weights. Local.
/// Throws input_error for other tasks than classes.
inline std::vector<double> balanced_class_weights(const io::dataset& data) {
  if (data.task != io::task::classes)
    base::throw_error<input_error>({data.name,
                                    ": class weights are for classes, and this graph's vertices have ",
                                    detail::name_of(data.task)});
  std::vector<global_index> counts(static_cast<std::size_t>(data.classes));
  for (std::size_t v = 0; v < data.split.size(); ++v)
    if (data.split[v] == static_cast<std::uint8_t>(io::split_part::train))
      ++counts[static_cast<std::size_t>(data.labels[v])];
  return algebra::balanced_weights(counts);
}

/// How much each vertex counts in the mean that is the loss: the weight of its class, or how many of its
/// values are numbers; 1 for other tasks. Local.
class vertex_weights {
 public:
  vertex_weights(const io::dataset& data, const training_options& options)
      : data_(data), of_classes_(options.class_weights) {}

  /// Empty where all are 1.
  const std::vector<double>& of_classes() const { return of_classes_; }
  double operator()(global_index vertex) const {
    const auto v = static_cast<std::size_t>(vertex), columns = static_cast<std::size_t>(data_.classes);
    if (data_.task == io::task::values)
      return static_cast<double>(std::count_if(data_.values.begin() + v * columns,
                                               data_.values.begin() + (v + 1) * columns,
                                               [](double value) { return value == value; }));
    if (of_classes_.empty() || data_.task != io::task::classes) return 1;
    return of_classes_[static_cast<std::size_t>(data_.labels[v])];
  }
  double of(std::span<const global_index> vertices) const {
    return std::transform_reduce(vertices.begin(), vertices.end(), 0.0, std::plus<>{}, *this);
  }
  /// How many terms a loss over them has: vertices, or values that are numbers.
  double terms(std::span<const global_index> vertices) const {
    return data_.task == io::task::values ? of(vertices) : static_cast<double>(vertices.size());
  }

 private:
  const io::dataset& data_;
  std::vector<double> of_classes_;
};

}  // namespace partita::nn
