// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense matrix product: the queue's library, or a register-tiled kernel, split along the inner dimension if
/// c is small.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/local/cuda/elementwise.hpp"
#include "partita/local/cuda/reductions.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/cuda/vendor_products.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::on_cuda {

/// Stores c(i, j) from the sum of products: scaling and epilogue, 0 where `factor`, if given, is not
/// positive, and dropout.
template <class T>
struct gemm_finish {
  T alpha, beta;
  vendor_epilogue<T> epilogue;
  matrix_view<T> c;
  matrix_view<const T> factor = {};
  local::block_dropout<T> drop = {};

  constexpr void operator()(local_index i, local_index j, T sum) const {
    c(i, j) = finished(i, j, sum, beta == 0 ? T{0} : c(i, j));
  }
  constexpr T finished(local_index i, local_index j, T sum, T old) const {
    T value = alpha * sum;
    if (beta != 0) value += beta * old;
    if (epilogue.bias != nullptr) value += epilogue.bias[j];
    const bool cut = (epilogue.relu && !(value > 0)) || (factor.data != nullptr && !(factor(i, j) > 0));
    if (cut) value = 0;
    return drop.drops() ? drop(i, j, value) : value;
  }
};

/// Thread (part, tile) computes a tile of c over one part of the inner dimension. The columns of a tile are
/// strided, so that accesses of neighbouring threads coalesce. Results go to c, or to `parts` (part, m, n) if
/// there are several.
template <bool Ta, bool Tb, class T>
struct multiply_tiles {
  static constexpr int height = 4, width = 4;

  matrix_view<const T> a, b;
  local_index depth, part_depth;
  local_index tiles_across;
  std::int64_t tiles;
  T* parts;
  gemm_finish<T> finish;

  constexpr void operator()(std::int64_t thread) const {
    const std::int64_t part = thread / tiles;
    const cell tile = cell_of(thread % tiles, tiles_across);
    const local_index m = finish.c.rows, n = finish.c.cols;
    local_index rows[height] = {}, cols[width] = {};
    for (int r = 0; r < height; ++r) rows[r] = clipped(tile.row * height + r, m);
    for (int c = 0; c < width; ++c) cols[c] = clipped(tile.col + c * tiles_across, n);
    T sum[height][width] = {};
    const auto begin = static_cast<local_index>(part * part_depth);
    const local_index end = depth - begin < part_depth ? depth : begin + part_depth;
    for (local_index p = begin; p < end; ++p) add_products(p, rows, cols, sum);
    for (int r = 0; r < height; ++r)
      for (int c = 0; c < width; ++c) {
        const local_index i = tile.row * height + r, j = tile.col + c * tiles_across;
        if (i >= m || j >= n) continue;
        if (parts == nullptr)
          finish(i, j, sum[r][c]);
        else
          parts[(part * m + i) * n + j] = sum[r][c];
      }
  }

 private:
  /// Out-of-range indices are clamped to the edge; their results are not stored.
  static constexpr local_index clipped(local_index i, local_index count) { return i < count ? i : count - 1; }

  constexpr void add_products(local_index p, const local_index (&rows)[height],
                              const local_index (&cols)[width], T (&sum)[height][width]) const {
    T left[height] = {}, right[width] = {};
    for (int r = 0; r < height; ++r) left[r] = Ta ? a(p, rows[r]) : a(rows[r], p);
    for (int c = 0; c < width; ++c) right[c] = Tb ? b(cols[c], p) : b(p, cols[c]);
    for (int r = 0; r < height; ++r)
      for (int c = 0; c < width; ++c) sum[r][c] += left[r] * right[c];
  }
};

template <class T>
struct add_gemm_parts {
  const T* parts;
  std::int64_t count;
  gemm_finish<T> finish;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, finish.c.cols);
    const std::int64_t area = std::int64_t{finish.c.rows} * finish.c.cols;
    T sum = parts[thread];
    for (std::int64_t part = 1; part < count; ++part) sum += parts[part * area + thread];
    finish(at.row, at.col, sum);
  }
};

/// Applies the epilogue to zero sums, or to sums already in c, `Width` columns a thread.
template <int Width, class T>
struct finish_alone {
  gemm_finish<T> finish;
  bool in_place;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, finish.c.cols / Width);
    const local_index j = at.col * Width;
    T* const to = finish.c.row_data(at.row) + j;
    const bool reads = in_place || finish.beta != 0;
    pack_of<T, Width> values = reads ? load<Width>(to) : pack_of<T, Width>{};
    for (int c = 0; c < Width; ++c) {
      const T old = values.at[c];
      values.at[c] = finish.finished(at.row, j + c, in_place ? old : T{0}, old);
    }
    store(values, to);
  }
};

