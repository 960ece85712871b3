// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums, inner products and maxima over rows, columns and whole blocks. The summation order depends only on
/// shape and alignment.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "partita/base/function.hpp"
#include "partita/local/cuda/partial_sums.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/shapes.hpp"
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
  static constexpr T joined(T a, T b) { return base::larger_of{}(a, b); }
};

/// The terms x(i, j).
template <class T>
struct entry_terms {
  matrix_view<const T> x;

  constexpr double operator()(local_index i, local_index j) const { return x(i, j); }
  template <int Width>
  constexpr void add(local_index i, local_index j, double (&total)[Width]) const {
    const pack_of<T, Width> of_x = load<Width>(x.row_data(i) + j);
    for (int c = 0; c < Width; ++c) total[c] += of_x.at[c];
  }
};

/// The terms x(i, j) y(i, j).
template <class T>
struct product_terms {
  matrix_view<const T> x, y;

  constexpr double operator()(local_index i, local_index j) const { return double{x(i, j)} * y(i, j); }
  template <int Width>
  constexpr void add(local_index i, local_index j, double (&total)[Width]) const {
    const pack_of<T, Width> of_x = load<Width>(x.row_data(i) + j), of_y = load<Width>(y.row_data(i) + j);
    for (int c = 0; c < Width; ++c) total[c] += double{of_x.at[c]} * of_y.at[c];
  }
};

/// parts(p, j) = terms(p, j) + terms(p + count, j) + ..., for terms of shape (rows, cols).
template <int Width, class Terms>
struct column_parts {
  Terms terms;
  local_index rows, cols;
  std::int64_t count;
  double* parts;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, cols / Width);
    double total[Width] = {};
    for (std::int64_t i = at.row; i < rows; i += count)
      terms.template add<Width>(static_cast<local_index>(i), at.col * Width, total);
    double* const to = parts + std::int64_t{at.row} * cols + at.col * Width;
    for (int c = 0; c < Width; ++c) to[c] = total[c];
  }
};

/// sums[j] = what add_parts gives of column_parts, bit for bit, in one launch: a block of threads goes
/// through a pack of columns.
template <int Width, class Terms, class To>
__global__ void __launch_bounds__(launch_block)
    sum_few_rows(Terms terms, local_index rows, std::int64_t count, To* sums) {
  const local_index first = static_cast<local_index>(blockIdx.x) * Width;
  double total[Width] = {};
  for (std::int64_t p = threadIdx.x; p < count; p += launch_block) {
    double part[Width] = {};
    for (std::int64_t i = p; i < rows; i += count)
      terms.template add<Width>(static_cast<local_index>(i), first, part);
    for (int c = 0; c < Width; ++c) total[c] += part[c];
  }
  for (int c = 0; c < Width; ++c) {
    const double sum = over_block(total[c]);
    if (threadIdx.x == 0) sums[first + c] = static_cast<To>(sum);
  }
}

/// parts(i, l) = reduction of packs l, l + lanes, ... of row i.
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

/// parts[p] = sum of terms p, p + count, ..., for terms of shape (rows, cols).
template <class Terms>
struct block_parts {
  Terms terms;
  local_index rows, cols;
  std::int64_t count;
  double* parts;

  constexpr void operator()(std::int64_t part) const {
    double total = 0;
    for (std::int64_t k = part; k < std::int64_t{rows} * cols; k += count) {
      const cell at = cell_of(k, cols);
      total += terms(at.row, at.col);
    }
    parts[part] = total;
  }
};

namespace reduction_detail {

/// Wide rows are shared by several threads.
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

/// sums[j] = sum_i terms(i, j), for terms of blocks with the shape and alignment of x and `others`.
template <class T, class Terms, class... Views>
void sum_columns(const device_queue<cuda_device>& q, Terms terms, T* sums, matrix_view<const T> x,
                 Views... others) {
  constexpr std::int64_t threads = 1 << 18, fewest_rows = 16;
  constexpr local_index few_rows = 1 << 13;  // a launch takes longer
  const auto run = [&]<int pack_width>(std::integral_constant<int, pack_width>) {
    const std::int64_t packs = x.cols / pack_width;
    const std::int64_t most = std::clamp<std::int64_t>(threads / packs, 1, most_parts);
    const std::int64_t count = std::clamp<std::int64_t>(x.rows / fewest_rows, 1, most);
    if (x.rows <= few_rows) {
      const device_guard guard(q.device());
      sum_few_rows<pack_width>
          <<<static_cast<unsigned>(packs), launch_block, 0, q.stream()>>>(terms, x.rows, count, sums);
      return check_cuda(cudaGetLastError(), "a kernel's launch");
    }
    double* const parts = scratch<double>(q, static_cast<std::size_t>(count * x.cols));
    on_cuda::launch(q, count * packs, column_parts<pack_width, Terms>{terms, x.rows, x.cols, count, parts});
    add_up(q, parts, count, x.cols, sums);
  };
  if (x.cols > 0) with_width<widest<T>>(x.cols, run, x, others...);
}

/// Sum of (rows, cols) terms. Synchronises.
template <class Terms>
double sum_block(const device_queue<cuda_device>& q, Terms terms, local_index rows, local_index cols) {
  constexpr std::int64_t most = 4 * most_parts, fewest_cells = 64;
  const std::int64_t count = std::clamp<std::int64_t>(std::int64_t{rows} * cols / fewest_cells, 1, most);
  return sum_of_parts<double>(q, count, [&](double* parts) {
    on_cuda::launch(q, count, block_parts<Terms>{terms, rows, cols, count, parts});
  });
}

}  // namespace reduction_detail

/// As on_host::column_sums.
template <class T>
void column_sums(const device_queue<cuda_device>& q, local::input_view<T> x, T* sums) {
  reduction_detail::sum_columns<T>(q, entry_terms<T>{x}, sums, x);
}

/// As on_host::column_dots.
template <class T>
void column_dots(const device_queue<cuda_device>& q, local::input_view<T> x, local::input_view<T> y,
                 T* products) {
  local::require_equal("column_dots", "x", local::shape_of(x), "y", local::shape_of(y));
  reduction_detail::sum_columns<T>(q, product_terms<T>{x, y}, products, x, y);
}

/// As on_host::row_sums.
template <class T>
void row_sums(const device_queue<cuda_device>& q, local::input_view<T> x, T* sums) {
  reduction_detail::reduce_rows<sum_in_double>(q, x, sums);
}

/// As on_host::row_max.
template <class T>
void row_max(const device_queue<cuda_device>& q, local::input_view<T> x, T* maxima) {
  reduction_detail::reduce_rows<maximum<T>>(q, x, maxima);
}

/// As on_host::sum. Synchronises.
template <class T>
std::remove_const_t<T> sum(const device_queue<cuda_device>& q, matrix_view<T> x) {
  using value = std::remove_const_t<T>;
  return static_cast<value>(reduction_detail::sum_block(q, entry_terms<value>{x}, x.rows, x.cols));
}

/// As on_host::dot. Synchronises.
template <class T>
std::remove_const_t<T> dot(const device_queue<cuda_device>& q, matrix_view<T> x,
                           std::type_identity_t<matrix_view<T>> y) {
  local::require_equal("dot", "x", local::shape_of(x), "y", local::shape_of(y));
  using value = std::remove_const_t<T>;
  return static_cast<value>(reduction_detail::sum_block(q, product_terms<value>{x, y}, x.rows, x.cols));
}

}  // namespace partita::on_cuda
