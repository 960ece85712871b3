// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Scores of a model by task.

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <vector>

#include "partita/io/dataset_type.hpp"

namespace partita::nn {

namespace detail {

inline constexpr double no_score = std::numeric_limits<double>::quiet_NaN();

constexpr const char* name_of(io::task task) {
  using enum io::task;
  return task == classes  ? "classes"
         : task == labels ? "several labels"
         : task == values ? "values"
                          : "links";
}
/// As options and files have it.
constexpr const char* word_of(io::task task) { return task == io::task::labels ? "labels" : name_of(task); }

/// 1 for a true positive, z > 0 where the target is 1, or, of mistakes, for a false positive or negative.
/// Targets of vertices that are not counted are -1.
struct label_count {
  bool of_mistakes;
  template <class T>
  constexpr T operator()(T z, T target) const {
    const bool given = z > T(0), is = target == T(1);
    return of_mistakes ? T(target >= T(0) && given != is) : T(is && given);
  }
};

/// The mean over the columns of 1 - (squared errors) / (squared deviations from the mean).
inline double r_squared(const io::dataset& data, io::split_part part,
                        std::span<const double> squared_errors) {
  const auto columns = static_cast<std::size_t>(data.classes);
  double total = 0;
  int there = 0;
  for (std::size_t c = 0; c < columns; ++c) {
    const auto each = [&](auto use) {
      for (std::size_t v = 0; v < data.split.size(); ++v)
        if (const double t = data.values[v * columns + c];
            data.split[v] == static_cast<std::uint8_t>(part) && t == t)
          use(t);
    };
    double mean = 0, count = 0, deviation = 0;
    each([&](double t) { mean += t, ++count; });
    if (count == 0) continue;
    mean /= count;
    each([&](double t) { deviation += (t - mean) * (t - mean); });
    total += deviation == 0 ? static_cast<double>(squared_errors[c] == 0) : 1 - squared_errors[c] / deviation;
    ++there;
  }
  return there == 0 ? no_score : total / there;
}

}  // namespace detail

/// What a score is computed from; sums over parts of a set of vertices. Classes: correct and wrong
/// predictions. Labels: true positives, and false positives and negatives. Values: for each column, the
/// squared errors.
struct score_counts {
  std::vector<double> sums = {};
  double vertices = 0;

  score_counts& operator+=(const score_counts& other) {
    sums.resize(std::max(sums.size(), other.sums.size()), 0);
    for (std::size_t k = 0; k < other.sums.size(); ++k) sums[k] += other.sums[k];
    vertices += other.vertices;
    return *this;
  }

  /// Accuracy, micro-F1 or R^2 over a part of the data's split, of all of whose vertices these are sums; not
  /// a number for no vertices.
  double score(const io::dataset& data, io::split_part part) const {
    if (data.task != io::task::values) return share_of_right(data.task == io::task::labels);
    return vertices == 0 ? detail::no_score : detail::r_squared(data, part, sums);
  }
  /// Accuracy, or micro-F1 of labels.
  double share_of_right(bool labels) const {
    if (vertices == 0) return detail::no_score;
    const double right = labels ? 2 * sums[0] : sums[0];
    return right == 0 ? 0 : right / (right + sums[1]);
  }
};

/// Scores over one part of the split. What the task does not have is not a number, and so is all where the
/// part has no vertex.
struct part_scores {
  double score = detail::no_score;             ///< accuracy, micro-F1, R^2 or MRR
  double macro_f1 = detail::no_score;          ///< of classes
  double roc_auc = detail::no_score;           ///< of labels (algebra::area_under_roc) and links
  double root_mean_square = detail::no_score;  ///< of values: of the errors
  double mean_absolute = detail::no_score;     ///< of values
  double hits = detail::no_score;              ///< of links: Hits at K, see link_options
  std::vector<double> confusion = {};          ///< of classes: [label * C + predicted]
};

/// Scores over the training, the validation and the test set.
struct task_scores {
  io::task task = io::task::classes;
  std::array<part_scores, 3> parts = {};
};

}  // namespace partita::nn
