// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cross entropy of labelled rows with its gradient, and the number of rows predicted correctly.

#include <cmath>

#include "partita/local/view.hpp"

namespace partita::reference {

/// The sum over rows i with labels[i] >= 0 of -log softmax(logits(i, :))[labels[i]], and the gradient times
/// scale.
template <class T>
double cross_entropy(local::input_view<T> logits, const local_index* labels, local::scalar<T> scale,
                     matrix_view<T> gradient) {
  double loss = 0;
  for (local_index i = 0; i < logits.rows; ++i) {
    const bool counted = labels[i] >= 0;
    double largest = counted ? logits(i, 0) : 0;
    for (local_index j = 0; j < logits.cols; ++j)
      if (logits(i, j) > largest) largest = logits(i, j);
    double total = 0;
    for (local_index j = 0; j < logits.cols; ++j) total += std::exp(logits(i, j) - largest);
    if (counted) loss -= logits(i, labels[i]) - largest - std::log(total);
    for (local_index j = 0; j < logits.cols; ++j) {
      const double softmax = std::exp(logits(i, j) - largest) / total;
      gradient(i, j) = counted ? static_cast<T>(scale * (softmax - (j == labels[i] ? 1 : 0))) : T{0};
    }
  }
  return loss;
}

/// The number of rows i with labels[i] >= 0 whose first largest logit is at labels[i], all of them numbers.
template <class T>
global_index count_correct(matrix_view<T> logits, const local_index* labels) {
  global_index correct = 0;
  for (local_index i = 0; i < logits.rows; ++i) {
    local_index best = 0;
    bool are_numbers = true;
    for (local_index j = 0; j < logits.cols; ++j) {
      if (logits(i, j) > logits(i, best)) best = j;
      are_numbers = are_numbers && !std::isnan(logits(i, j));
    }
    if (labels[i] >= 0 && best == labels[i] && logits.cols > 0 && are_numbers) ++correct;
  }
  return correct;
}

}  // namespace partita::reference
