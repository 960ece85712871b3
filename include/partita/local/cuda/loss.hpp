// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cross entropy with gradient, and prediction counts.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "partita/local/cuda/partial_sums.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::on_cuda {

/// Sum of losses, and the first row with an out-of-range label.
struct loss_sum {
  double loss = 0;
  std::int64_t wrong_row = std::numeric_limits<std::int64_t>::max();  ///< 64-bit, to avoid padding

  constexpr loss_sum& operator+=(const loss_sum& other) {
    loss += other.loss;
    wrong_row = other.wrong_row < wrong_row ? other.wrong_row : wrong_row;
    return *this;
  }
};

/// Loss and gradient of one row.
template <class T>
struct row_loss {
  matrix_view<const T> logits;
  const local_index* labels;
  double scale;
  matrix_view<T> gradient;
  loss_sum* losses;

  constexpr void operator()(std::int64_t thread) const {
    const auto i = static_cast<local_index>(thread);
    const local_index label = labels[i];
    losses[i] = {};
    if (label >= 0 && label < logits.cols) {
      losses[i].loss = labelled(logits.row_data(i), label, gradient.row_data(i));
      return;
    }
    for (local_index j = 0; j < gradient.cols; ++j) gradient(i, j) = 0;
    if (label >= 0) losses[i].wrong_row = i;
  }

 private:
  constexpr double labelled(const T* x, local_index label, T* to) const {
    double largest = x[0];
    for (local_index j = 1; j < logits.cols; ++j) largest = x[j] > largest ? double{x[j]} : largest;
    double total = 0;
    for (local_index j = 0; j < logits.cols; ++j) total += std::exp(x[j] - largest);
    const double loss = std::log(total) - (x[label] - largest);
    const double factor = scale / total;
    for (local_index j = 0; j < logits.cols; ++j)
      to[j] = static_cast<T>(factor * std::exp(x[j] - largest) - (j == label ? scale : 0));
    return loss;
  }
};

/// 1 if the first largest logit of the row is at its label and all of them are numbers, else 0.
template <class T>
struct row_correct {
  matrix_view<const T> logits;
  const local_index* labels;
  std::int64_t* correct;

  constexpr void operator()(std::int64_t thread) const {
    const auto i = static_cast<local_index>(thread);
    const local_index label = labels[i];
    bool is_right = label >= 0 && label < logits.cols;
    for (local_index j = 0; is_right && j < logits.cols; ++j)
      is_right = j < label ? logits(i, j) < logits(i, label) : logits(i, j) <= logits(i, label);
    correct[thread] = is_right ? 1 : 0;
  }
};

/// As on_host::cross_entropy. Synchronises.
template <class T>
double cross_entropy(const device_queue<cuda_device>& q, local::input_view<T> logits,
                     const local_index* labels, local::scalar<T> scale, matrix_view<T> gradient) {
  local::require_equal("cross_entropy", "logits", local::shape_of(logits), "gradient",
                       local::shape_of(gradient));
  if (logits.rows == 0) return 0;
  loss_sum* const losses = scratch<loss_sum>(q, room_to_add_up(logits.rows, 1));
  on_cuda::launch(q, logits.rows, row_loss<T>{logits, labels, double{scale}, gradient, losses});
  const loss_sum total = read(q, add_up(q, losses, logits.rows, 1));
  if (total.wrong_row < logits.rows)
    local::throw_label(static_cast<local_index>(total.wrong_row), read(q, labels + total.wrong_row),
                       logits.cols);
  return total.loss;
}

/// As on_host::count_correct. Synchronises.
template <class T>
global_index count_correct(const device_queue<cuda_device>& q, matrix_view<T> logits,
                           const local_index* labels) {
  using value = std::remove_const_t<T>;
  if (logits.rows == 0) return 0;
  std::int64_t* const correct = scratch<std::int64_t>(q, room_to_add_up(logits.rows, 1));
  on_cuda::launch(q, logits.rows, row_correct<value>{logits, labels, correct});
  return read(q, add_up(q, correct, logits.rows, 1));
}

}  // namespace partita::on_cuda
