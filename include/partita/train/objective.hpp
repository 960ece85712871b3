// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The training objective: loss and score for a dataset's labels.

#include <array>
#include <optional>

#include "partita/algebra/loss.hpp"
#include "partita/io/labelled_graph.hpp"

namespace partita::nn {

namespace detail {

/// 1 for a true positive: z > 0 and the target is 1.
struct rightly_given {
  template <class T>
  constexpr T operator()(T z, T target) const {
    return target == T(1) && z > T(0) ? T(1) : T(0);
  }
};

/// 1 for a false positive or a false negative.
struct mistaken {
  template <class T>
  constexpr T operator()(T z, T target) const {
    return target >= T(0) && (z > T(0)) != (target == T(1)) ? T(1) : T(0);
  }
};

}  // namespace detail

/// Single-label: softmax cross-entropy and accuracy. Multi-label: logistic loss and the micro-F1 of the
/// logits' signs. Collective over the mesh: all members.
template <class T, class Device>
class objective {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// Throws input_error when no vertex is in the training set.
  objective(const mesh<Device>& m, const io::dataset& data, const blocking& rows)
      : multi_label_(data.multi_label),
        scratch_(m, rows, blocking::even(data.classes, m.shape(), nesting::cols)) {
    for (io::split_part part : {io::split_part::train, io::split_part::validation, io::split_part::test}) {
      const auto in_part = [&](global_index v) {
        return data.split[static_cast<std::size_t>(v)] == static_cast<std::uint8_t>(part);
      };
      labels_[index(part)].emplace(m, scratch_.row_blocking(), [&](global_index v) {
        return !in_part(v) ? -1 : multi_label_ ? 0 : data.labels[static_cast<std::size_t>(v)];
      });
      if (!multi_label_) continue;
      targets_[index(part)].emplace(generate<vertex_rows, T>(
          m, scratch_.row_blocking(), scratch_.col_blocking(), [&](global_index v, global_index c) {
            const auto at = static_cast<std::size_t>(v * data.classes + c);
            return in_part(v) ? data.label_matrix[at] : -1;
          }));
    }
    if (labels_[index(io::split_part::train)]->counted() == 0)
      throw_error<input_error>({data.name, ": the training set is empty"});
  }

  /// The loss over the training set, and its gradient. What travels: an all-reduce of one element.
  double loss(const matrix& logits, matrix& gradient) const {
    const auto& labels = *labels_[index(io::split_part::train)];
    if (!multi_label_) return cross_entropy(logits, labels, gradient);
    return logistic_loss(logits, *targets_[index(io::split_part::train)], labels.counted(), gradient);
  }
  /// Accuracy or micro-F1 over one part of the split. What travels: one or two all-reduces of one element.
  double score(const matrix& logits, io::split_part part) {
    if (!multi_label_) return accuracy(logits, *labels_[index(part)]);
    const auto count = [&](auto of) {
      zip(logits, *targets_[index(part)], scratch_, of);
      return static_cast<double>(sum(scratch_));
    };
    const double right = count(detail::rightly_given{});
    const double wrong = count(detail::mistaken{});
    return right == 0 ? 0 : 2 * right / (2 * right + wrong);
  }

 private:
  static constexpr std::size_t index(io::split_part part) { return static_cast<std::size_t>(part) - 1; }

  bool multi_label_;
  matrix scratch_;
  std::array<std::optional<vertex_labels<Device>>, 3> labels_;
  std::array<std::optional<matrix>, 3> targets_;
};

}  // namespace partita::nn