namespace gemm_detail {

template <class T>
void finish_all(const device_queue<cuda_device>& q, const gemm_finish<T>& finish, bool in_place) {
  with_width<widest<T>>(
      finish.c.cols,
      [&]<int width>(std::integral_constant<int, width>) {
        on_cuda::launch(q, std::int64_t{finish.c.rows} * (finish.c.cols / width),
                        finish_alone<width, T>{finish, in_place});
      },
      finish.c);
}

template <bool Ta, bool Tb, class T>
void tiled(const device_queue<cuda_device>& q, const matrix_view<const T>& a, const matrix_view<const T>& b,
           local_index k, const gemm_finish<T>& finish) {
  using body = multiply_tiles<Ta, Tb, T>;
  constexpr std::int64_t enough_threads = 1 << 18, smallest_depth = 128;
  const matrix_view<T>& c = finish.c;
  const auto across = static_cast<local_index>(quotient_up(c.cols, body::width));
  const std::int64_t tiles = quotient_up(c.rows, body::height) * across;
  const std::int64_t wanted =
      std::clamp<std::int64_t>(k / smallest_depth, 1, std::max<std::int64_t>(enough_threads / tiles, 1));
  const auto depth = static_cast<local_index>(quotient_up(k, wanted));
  const std::int64_t count = quotient_up(k, depth), area = std::int64_t{c.rows} * c.cols;
  T* const parts = count == 1 ? nullptr : scratch<T>(q, static_cast<std::size_t>(count * area));
  on_cuda::launch(q, count * tiles, body{a, b, k, depth, across, tiles, parts, finish});
  if (count > 1) on_cuda::launch(q, area, add_gemm_parts<T>{parts, count, finish});
}

/// Returns false, without computing anything, if column sums were requested but cannot be fused.
template <class T>
bool product(const char* name, const device_queue<cuda_device>& q, bool ta, bool tb, matrix_view<const T> a,
             matrix_view<const T> b, const gemm_finish<T>& finish) {
  const matrix_view<T>& c = finish.c;
  const auto [m, n, k] = local::gemm_sizes(name, ta, tb, a, b, c);
  const bool multiplies = m > 0 && n > 0 && k > 0 && finish.alpha != 0;
  const auto library = multiplies ? libraries_of(q).gemm<T>() : nullptr;
  if (library != nullptr) {
    const auto made = [&](const vendor_epilogue<T>& epilogue) {
      return library(q, ta, tb, m, n, k, finish.alpha, a.data, local::leading_size(a), b.data,
                     local::leading_size(b), finish.beta, c.data, local::leading_size(c), epilogue);
    };
    vendor_epilogue<T> rest;
    if (!made(finish.epilogue)) {
      if (finish.epilogue.column_sums != nullptr) return false;
      rest = finish.epilogue;
      made({});
    }
    if (rest.bias != nullptr || rest.relu || finish.factor.data != nullptr || finish.drop.drops())
      finish_all<T>(q, {T{1}, T{0}, rest, c, finish.factor, finish.drop}, true);
    return true;
  }
  if (finish.epilogue.column_sums != nullptr) return false;
  if (m == 0 || n == 0) return true;
  if (!multiplies)
    finish_all(q, finish, false);
  else if (ta)
    tb ? tiled<true, true>(q, a, b, k, finish) : tiled<true, false>(q, a, b, k, finish);
  else
    tb ? tiled<false, true>(q, a, b, k, finish) : tiled<false, false>(q, a, b, k, finish);
  return true;
}

}  // namespace gemm_detail

/// As on_host::gemm for X = T; uses the queue's library if it has one.
template <class T, class X>
void gemm(const device_queue<cuda_device>& q, bool ta, bool tb, local::scalar<T> alpha, matrix_view<X> a,
          local::input_view<T> b, local::scalar<T> beta, matrix_view<T> c) {
  gemm_detail::product<T>("gemm", q, ta, tb, a, b, {alpha, beta, {}, c});
}

/// As on_host::gemm_bias_relu; uses the queue's library if it has one.
template <class T>
void gemm_bias_relu(const device_queue<cuda_device>& q, local::input_view<T> a, local::input_view<T> b,
                    const local::scalar<T>* bias, bool relu, local::scalar<T> beta, matrix_view<T> c,
                    const std::type_identity_t<local::block_dropout<T>>& drop = {}) {
  gemm_detail::product<T>("gemm_bias_relu", q, false, false, a, b, {T{1}, beta, {bias, relu}, c, {}, drop});
}

/// As on_host::gemm_bias_gradient for X = T; uses the queue's library if it has one, for both at once if it
/// can.
template <class T, class X>
void gemm_bias_gradient(const device_queue<cuda_device>& q, matrix_view<X> a, local::input_view<T> dc,
                        matrix_view<T> db, local::scalar<T>* dbias) {
  const gemm_finish<T> with_sums{T{1}, T{0}, {.column_sums = dbias}, db};
  if (gemm_detail::product<T>("gemm_bias_gradient", q, true, false, a, dc, with_sums)) return;
  gemm_detail::product<T>("gemm_bias_gradient", q, true, false, a, dc, {T{1}, T{0}, {}, db});
  column_sums(q, dc, dbias);
}

/// As on_host::gemm_relu_backward for X = T; uses the queue's library if it has one.
template <class T, class X>
void gemm_relu_backward(const device_queue<cuda_device>& q, local::input_view<T> dc, local::input_view<T> b,
                        matrix_view<X> a, matrix_view<T> dz) {
  local::require_equal("gemm_relu_backward", "a", local::shape_of(a), "dz", local::shape_of(dz));
  gemm_detail::product<T>("gemm_relu_backward", q, false, true, dc, b, {T{1}, T{0}, {}, dz, a});
}

}  // namespace partita::on_cuda
