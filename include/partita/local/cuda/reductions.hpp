// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums and maxima over rows, columns and whole blocks, in an order that depends on the shape and alignment
/// alone.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "partita/base/function.hpp"
#include "partita/local/cuda/partial_sums.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::on_cuda {

struct sum_in_double {
  using state = double;

  static constexpr double none() { return 0; }
  static constexpr double joined(double a, double b) { return a + b; }
};

template <class T>
struct maximum {
  using state = T;

  static constexpr T none() { return -std::numeric_limits<T>::infinity(); }
  static constexpr T joined(T a, T b) { return larger_of{}(a, b); }
};

/// parts(p, j) = x(p, j) + x(p + parts, j) + ...
template <int Width, class T>
struct column_parts {
  matrix_view<const T> x;
  std::int64_t count;
  double* parts;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, x.cols / Width);
    double total[Width] = {};
    for (std::int64_t i = at.row; i < x.rows; i += count) {
      const pack_of<T, Width> from = load<Width>(x.row_data(static_cast<local_index>(i)) + at.col * Width);
      for (int c = 0; c < Width; ++c) total[c] += from.at[c];
    }
    double* const to = parts + std::int64_t{at.row} * x.cols + at.col * Width;
    for (int c = 0; c < Width; ++c) to[c] = total[c];
  }
};

template <class T>
struct round_all {
  const double* from;
  T* to;

  constexpr void operator()(std::int64_t i) const { to[i] = static_cast<T>(from[i]); }
};

/// parts(i, l) = what every `lanes`-th pack of row i from the l-th on comes to.
template <int Width, class T, class Reduction, class To>
struct row_parts {
  matrix_view<const T> x;
  local_index lanes;
  To* parts;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, lanes);
    auto total = Reduction::none();
    for (local_index v = at.col; v < x.cols / Width; v += lanes) {
      const pack_of<T, Width> from = load<Width>(x.row_data(at.row) + v * Width);
      for (const T& element : from.at) total = Reduction::joined(total, element);
    }
    parts[thread] = static_cast<To>(total);
  }
};

template <class T, class Reduction>
struct join_lanes {
  const typename Reduction::state* parts;
  local_index lanes;
  T* results;

  constexpr void operator()(std::int64_t i) const {
    auto total = Reduction::none();
    for (local_index l = 0; l < lanes; ++l) total = Reduction::joined(total, parts[i * lanes + l]);
    results[i] = static_cast<T>(total);
  }
};

/// parts[p] = the sum of the cells p, p + count, ...
template <class T>
struct block_parts {
  matrix_view<const T> x;
  std::int64_t count;
  double* parts;

  constexpr void operator()(std::int64_t part) const {
    double total = 0;
    for (std::int64_t k = part; k < std::int64_t{x.rows} * x.cols; k += count) {
      const cell at = cell_of(k, x.cols);
      total += x(at.row, at.col);
    }
    parts[part] = total;
  }
};

namespace reduction_detail {

/// Several threads share a wide row.
template <class Reduction, class T>
void reduce_rows(const device_queue<cuda_device>& q, matrix_view<const T> x, T* results) {
  constexpr local_index columns_of_lane = 32, most_lanes = 32;
  const local_index lanes = std::clamp<local_index>(x.cols / columns_of_lane, 1, most_lanes);
  const auto run = [&]<int pack_width>(std::integral_constant<int, pack_width>) {
    using state = typename Reduction::state;
    if (lanes == 1) return on_cuda::launch(q, x.rows, row_parts<pack_width, T, Reduction, T>{x, 1, results});
    const std::int64_t count = std::int64_t{x.rows} * lanes;
    state* const parts = scratch<state>(q, static_cast<std::size_t>(count));
    on_cuda::launch(q, count, row_parts<pack_width, T, Reduction, state>{x, lanes, parts});
    on_cuda::launch(q, x.rows, join_lanes<T, Reduction>{parts, lanes, results});
  };
  with_width<widest<T>>(x.cols, run, x);
}

}  // namespace reduction_detail

/// As the host's.
template <class T>
void column_sums(const device_queue<cuda_device>& q, local::input_view<T> x, T* sums) {
  constexpr std::int64_t threads = 1 << 18, fewest_rows = 16;
  const auto run = [&]<int pack_width>(std::integral_constant<int, pack_width>) {
    const std::int64_t packs = x.cols / pack_width;
    const std::int64_t count =
        std::clamp<std::int64_t>(x.rows / fewest_rows, 1, std::max<std::int64_t>(threads / packs, 1));
    double* const parts = scratch<double>(q, room_to_add_up(count, x.cols));
    on_cuda::launch(q, count * packs, column_parts<pack_width, T>{x, count, parts});
    on_cuda::launch(q, x.cols, round_all<T>{add_up(q, parts, count, x.cols), sums});
  };
  if (x.cols > 0) with_width<widest<T>>(x.cols, run, x);
}

/// As the host's.
template <class T>
void row_sums(const device_queue<cuda_device>& q, local::input_view<T> x, T* sums) {
  reduction_detail::reduce_rows<sum_in_double>(q, x, sums);
}

/// As the host's.
template <class T>
void row_max(const device_queue<cuda_device>& q, local::input_view<T> x, T* maxima) {
  reduction_detail::reduce_rows<maximum<T>>(q, x, maxima);
}

/// As the host's. Waits for the result.
template <class T>
std::remove_const_t<T> sum(const device_queue<cuda_device>& q, matrix_view<T> x) {
  using value = std::remove_const_t<T>;
  constexpr std::int64_t most = 1 << 16, fewest_cells = 64;
  const std::int64_t count = std::clamp<std::int64_t>(std::int64_t{x.rows} * x.cols / fewest_cells, 1, most);
  double* const parts = scratch<double>(q, room_to_add_up(count, 1));
  on_cuda::launch(q, count, block_parts<value>{x, count, parts});
  return static_cast<value>(read(q, add_up(q, parts, count, 1)));
}

}  // namespace partita::on_cuda
