// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense products by register tiles on packed panels of op(B).

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "partita/local/host/gemm_parts.hpp"
#include "partita/local/host/instructions.hpp"

namespace partita::on_host {

namespace gemm_detail {

/// to[p * width + j] = z(p, j) for p < depth, with zeros for j in [cols, width); `down` and `right` are the
/// distances of z's rows and columns. Rows ahead are prefetched. X: T, or what is widened to it.
template <int Bytes, class T, class X>
inline void pack(const X* z, std::ptrdiff_t down, std::ptrdiff_t right, int depth, int cols, int width,
                 T* to) {
  using place = typename vector_of<T, Bytes>::place;
  constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
  constexpr int ahead = 48;
  const int whole = right == 1 ? cols / lanes * lanes : 0;
  for (int p = 0; p < depth; ++p) {
    const X* const from = z + p * down;
    const X* const later = z + std::min(p + ahead, depth - 1) * down;
    for (int j = 0; j < whole; j += lanes) {
      __builtin_prefetch(later + j);
      if constexpr (std::is_same_v<X, T>)
        *reinterpret_cast<place*>(to + p * width + j) = *reinterpret_cast<const place*>(from + j);
      else
        for (int lane = j; lane < j + lanes; ++lane) to[p * width + lane] = T{from[lane]};
    }
  }
  for (int j = whole; j < width; ++j)
    for (int p = 0; p < depth; ++p) to[p * width + j] = j < cols ? T{z[p * down + j * right]} : T{0};
}

/// Rows of op(A): element (i, p) is at data[i * down + p * right].
template <class T>
struct left_rows {
  const T* data;
  std::ptrdiff_t down, right;

  left_rows from(int row) const { return {data + row * down, down, right}; }
};

/// Rows and columns of C; row i begins at data[i * stride].
template <class T>
struct target {
  T* data;
  std::ptrdiff_t stride;
  int rows, cols;
};

inline constexpr int most_depth = 256;

/// Height rows and Count vectors of C.
template <class T, int Bytes, int Height, int Count>
struct tile {
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(T)), width = Count * lanes;
  using vector = typename vector_of<T, Bytes>::type;
  using place = typename vector_of<T, Bytes>::place;

  /// c = alpha a b + beta c, where c may be a part of the tile, with a panel of op(B). Rows of a that are not
  /// there are not read.
  static void multiply(const left_rows<T>& a, const T* panel, int depth, T alpha, T beta,
                       const target<T>& c) {
    if (c.rows == Height && c.cols == width) return whole(a, panel, depth, alpha, beta, c);
    T packed[Height * most_depth], done[Height * width];
    if (c.rows < Height) pack<16>(a.data, a.right, a.down, depth, c.rows, Height, packed);
    whole(c.rows < Height ? left_rows<T>{packed, 1, Height} : a, panel, depth, alpha, T{0},
          {done, width, Height, width});
    for (int i = 0; i < c.rows; ++i)
      for (int j = 0; j < c.cols; ++j) {
        T& to = c.data[i * c.stride + j];
        to = done[i * width + j] + (beta == 0 ? T{0} : beta * to);
      }
  }

 private:
  static void whole(left_rows<T> a, const T* panel, int depth, T alpha, T beta, const target<T>& c) {
    for (int i = 0; i < Height; ++i)
      for (int v = 0; v < Count; ++v) __builtin_prefetch(c.data + i * c.stride + v * lanes, 1);
    vector sum[Height][Count] = {};
    for (int p = 0; p < depth; ++p, a.data += a.right, panel += width)
      for (int i = 0; i < Height; ++i)
        for (int v = 0; v < Count; ++v)
          sum[i][v] += a.data[i * a.down] * reinterpret_cast<const place*>(panel)[v].value;
    for (int i = 0; i < Height; ++i)
      for (int v = 0; v < Count; ++v) {
        place& to = reinterpret_cast<place*>(c.data + i * c.stride)[v];
        sum[i][v] *= alpha;
        if (beta != 0) sum[i][v] += beta * to.value;
        to.value = sum[i][v];
      }
  }
};

/// Products on one thread, in a summation order that depends on the shape only. Panels of op(B) are packed;
/// rows of op(A) are read where they are, or packed as well where they are columns of A, or no numbers of T.
template <instruction_set I, class T>
struct tiles {
  static constexpr int bytes = register_bytes(I), lanes = bytes / static_cast<int>(sizeof(T));
  static constexpr int most = I == instruction_set::avx512 ? 4 : 2, panel = most * lanes, cols = 2 * panel;
  static constexpr int rows = 24;

