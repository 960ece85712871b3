// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense matrix product: the queue's backend, or a register-tiled kernel on packed panels of op(b).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/gemm_backend.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/host/reductions.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace gemm_detail {

/// A possibly transposed operand: element (i, p) of op(z) is at data[i * down + p * right].
template <class T>
struct operand {
  operand(const matrix_view<const T>& z, bool transposed)
      : data(z.data), down(transposed ? 1 : z.row_stride), right(transposed ? z.row_stride : 1) {}

  const T* at(local_index i, local_index p) const { return data + i * down + p * right; }

  const T* data;
  std::ptrdiff_t down, right;
};

/// to[p * Width + j] = z(p, j) for p < depth, with zeros for j >= cols; `down` and `right` are the distances
/// of z's rows and columns.
template <int Width, class T>
inline void pack(const T* z, std::ptrdiff_t down, std::ptrdiff_t right, local_index depth, local_index cols,
                 T* to) {
  for (local_index p = 0; p < depth; ++p)
    for (local_index j = 0; j < Width; ++j) to[p * Width + j] = j < cols ? z[p * down + j * right] : T{0};
}

/// c = alpha a b + beta c for a tile of at most Height rows and Count vectors of Bytes, from packed panels of
/// a (depth x Height) and b (depth x Count vectors).
template <class T, int Bytes, int Height, int Count>
inline void multiply_tile(const T* a, const T* b, local_index depth, T alpha, T beta,
                          const matrix_view<T>& c) {
  constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
  using vector = typename vector_of<T, Bytes>::type;
  using place = typename vector_of<T, Bytes>::place;
  vector sum[Height][Count] = {};
  for (local_index p = 0; p < depth; ++p, a += Height, b += Count * lanes)
    for (int i = 0; i < Height; ++i)
      for (int v = 0; v < Count; ++v) sum[i][v] += a[i] * reinterpret_cast<const place*>(b)[v].value;
  T done[Height][Count * lanes];
  for (int i = 0; i < Height; ++i)
    for (int v = 0; v < Count; ++v) reinterpret_cast<place*>(done[i])[v].value = alpha * sum[i][v];
  for (local_index i = 0; i < c.rows; ++i)
    for (local_index j = 0; j < c.cols; ++j) c(i, j) = done[i][j] + (beta == 0 ? T{0} : beta * c(i, j));
}

/// Rows of c in tiles of `height`, each computed by one thread, in a summation order that depends on the
/// shape only; `deepest` rows by `widest` columns of op(b) are packed at a time.
template <instruction_set I, int Count>
struct row_tiles {
  static constexpr int bytes = register_bytes(I);
  static constexpr local_index height = I == instruction_set::avx512 ? 12
                                        : I == instruction_set::avx2 ? 6
                                                                     : 4;

  /// Tiles [begin, end).
  template <class T>
  void operator()(T alpha, const operand<T>& a, const operand<T>& b, T beta, const matrix_view<T>& c,
                  local_index k, local_index begin, local_index end) const {
    constexpr local_index deepest = 256, width = Count * bytes / sizeof(T), widest = 4 * width;
    alignas(64) T panels[deepest * widest], rows[deepest * height];
    for (local_index first = 0; first < c.cols; first += widest)
      for (local_index p = 0; p < k; p += deepest) {
        const local_index depth = std::min(deepest, k - p), cols = std::min(widest, c.cols - first);
        for (local_index j = 0; j < cols; j += width)
          pack<width>(b.at(p, first + j), b.down, b.right, depth, cols - j, panels + j * depth);
        for (local_index tile = begin; tile < end; ++tile) {
          const local_index i = tile * height, count = std::min(height, c.rows - i);
          pack<height>(a.at(i, p), a.right, a.down, depth, count, rows);
          for (local_index j = 0; j < cols; j += width)
            multiply_tile<T, bytes, height, Count>(rows, panels + j * depth, depth, alpha,
                                                   p == 0 ? beta : T{1},
                                                   c.block(i, first + j, count, std::min(width, cols - j)));
        }
      }
  }

  template <class T>
  static void multiply(const device_queue<host>& q, T alpha, const operand<T>& a, const operand<T>& b, T beta,
                       const matrix_view<T>& c, local_index k) {
    run_rows(q.threads(), (c.rows - 1) / height + 1, std::int64_t{height} * c.cols * k,
             [&](local_index begin, local_index end) {
               run_with<I>(row_tiles(), alpha, a, b, beta, c, k, begin, end);
             });
  }
};

