// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cross entropy with gradient, and prediction counts.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "partita/local/host/parallel.hpp"
#include "partita/local/host/reductions.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace loss_detail {

template <class T>
inline double row_loss(const T* logits, local_index n, local_index label, double scale, T* gradient) {
  const double largest = maximum_of(logits, n);
  double total = 0;
  for (local_index j = 0; j < n; ++j) total += std::exp(logits[j] - largest);
  const double loss = std::log(total) - (logits[label] - largest);
  const double factor = scale / total;
  for (local_index j = 0; j < n; ++j)
    gradient[j] = static_cast<T>(factor * std::exp(logits[j] - largest) - (j == label ? scale : 0));
  return loss;
}

template <class T>
inline local_index first_largest(const T* x, local_index n) {
  return static_cast<local_index>(std::max_element(x, x + n) - x);
}

}  // namespace loss_detail

/// Returns the sum over rows i with labels[i] >= 0 of -log softmax(logits(i, :))[labels[i]], and sets
/// gradient(i, :) = scale (softmax(logits(i, :)) - onehot(labels[i])) for these rows, 0 for the others.
/// logits and gradient are (m, n) and may alias; labels has m elements. Throws shape_error if the shapes
/// differ or a label is not less than n.
template <class T>
inline double cross_entropy(const device_queue<host>& q, local::input_view<T> logits,
                            const local_index* labels, local::scalar<T> scale, matrix_view<T> gradient) {
  local::require_equal("cross_entropy", "logits", local::shape_of(logits), "gradient",
                       local::shape_of(gradient));
  return sum_chunks<double>(q.threads(), logits.rows, 8 * std::int64_t{logits.cols},
                            [=](local_index begin, local_index end) {
                              double loss = 0;
                              for (local_index i = begin; i < end; ++i) {
                                if (labels[i] >= logits.cols) local::throw_label(i, labels[i], logits.cols);
                                if (labels[i] < 0)
                                  std::fill_n(gradient.row_data(i), gradient.cols, T{0});
                                else
                                  loss += loss_detail::row_loss(logits.row_data(i), logits.cols, labels[i],
                                                                double{scale}, gradient.row_data(i));
                              }
                              return loss;
                            });
}

/// Returns the number of rows i with labels[i] >= 0 whose first largest logit is at labels[i]. logits is (m,
/// n), labels has m elements.
template <class T>
inline global_index count_correct(const device_queue<host>& q, matrix_view<T> logits,
                                  const local_index* labels) {
  return sum_chunks<global_index>(
      q.threads(), logits.rows, logits.cols, [=](local_index begin, local_index end) {
        global_index correct = 0;
        for (local_index i = begin; i < end; ++i)
          correct += labels[i] >= 0 && logits.cols > 0 &&
                     loss_detail::first_largest(logits.row_data(i), logits.cols) == labels[i];
        return correct;
      });
}

}  // namespace partita::on_host
