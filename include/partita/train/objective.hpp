// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The training objective: loss and scores for a dataset's classes, labels or values.

#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "partita/algebra/class_scores.hpp"
#include "partita/algebra/loss.hpp"
#include "partita/algebra/soft_targets.hpp"
#include "partita/algebra/value_loss.hpp"
#include "partita/io/dataset_type.hpp"
#include "partita/train/options.hpp"
#include "partita/train/task_scores.hpp"
#include "partita/train/vertex_weights.hpp"

namespace partita::nn {

/// Classes: softmax cross-entropy, of smoothed and weighted labels if asked for, and accuracy. Labels:
/// logistic loss, and the micro-F1 of the logits' signs. Values: the mean error, and R^2. A loss is the mean
/// over the training set of what vertex_weights says that each vertex weighs. Collective over the mesh: all
/// members.
template <class T, class Device>
class objective {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// For all vertices. Throws input_error when none is in the training set, and what require_loss throws.
  objective(const mesh<Device>& m, const io::dataset& data, const training_options& options,
            const blocking& rows)
      : objective(m, data, options, rows, true, [](global_index v) { return v; }) {
    if (task_ == io::task::links) return;  // the loss is one of pairs
    if (counted(io::split_part::train) == 0)
      base::throw_error<input_error>({data.name, ": the training set is empty"});
    if (weight_ == 0)
      base::throw_error<input_error>({data.name, ": no vertex of the training set counts in the loss: ",
                                      data.task == io::task::values ? "none has a value that is a number"
                                                                    : "their classes have weight 0"});
  }
  /// For rows that are these vertices, of a part of a batch, on a mesh of one rank: a loss divides by
  /// vertex_weights::terms of them.
  objective(const mesh<Device>& m, const io::dataset& data, const training_options& options,
            const blocking& rows, std::span<const global_index> vertices)
      : objective(m, data, options, rows, false,
                  [=](global_index i) { return vertices[static_cast<std::size_t>(i)]; }) {}