  template <class X>
  void operator()(const gemm_call<T, X>& p) const {
    alignas(64) T right[most_depth * cols], left[most_depth * rows];
    for (int k = 0; k < p.k; k += most_depth)
      for (int j = 0; j < p.n; j += cols) {
        const int depth = std::min(most_depth, p.k - k), end = std::min(j + cols, p.n);
        for (int at = j; at < end; at += panel)
          pack<bytes>(p.b + k * p.b_down() + at * p.b_right(), p.b_down(), p.b_right(), depth,
                      std::min(panel, end - at), width_of(end - at), right + (at - j) * depth);
        for (int i = 0; i < p.m; i += rows) {
          const int count = std::min(rows, p.m - i);
          const X* const from = p.a + i * p.a_down() + k * p.a_right();
          left_rows<T> a{left, 1, rows};
          if (p.transpose_a)
            pack<std::min(bytes, 32)>(from, p.a_right(), p.a_down(), depth, count, rows, left);
          else if constexpr (std::is_same_v<X, T>)
            a = {from, p.a_down(), 1};
          else
            a = widened(from, p.a_down(), count, depth, left);
          const T beta = k == 0 ? p.beta : T{1};
          for (int at = j; at < end; at += panel)
            multiply_rows<most>(
                a, right + (at - j) * depth, depth, p.alpha, beta,
                {p.c + std::ptrdiff_t{i} * p.ldc + at, p.ldc, count, std::min(panel, end - at)});
        }
      }
  }

 private:
  /// Rows of A, as T in `to`.
  template <class X>
  static left_rows<T> widened(const X* from, std::ptrdiff_t down, int count, int depth, T* to) {
    for (int i = 0; i < count; ++i)
      for (int p = 0; p < depth; ++p) to[i * depth + p] = T{from[i * down + p]};
    return {to, depth, 1};
  }
  /// Of a panel of so many columns, in whole vectors.
  static int width_of(int columns) { return std::min((columns + lanes - 1) / lanes, most) * lanes; }

  /// c = alpha a b + beta c, where b has at most Count vectors.
  template <int Count>
  static void multiply_rows(const left_rows<T>& a, const T* right, int depth, T alpha, T beta,
                            const target<T>& c) {
    if constexpr (Count > 1)
      if (c.cols <= (Count - 1) * lanes) return multiply_rows<Count - 1>(a, right, depth, alpha, beta, c);
    constexpr int height = Count < most ? 8 : I == instruction_set::baseline ? 4 : 6;
    for (int i = 0; i < c.rows; i += height)
      tile<T, bytes, height, Count>::multiply(
          a.from(i), right, depth, alpha, beta,
          {c.data + i * c.stride, c.stride, std::min(height, c.rows - i), c.cols});
  }
};

}  // namespace gemm_detail

/// A product on `threads` threads, by kernels in the instruction set that the machine has, and `finish` as in
/// multiply_in_parts.
template <class T, class X, class F = leave_rows>
inline void multiply_tiles(int threads, const gemm_call<T, X>& p, const F& finish = {}) {
  with_instructions([&](auto i) {
    constexpr instruction_set chosen = decltype(i)::value;
    const auto serial = [](const gemm_call<T, X>& part) {
      run_with<chosen>(gemm_detail::tiles<chosen, T>(), part);
    };
    if constexpr (std::is_same_v<F, leave_rows>)
      multiply_in_parts(threads, p, serial);
    else
      multiply_in_parts(threads, p, serial,
                        [&](int begin, int end) { run_with<chosen>(finish, begin, end); });
  });
}

}  // namespace partita::on_host
