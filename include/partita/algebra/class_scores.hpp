// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Scores of predicted classes: the confusion matrix and what follows from it, and areas under ROC curves.

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "partita/algebra/loss.hpp"

namespace partita::algebra {

/// For each class, the number of counted vertices that are predicted to be in each class.
struct confusion_matrix {
  std::size_t classes = 0;
  std::vector<global_index> counts;  ///< [label * classes + predicted]

  global_index operator()(std::size_t label, std::size_t predicted) const {
    return counts[label * classes + predicted];
  }

  /// The mean of F1 = 2 TP / (2 TP + FP + FN) over the classes that are a label or predicted; not a number
  /// if there are none.
  double macro_f1() const {
    double total = 0;
    int there = 0;
    for (std::size_t c = 0; c < classes; ++c) {
      global_index labels = 0, predictions = 0;
      for (std::size_t k = 0; k < classes; ++k) labels += (*this)(c, k), predictions += (*this)(k, c);
      if (labels + predictions == 0) continue;
      total += 2 * static_cast<double>((*this)(c, c)) / static_cast<double>(labels + predictions);
      ++there;
    }
    return there == 0 ? std::numeric_limits<double>::quiet_NaN() : total / there;
  }
};

namespace detail {

/// The elements of this rank's block, in host memory.
template <class T, class Device>
std::vector<T> block_on_host(const dense<T, vertex_rows, Device>& x) {
  std::vector<T> found(x.values().size());
  copy(x.mesh().queue(), std::span<const T>(x.values()), std::span<T>(found));
  return found;
}

}  // namespace detail

/// The confusion matrix of logits (n x classes), whose first largest entry in a row is the prediction, as for
/// accuracy. On every rank.
///
/// Collective over the mesh. What travels: an all-reduce of classes^2 + 1 counts. Throws as
/// vertex_labels::require_fit, and error for a logit of a counted vertex that is not a number.
template <class T, class Device>
confusion_matrix confusion(const dense<T, vertex_rows, Device>& logits, const vertex_labels<Device>& labels) {
  labels.require_fit(logits);
  const auto classes = static_cast<std::size_t>(logits.shape().cols);
  confusion_matrix found{classes, std::vector<global_index>(classes * classes + 1)};
  const std::vector<T> z = detail::block_on_host(logits);
  std::vector<local_index> of(static_cast<std::size_t>(logits.local().rows));
  copy(logits.mesh().queue(), std::span<const local_index>(labels.data(), of.size()),
       std::span<local_index>(of));
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (of[i] < 0) continue;
    const auto row = std::span(z).subspan(i * classes, classes);
    found.counts.back() += std::any_of(row.begin(), row.end(), [](T x) { return x != x; });
    const auto predicted = static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    ++found.counts[static_cast<std::size_t>(of[i]) * classes + predicted];
  }
  logits.mesh().whole().all_reduce(found.counts);
  if (found.counts.back() != 0)
    base::throw_error<error>({"a confusion matrix needs logits that are numbers; those of ",
                              found.counts.back(), " counted vertices are not"});
  found.counts.pop_back();
  return found;
}

namespace detail {

/// Twice the number of pairs of a negative and a positive score in which the positive one is larger; equal
/// scores count half. `negatives` is ascending.
template <class T>
global_index twice_right_pairs(std::span<const T> negatives, std::span<const T> positives) {
  global_index found = 0;
  for (const T score : positives) {
    const auto [first, last] = std::equal_range(negatives.begin(), negatives.end(), score);
    found += (first - negatives.begin()) + (last - negatives.begin());
  }
  return found;
}

}  // namespace detail

/// The area under the ROC curve of each column of logits (n x classes): the probability that a vertex with
/// target 1 has a larger logit than one with target 0, where equal logits count half; and the mean over the
/// columns with both targets, which is not a number if there are none. Vertices that are not counted have
/// targets of -1. On every rank; the counts are exact, so that every mesh gives the same bits.
///
/// Collective over the mesh. What travels: for each column an all-gather of the logits with target 1 and of
/// their number, and an all-reduce of two counts; and an all-reduce of one. Throws shape_error, and error for
/// a logit that is not a number.
template <class T, class Device>
double area_under_roc(const dense<T, vertex_rows, Device>& logits,
                      const dense<T, vertex_rows, Device>& targets) {
  partita::algebra::detail::require_same_blocks("area_under_roc", logits, targets);
  const communicator& ranks = logits.mesh().whole();
  const auto classes = static_cast<std::size_t>(logits.shape().cols);
  const std::vector<T> z = detail::block_on_host(logits), t = detail::block_on_host(targets);
  const bool is_number = std::none_of(z.begin(), z.end(), [](T x) { return x != x; });
  if (ranks.all_reduce(global_index{!is_number}, reduction::max) != 0)
    throw error("the area under a ROC curve needs logits that are numbers");
  double total = 0;
  int there = 0;
  for (std::size_t c = 0; c < classes; ++c) {
    std::vector<T> negatives, positives;
    for (std::size_t k = c; k < z.size(); k += classes)
      if (t[k] >= T(0)) (t[k] == T(1) ? positives : negatives).push_back(z[k]);
    std::sort(negatives.begin(), negatives.end());
    const std::vector<T> all =
        ranks.all_gather(positives, ranks.all_gather(global_index{std::ssize(positives)}));
    const global_index of_rank[] = {std::ssize(negatives), detail::twice_right_pairs<T>(negatives, all)};
    std::vector<global_index> counts(of_rank, of_rank + 2);
    ranks.all_reduce(counts);
    if (counts[0] == 0 || all.empty()) continue;
    total += static_cast<double>(counts[1]) / 2 /
             (static_cast<double>(counts[0]) * static_cast<double>(all.size()));
    ++there;
  }
  return there == 0 ? std::numeric_limits<double>::quiet_NaN() : total / there;
}

}  // namespace partita::algebra
