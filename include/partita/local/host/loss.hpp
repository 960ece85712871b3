// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cross entropy with gradient, and prediction counts.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "partita/local/host/exponential.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/host/reductions.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace loss_detail {

/// The losses of some rows and their gradients.
template <instruction_set I, class T>
struct losses_of_rows {
  static constexpr local_index together = 16;  ///< rows whose exponentials are computed at once

  matrix_view<const T> logits;
  const local_index* labels;
  double scale;
  matrix_view<T> gradient;

  double operator()(local_index begin, local_index end) const {
    std::vector<T> terms(static_cast<std::size_t>(together) * static_cast<std::size_t>(logits.cols));
    double loss = 0;
    for (local_index i = begin; i < end; i += together)
      loss += of_block(i, std::min(end, i + together), terms.data());
    return loss;
  }

 private:
  double of_block(local_index begin, local_index end, T* terms) const {
    const local_index n = logits.cols;
    double at_label[together];
    T* to = terms;
    for (local_index i = begin; i < end; ++i) {
      if (labels[i] >= n) local::throw_label(i, labels[i], n);
      if (labels[i] < 0) continue;
      const T* const row = logits.row_data(i);
      const double largest = maximum_of(row, n);
      for (local_index j = 0; j < n; ++j) to[j] = static_cast<T>(row[j] - largest);
      at_label[i - begin] = row[labels[i]] - largest;
      to += n;
    }
    exponentials<I>(terms, static_cast<std::size_t>(to - terms));
    double loss = 0;
    const T* from = terms;
    for (local_index i = begin; i < end; ++i) {
      T* const row = gradient.row_data(i);
      if (labels[i] < 0) {
        std::fill_n(row, n, T{0});
        continue;
      }
      double total = 0;
      for (local_index j = 0; j < n; ++j) total += from[j];
      loss += std::log(total) - at_label[i - begin];
      const double factor = scale / total;
      for (local_index j = 0; j < n; ++j) row[j] = static_cast<T>(factor * from[j]);
      row[labels[i]] = static_cast<T>(factor * from[labels[i]] - scale);
      from += n;
    }
    return loss;
  }
};

/// Whether x[k] is the first largest of n numbers; false where one is not a number.
template <class T>
inline bool is_first_largest(const T* x, local_index n, local_index k) {
  for (local_index j = 0; j < n; ++j)
    if (!(j < k ? x[j] < x[k] : x[j] <= x[k])) return false;
  return true;
}

}  // namespace loss_detail

/// Returns the sum over rows i with labels[i] >= 0 of -log softmax(logits(i, :))[labels[i]], and sets
/// gradient(i, :) = scale (softmax(logits(i, :)) - onehot(labels[i])) for these rows, 0 for the others.
/// logits and gradient are (m, n) and may alias; labels has m elements. Throws shape_error if the shapes
/// differ or a label is not less than n.
template <class T>
inline double cross_entropy(const device_queue<host>& q, local::input_view<T> logits,
                            const local_index* labels, local::scalar<T> scale, matrix_view<T> gradient) {
  memory::refuse_reproducible(q, "cross_entropy");
  local::require_equal("cross_entropy", "logits", local::shape_of(logits), "gradient",
                       local::shape_of(gradient));
  return sum_by_blocks<double>(
      q.threads(), logits.rows, 8 * std::int64_t{logits.cols}, [=](auto instructions) {
        return loss_detail::losses_of_rows<instructions, T>{logits, labels, double{scale}, gradient};
      });
}

/// Returns, for each set of labels, the number of rows i with labels[i] >= 0 whose first largest logit is at
/// labels[i] and all of whose logits are numbers. logits is (m, n), a set has m elements.
template <class T, std::size_t Sets>
inline std::array<global_index, Sets> count_correct(const device_queue<host>& q, matrix_view<T> logits,
                                                    const std::array<const local_index*, Sets>& sets) {
  std::array<global_index, Sets> found{};
  for (std::size_t k = 0; k < Sets; ++k)
    found[k] = sum_by_blocks<global_index>(
        q.threads(), logits.rows, logits.cols, [=, labels = sets[k]](local_index begin, local_index end) {
          global_index correct = 0;
          for (local_index i = begin; i < end; ++i)
            correct += labels[i] >= 0 && labels[i] < logits.cols &&
                       loss_detail::is_first_largest(logits.row_data(i), logits.cols, labels[i]);
          return correct;
        });
  return found;
}

}  // namespace partita::on_host
