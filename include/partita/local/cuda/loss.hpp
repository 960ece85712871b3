// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Cross entropy with gradient, and prediction counts.

#include <algorithm>
#include <array>
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

/// Loss and gradient of rows w, w + warps, ... in warp w. The lanes of a warp share a row: lane j % 32 takes
/// column j. The first columns stay in registers; the others are read again.
template <class T>
struct row_losses {
  static constexpr int held = 4;  ///< columns of a lane
  static constexpr local_index held_columns = 32 * held;

  matrix_view<const T> logits;
  const local_index* labels;
  double scale;
  matrix_view<T> gradient;
  std::int64_t warps;
  loss_sum* losses;

  __device__ void operator()(std::uint32_t warp, int lane) const {
    loss_sum total;
    for (std::int64_t row = warp; row < logits.rows; row += warps) {
      const auto i = static_cast<local_index>(row);
      const local_index label = labels[i];
      if (label >= 0 && label < logits.cols) {
        total.loss += labelled(logits.row_data(i), label, gradient.row_data(i), lane);
        continue;
      }
      for (local_index j = lane; j < gradient.cols; j += 32) gradient(i, j) = 0;
      if (label >= 0 && i < total.wrong_row) total.wrong_row = i;
    }
    if (lane == 0) losses[warp] = total;
  }

 private:
  __device__ double labelled(const T* x, local_index label, T* to, int lane) const {
    const double lowest = -std::numeric_limits<double>::infinity();
    double exponential[held];
    double largest = lowest;
    for (int k = 0; k < held; ++k) {
      const local_index j = lane + 32 * k;
      exponential[k] = j < logits.cols ? double{x[j]} : lowest;
      largest = exponential[k] > largest ? exponential[k] : largest;
    }
    for (local_index j = lane + held_columns; j < logits.cols; j += 32)
      largest = x[j] > largest ? double{x[j]} : largest;
    largest = over_lanes(largest, [](double a, double b) { return a > b ? a : b; });
    const double of_label = x[label];
    double total = 0;
    for (int k = 0; k < held; ++k) {
      if (lane + 32 * k < logits.cols) total += exponential[k] = std::exp(exponential[k] - largest);
    }
    for (local_index j = lane + held_columns; j < logits.cols; j += 32) total += std::exp(x[j] - largest);
    total = over_lanes(total, [](double a, double b) { return a + b; });
    __syncwarp();  // the gradient may lie where the logits do
    const double factor = scale / total;
    for (int k = 0; k < held; ++k) {
      const local_index j = lane + 32 * k;
      if (j < logits.cols) to[j] = static_cast<T>(factor * exponential[k] - (j == label ? scale : 0));
    }
    for (local_index j = lane + held_columns; j < logits.cols; j += 32)
      to[j] = static_cast<T>(factor * std::exp(x[j] - largest) - (j == label ? scale : 0));
    return std::log(total) - (of_label - largest);
  }
};

/// For each set of labels: how many of the rows w, w + warps, ... of warp w have no NaN and their first
/// largest logit at their label.
template <class T, std::size_t Sets>
struct rows_correct {
  matrix_view<const T> logits;
  std::array<const local_index*, Sets> labels;
  std::int64_t warps;
  std::int64_t* correct;  ///< warps x sets

  __device__ void operator()(std::uint32_t warp, int lane) const {
    for (std::size_t set = 0; set < Sets; ++set) {
      const std::int64_t found = of_set(labels[set], warp, lane);
      if (lane == 0) correct[warp * Sets + set] = found;
    }
  }

 private:
  __device__ std::int64_t of_set(const local_index* of_rows, std::uint32_t warp, int lane) const {
    std::int64_t total = 0;
    for (std::int64_t row = warp; row < logits.rows; row += warps) {
      const auto i = static_cast<local_index>(row);
      const local_index label = of_rows[i];
      if (label < 0 || label >= logits.cols) continue;
      const T* const x = logits.row_data(i);
      bool is_right = true;
      for (local_index j = lane; j < logits.cols; j += 32)
        is_right = is_right && (j < label ? x[j] < x[label] : x[j] <= x[label]);
      total += __all_sync(0xffffffffu, is_right) != 0 ? 1 : 0;
    }
    return total;
  }
};

/// Warps that go through the rows of a block.
inline std::int64_t warps_of_rows(local_index rows) { return std::min<std::int64_t>(rows, most_parts); }

/// Enqueues the loss and gradient of one or more rows; the sum will be in scratch memory.
template <class T>
const loss_sum* start_losses(const device_queue<cuda_device>& q, matrix_view<const T> logits,
                             const local_index* labels, T scale, matrix_view<T> gradient) {
  const std::int64_t warps = warps_of_rows(logits.rows);
  return start_sum_of_parts<loss_sum>(q, warps, [&](loss_sum* losses) {
    launch_warps(q, warps, row_losses<T>{logits, labels, double{scale}, gradient, warps, losses});
  });
}

/// As on_host::cross_entropy. Synchronises.
template <class T>
double cross_entropy(const device_queue<cuda_device>& q, local::input_view<T> logits,
                     const local_index* labels, local::scalar<T> scale, matrix_view<T> gradient) {
  local::require_equal("cross_entropy", "logits", local::shape_of(logits), "gradient",
                       local::shape_of(gradient));
  if (logits.rows == 0) return 0;
  const loss_sum total = read(q, start_losses<T>(q, logits, labels, scale, gradient));
  if (total.wrong_row < logits.rows)
    local::throw_label(static_cast<local_index>(total.wrong_row), read(q, labels + total.wrong_row),
                       logits.cols);
  return total.loss;
}
/// The same without waiting, for labels that are columns or negative.
template <class T>
void start_cross_entropy(const device_queue<cuda_device>& q, local::input_view<T> logits,
                         const local_index* labels, local::scalar<T> scale, matrix_view<T> gradient,
                         memory::late<double, cuda_device>& loss) {
  local::require_equal("cross_entropy", "logits", local::shape_of(logits), "gradient",
                       local::shape_of(gradient));
  if (logits.rows == 0) return loss.set(0);
  loss.take(q, &start_losses<T>(q, logits, labels, scale, gradient)->loss);
}

/// As on_host::count_correct. Synchronises.
template <class T, std::size_t Sets>
std::array<global_index, Sets> count_correct(const device_queue<cuda_device>& q, matrix_view<T> logits,
                                             const std::array<const local_index*, Sets>& labels) {
  using value = std::remove_const_t<T>;
  if (logits.rows == 0) return {};
  const std::int64_t warps = warps_of_rows(logits.rows), count = warps * static_cast<std::int64_t>(Sets);
  std::int64_t* const correct = scratch<std::int64_t>(q, static_cast<std::size_t>(count) + Sets);
  launch_warps(q, warps, rows_correct<value, Sets>{logits, labels, warps, correct});
  add_up(q, correct, warps, Sets, correct + count);
  return read(q, reinterpret_cast<const std::array<global_index, Sets>*>(correct + count));
}

}  // namespace partita::on_cuda
