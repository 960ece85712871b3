// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The training objective: loss and score for a dataset's labels.

#include <array>
#include <limits>
#include <optional>
#include <span>

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

/// What a score is computed from: correct and wrong predictions of vertices, or, for several labels, of
/// labels: true positives, and false positives and negatives. Sums over parts of a set of vertices.
struct score_counts {
  double right = 0, wrong = 0;
  double vertices = 0;

  /// Accuracy, or micro-F1; not a number for no vertices.
  double score(bool multi_label) const {
    if (vertices == 0) return std::numeric_limits<double>::quiet_NaN();
    const double all = multi_label ? 2 * right + wrong : right + wrong;
    return right == 0 ? 0 : (multi_label ? 2 * right : right) / all;
  }
};

/// Single-label: softmax cross-entropy and accuracy. Multi-label: logistic loss and the micro-F1 of the
/// logits' signs. Collective over the mesh: all members.
template <class T, class Device>
class objective {
 public:
  using matrix = dense<T, vertex_rows, Device>;

  /// For all vertices. Throws input_error when none is in the training set.
  objective(const mesh<Device>& m, const io::dataset& data, const blocking& rows)
      : objective(m, data, rows, [](global_index v) { return v; }) {
    if (counted(io::split_part::train) == 0)
      base::throw_error<input_error>({data.name, ": the training set is empty"});
  }
  /// For rows that are these vertices, on a mesh of one rank.
  objective(const mesh<Device>& m, const io::dataset& data, const blocking& rows,
            std::span<const global_index> vertices)
      : objective(m, data, rows, [=](global_index i) { return vertices[static_cast<std::size_t>(i)]; }) {}

  /// The loss over the training set, and its gradient; 0 if no vertex is in it. What travels: an all-reduce
  /// of one element.
  double loss(const matrix& logits, matrix& gradient) const {
    const auto& labels = *labels_[index(io::split_part::train)];
    if (labels.counted() == 0) return fill(gradient, T(0)), 0;
    if (!multi_label_) return algebra::cross_entropy(logits, labels, gradient);
    return algebra::logistic_loss(logits, *targets_[index(io::split_part::train)], labels.counted(),
                                  gradient);
  }
  /// Vertices in one part of the split.
  global_index counted(io::split_part part) const { return labels_[index(part)]->counted(); }
  /// Predictions of one part of the split. What travels: one or two all-reduces of one element.
  score_counts counts(const matrix& logits, io::split_part part) {
    if (!multi_label_) {
      const auto& labels = *labels_[index(part)];
      const auto all = static_cast<double>(labels.counted()), right = algebra::accuracy(logits, labels) * all;
      return {right, all - right, all};
    }
    const auto count = [&](auto of) {
      zip(logits, *targets_[index(part)], scratch_, of);
      return static_cast<double>(sum(scratch_));
    };
    return {count(detail::rightly_given{}), count(detail::mistaken{}), static_cast<double>(counted(part))};
  }
  /// Accuracy or micro-F1 over one part of the split; not a number where that has no vertex. What travels:
  /// see counts.
  double score(const matrix& logits, io::split_part part) {
    if (multi_label_) return counts(logits, part).score(true);
    const double found = algebra::accuracy(logits, *labels_[index(part)]);
    return counted(part) == 0 ? std::numeric_limits<double>::quiet_NaN() : found;
  }

 private:
  template <class VertexOfRow>
  requires std::is_invocable_v<VertexOfRow, global_index> objective(const mesh<Device>& m,
                                                                    const io::dataset& data,
                                                                    const blocking& rows,
                                                                    VertexOfRow vertex_of)
      : multi_label_(data.multi_label),
        scratch_(m, rows, blocking::even(data.classes, m.shape(), nesting::cols)) {
    for (io::split_part part : {io::split_part::train, io::split_part::validation, io::split_part::test}) {
      const auto in_part = [&](global_index v) {
        return data.split[static_cast<std::size_t>(v)] == static_cast<std::uint8_t>(part);
      };
      labels_[index(part)].emplace(m, scratch_.row_blocking(), [&](global_index i) {
        const global_index v = vertex_of(i);
        return !in_part(v) ? -1 : multi_label_ ? 0 : data.labels[static_cast<std::size_t>(v)];
      });
      if (!multi_label_) continue;
      targets_[index(part)].emplace(generate<vertex_rows, T>(
          m, scratch_.row_blocking(), scratch_.col_blocking(), [&](global_index i, global_index c) {
            const global_index v = vertex_of(i);
            return in_part(v) ? data.label_matrix[static_cast<std::size_t>(v * data.classes + c)] : -1;
          }));
    }
  }
  static constexpr std::size_t index(io::split_part part) { return static_cast<std::size_t>(part) - 1; }

  bool multi_label_;
  matrix scratch_;
  std::array<std::optional<algebra::vertex_labels<Device>>, 3> labels_;
  std::array<std::optional<matrix>, 3> targets_;
};

}  // namespace partita::nn