  /// From now on the loss is this one. `vertices`: those of all rows; none where these are the vertices'
  /// numbers. Local.
  void set_loss(loss_function<T, Device> own, std::span<const global_index> vertices = {}) {
    own_ = std::move(own);
    vertices_.clear();
    const interval mine = scratch_.row_range();
    for (global_index i = mine.begin; own_ && i < mine.end; ++i)
      vertices_.push_back(vertices.empty() ? i : vertices[static_cast<std::size_t>(i)]);
  }
  /// The loss over the training set, and its gradient; 0 if no vertex of it weighs anything. What travels: an
  /// all-reduce of one element, or what the loss of one's own sends.
  double loss(const matrix& logits, matrix& gradient) const {
    const auto& labels = *labels_[index(io::split_part::train)];
    if (own_) return own_(logits, vertices_, gradient);
    if (weight_ == 0) return fill(gradient, T(0)), 0;
    if (soft_targets_) return algebra::soft_cross_entropy(logits, *soft_targets_, gradient, memory_);
    if (task_ == io::task::classes) return algebra::cross_entropy(logits, labels, gradient);
    const matrix& targets = *targets_[index(io::split_part::train)];
    if (task_ == io::task::labels) return algebra::logistic_loss(logits, targets, labels.counted(), gradient);
    const auto mean = [&](const auto& error) {
      return algebra::value_loss(logits, targets, gradient, error, weight_);
    };
    return error_ == value_error::absolute ? mean(algebra::absolute_error{})
           : error_ == value_error::huber  ? mean(algebra::huber_error(huber_delta_))
                                           : mean(algebra::squared_error{});
  }
  /// The same in two halves where it is late: the gradient, for which no host waits, and the loss, when the
  /// queue has been synchronised. What travels: nothing in the first half, in the second as for loss.
  void start_loss(const matrix& logits, matrix& gradient) {
    if constexpr (memory::enqueues<Device>)
      algebra::start_cross_entropy(logits, *labels_[index(io::split_part::train)], gradient, sum_);
  }
  double finish_loss() const {
    return algebra::finish_cross_entropy(scratch_.mesh(), *labels_[index(io::split_part::train)], sum_);
  }
  /// Whether it is: cross-entropy of labels as they are, see algebra::has_late_cross_entropy. Local.
  bool is_late() const {
    return task_ == io::task::classes && !own_ && weight_ != 0 && !soft_targets_ &&
           algebra::has_late_cross_entropy<T>(scratch_.mesh());
  }
  /// Vertices in one part of the split, and what a loss divides by.
  global_index counted(io::split_part part) const { return labels_[index(part)]->counted(); }
  double weight() const { return weight_; }
  /// How many numbers each all-reduce of the constructor had.
  const std::vector<global_index>& set_up_sums() const { return set_up_sums_; }
  /// Sums from which the score of one part of the split follows, also as sums over parts of its vertices.
  /// What travels: one or two all-reduces of one element; for values, one of an element for each column.
  score_counts counts(const matrix& logits, io::split_part part) {
    score_counts found{{}, static_cast<double>(counted(part))};
    if (task_ == io::task::classes) {
      const double right = algebra::accuracy(logits, *labels_[index(part)]) * found.vertices;
      found.sums = {right, found.vertices - right};
      return found;
    }
    const matrix& targets = *targets_[index(part)];
    if (task_ == io::task::values) return found.sums = algebra::squared_errors(logits, targets), found;
    for (const bool of_mistakes : {false, true}) {
      zip(logits, targets, scratch_, detail::label_count{of_mistakes});
      found.sums.push_back(static_cast<double>(sum(scratch_)));
    }
    return found;
  }
  /// Accuracy, micro-F1 or R^2 over one part of the split; not a number where that has no vertex. What
  /// travels: see counts and algebra::score_values.
  double score(const matrix& logits, io::split_part part) {
    if (task_ == io::task::labels) return counts(logits, part).share_of_right(true);
    const double found = task_ == io::task::classes
                             ? algebra::accuracy(logits, *labels_[index(part)])
                             : algebra::score_values(logits, *targets_[index(part)]).r_squared;
    return counted(part) == 0 ? detail::no_score : found;
  }
  /// The scores of training, validation and test set. What travels: of classes an all-reduce of three
  /// elements, of others see score.
  std::array<double, 3> split_scores(const matrix& logits) {
    using enum io::split_part;
    if (task_ != io::task::classes)
      return {score(logits, train), score(logits, validation), score(logits, test)};
    std::array<double, 3> found = algebra::accuracies(logits, *labels_[0], *labels_[1], *labels_[2]);
    for (const io::split_part part : {train, validation, test})
      if (counted(part) == 0) found[index(part)] = detail::no_score;
    return found;
  }
  /// All scores of the task over the three parts of the split. What travels: see counts, algebra::confusion,
  /// area_under_roc and score_values.
  task_scores scores(const matrix& logits) {
    task_scores found{task_, {}};
    for (io::split_part part : {io::split_part::train, io::split_part::validation, io::split_part::test}) {
      part_scores& of = found.parts[index(part)];
      of.score = score(logits, part);
      if (counted(part) == 0) continue;
      if (task_ == io::task::classes) {
        const algebra::confusion_matrix counts = algebra::confusion(logits, *labels_[index(part)]);
        of.macro_f1 = counts.macro_f1();
        of.confusion.assign(counts.counts.begin(), counts.counts.end());
      } else if (task_ == io::task::labels) {
        of.roc_auc = algebra::area_under_roc(logits, *targets_[index(part)]);
      } else {
        const algebra::value_scores values = algebra::score_values(logits, *targets_[index(part)]);
        of.root_mean_square = values.root_mean_square, of.mean_absolute = values.mean_absolute;
      }
    }
    return found;
  }

 private:
  template <class VertexOfRow>
  requires std::is_invocable_v<VertexOfRow, global_index> objective(const mesh<Device>& m,
                                                                    const io::dataset& data,
                                                                    const training_options& options,
                                                                    const blocking& rows, bool whole,
                                                                    VertexOfRow vertex_of)
      : task_(data.task),
        error_(options.error),
        huber_delta_(options.huber_delta),
        scratch_(m, rows,
                 blocking::even(task_ == io::task::links ? 0 : data.classes, m.shape(), nesting::cols)) {
    require_loss(data, options);
    if (task_ == io::task::links) return;
    for (io::split_part part : {io::split_part::train, io::split_part::validation, io::split_part::test})
      make_targets(m, data, part, vertex_of);
    make_weight(m, data, options, whole, vertex_of);
  }