template <class T>
inline void multiply(const device_queue<host>& q, T alpha, const operand<T>& a, const operand<T>& b, T beta,
                     const matrix_view<T>& c, local_index k) {
  with_instructions([&](auto i) {
    if (c.cols * static_cast<int>(sizeof(T)) > register_bytes(i))
      row_tiles<i, 2>::multiply(q, alpha, a, b, beta, c, k);
    else
      row_tiles<i, 1>::multiply(q, alpha, a, b, beta, c, k);
  });
}

}  // namespace gemm_detail

/// c = alpha op(a) op(b) + beta c, where op transposes a (b) if ta (tb) is set; beta = 0 overwrites c, alpha
/// = 0 does not read a and b. op(a) is (m, k), op(b) is (k, n), c is (m, n) and must not alias a or b. Uses
/// the queue's backend, if any. Throws shape_error if the shapes do not match.
template <class T>
inline void gemm(const device_queue<host>& q, bool ta, bool tb, local::scalar<T> alpha,
                 local::input_view<T> a, local::input_view<T> b, local::scalar<T> beta, matrix_view<T> c) {
  const auto [m, n, k] = local::gemm_sizes("gemm", ta, tb, a, b, c);
  if (m == 0 || n == 0) return;
  if (k == 0 || alpha == 0) {
    elementwise_detail::assign(
        q, c, [=](local_index i, local_index j) { return beta == 0 ? T{0} : beta * c(i, j); });
  } else if (const auto multiply = gemm_of<T>(q)) {
    multiply(q.threads(), ta, tb, m, n, k, alpha, a.data, local::leading_size(a), b.data,
             local::leading_size(b), beta, c.data, local::leading_size(c));
  } else {
    gemm_detail::multiply<T>(q, alpha, {a, ta}, {b, tb}, beta, c, k);
  }
}

/// c(i, j) = drop(act(sum_p a(i, p) b(p, j) + beta c(i, j) + bias[j])), with act a ReLU if `relu` is set.
/// bias has n elements or is null; beta = 0 overwrites c. a is (m, k), b is (k, n), c is (m, n) and must not
/// alias a or b. Uses the queue's backend, if any. Throws shape_error if the shapes do not match.
template <class T>
inline void gemm_bias_relu(const device_queue<host>& q, local::input_view<T> a, local::input_view<T> b,
                           const local::scalar<T>* bias, bool relu, local::scalar<T> beta, matrix_view<T> c,
                           const std::type_identity_t<local::block_dropout<T>>& drop = {}) {
  gemm(q, false, false, T{1}, a, b, beta, c);
  if (bias != nullptr || relu || drop.drops())
    elementwise_detail::assign_rows(q, c, [=](local_index i, T* row) {
      elementwise_detail::finish_row(bias, relu, drop, i, row, c.cols);
    });
}

/// Gradients of b and bias in c = a b + bias: db = a^T dc, dbias[j] = sum_i dc(i, j). a is (m, k), dc is (m,
/// n), db is (k, n) and must not alias a or dc, dbias has n elements. Uses the queue's backend, if any.
/// Throws shape_error if the shapes do not match.
template <class T>
inline void gemm_bias_gradient(const device_queue<host>& q, local::input_view<T> a, local::input_view<T> dc,
                               matrix_view<T> db, local::scalar<T>* dbias) {
  gemm(q, true, false, T{1}, a, dc, T{0}, db);
  column_sums(q, dc, dbias);
}

/// Gradient of z in c = a b, a = relu(z): dz(i, p) = sum_j dc(i, j) b(p, j) where a(i, p) > 0, else 0. dc is
/// (m, n), b is (k, n), a and dz are (m, k); dz must not alias dc or b. Uses the queue's backend, if any.
/// Throws shape_error if the shapes do not match.
template <class T>
inline void gemm_relu_backward(const device_queue<host>& q, local::input_view<T> dc, local::input_view<T> b,
                               local::input_view<T> a, matrix_view<T> dz) {
  local::require_equal("gemm_relu_backward", "a", local::shape_of(a), "dz", local::shape_of(dz));
  gemm(q, false, true, T{1}, dc, b, T{0}, dz);
  elementwise_detail::assign(q, dz,
                             [=](local_index i, local_index p) { return a(i, p) > 0 ? dz(i, p) : T{0}; });
}

}  // namespace partita::on_host