  template <class VertexOfRow>
  void make_targets(const mesh<Device>& m, const io::dataset& data, io::split_part part,
                    VertexOfRow vertex_of) {
    const auto in_part = [&](global_index v) {
      return data.split[static_cast<std::size_t>(v)] == static_cast<std::uint8_t>(part);
    };
    labels_[index(part)].emplace(m, scratch_.row_blocking(), [&](global_index i) {
      const global_index v = vertex_of(i);
      return !in_part(v) ? -1 : task_ == io::task::classes ? data.labels[static_cast<std::size_t>(v)] : 0;
    });
    if (task_ == io::task::classes) return;
    const bool are_values = task_ == io::task::values;
    const T none = are_values ? std::numeric_limits<T>::quiet_NaN() : T(-1);
    targets_[index(part)].emplace(generate<vertex_rows, T>(
        m, scratch_.row_blocking(), scratch_.col_blocking(), [&](global_index i, global_index c) {
          const global_index v = vertex_of(i);
          const auto k = static_cast<std::size_t>(v * data.classes + c);
          return !in_part(v) ? none : are_values ? static_cast<T>(data.values[k]) : T(data.label_matrix[k]);
        }));
  }

  /// Of a part of a batch, classes count the same: what they weigh is in vertex_weights of the batch.
  template <class VertexOfRow>
  void make_weight(const mesh<Device>& m, const io::dataset& data, const training_options& options,
                   bool whole, VertexOfRow vertex_of) {
    weight_ = static_cast<double>(counted(io::split_part::train));
    set_up_sums_.assign(3, 1);
    const auto trained = [&](global_index v) {
      return data.split[static_cast<std::size_t>(v)] == static_cast<std::uint8_t>(io::split_part::train);
    };
    const vertex_weights weights(data, options);
    if (task_ == io::task::values) {
      const interval mine = scratch_.row_range();
      global_index numbers[] = {0};
      for (global_index i = mine.begin; i < mine.end; ++i)
        if (const global_index v = vertex_of(i); trained(v))
          numbers[0] += static_cast<global_index>(weights(v));
      m.whole().all_reduce(numbers);
      set_up_sums_.push_back(1);
      weight_ = static_cast<double>(numbers[0]);
    }
    if (task_ != io::task::classes || (weights.of_classes().empty() && options.label_smoothing == 0)) return;
    const auto label = [&](global_index i) {
      const global_index v = vertex_of(i);
      return trained(v) ? data.labels[static_cast<std::size_t>(v)] : -1;
    };
    const algebra::target_options how{options.label_smoothing, weights.of_classes()};
    if (whole) weight_ = algebra::weight_of_classes(m, scratch_.row_blocking(), data.classes, label, how);
    if (weight_ == 0) return;
    soft_targets_.emplace(algebra::soft_targets<T>(m, scratch_.row_blocking(), data.classes, label, how,
                                                   weight_));  // (n, classes)
  }

  static constexpr std::size_t index(io::split_part part) { return static_cast<std::size_t>(part) - 1; }

  io::task task_;
  value_error error_;
  double huber_delta_, weight_ = 0;
  std::vector<global_index> set_up_sums_;
  loss_function<T, Device> own_;
  std::vector<global_index> vertices_;  ///< of this rank's rows, for a loss of one's own
  matrix scratch_;
  std::array<std::optional<algebra::vertex_labels<Device>>, 3> labels_;
  std::array<std::optional<matrix>, 3> targets_;
  std::optional<matrix> soft_targets_;  ///< of the training set, where labels are weighted or smoothed
  mutable buffer<T, Device> memory_;    ///< of their loss
  memory::late<double, Device> sum_;    ///< of late losses
};

}  // namespace partita::nn
