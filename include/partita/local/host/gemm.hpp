// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense matrix product: the queue's backend, or a register-tiled kernel on packed panels of op(b).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/gemm_backend.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/host/reductions.hpp"
#include "partita/local/host/vector.hpp"
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

/// to[p * Width + j] = op(b)(p, j), 0 for j >= cols.
template <int Width, class T>
inline void pack(const operand<T>& b, const T* from, local_index depth, local_index cols, T* to) {
  for (local_index p = 0; p < depth; ++p)
    for (local_index j = 0; j < Width; ++j)
      to[p * Width + j] = j < cols ? from[p * b.down + j * b.right] : T{0};
}

/// sum += factor b.
template <int Width, class T>
inline void add_multiple(T factor, const T* b, T (&sum)[Width]) {
  for (int j = 0; j < Width; ++j) sum[j] += factor * b[j];
}

/// c = alpha op(a) b + beta c for a tile of at most sizeof...(Row) rows and Width columns, with b packed. The
/// prefetch also keeps gcc from vectorising over p, and noinline from spilling: either would move the sums
/// out of registers.
template <int Width, class T, int... Row>
[[gnu::noinline]] void multiply_tile(const operand<T>& a, const T* from, local_index depth, const T* b,
                                     T alpha, T beta, const matrix_view<T>& c,
                                     std::integer_sequence<int, Row...>) {
  const T* const rows[] = {from + std::min<local_index>(Row, c.rows - 1) * a.down...};
  T sum[sizeof...(Row)][Width] = {}, done[sizeof...(Row)][Width];
  for (local_index p = 0; p < depth; ++p, b += Width) {
    __builtin_prefetch(b + 8 * Width);
    (add_multiple(rows[Row][p * a.right], b, sum[Row]), ...);
  }
  for (std::size_t i = 0; i < sizeof...(Row); ++i)
    for (int j = 0; j < Width; ++j) done[i][j] = alpha * sum[i][j];
  for (local_index i = 0; i < c.rows; ++i)
    for (local_index j = 0; j < c.cols; ++j) c(i, j) = done[i][j] + (beta == 0 ? T{0} : beta * c(i, j));
}

/// Tiled in Width columns. Each tile is computed by one thread, in a summation order that depends on the
/// shape only; `deepest` rows by `widest` columns of op(b) are packed at a time.
template <int Width, class T>
inline void multiply(const device_queue<host>& q, T alpha, const operand<T>& a, const operand<T>& b, T beta,
                     const matrix_view<T>& c, local_index k) {
  constexpr int height = vector_bytes == 64 ? 8 : vector_bytes == 32 ? 6 : 4;
  constexpr local_index deepest = 256, widest = 512 / sizeof(T);
  const local_index tiles = (c.rows - 1) / height + 1;
  run_rows(q.threads(), tiles, std::int64_t{height} * c.cols * k, [=](local_index begin, local_index end) {
    alignas(64) T panels[deepest * widest];
    for (local_index first = 0; first < c.cols; first += widest)
      for (local_index p = 0; p < k; p += deepest) {
        const local_index depth = std::min(deepest, k - p), cols = std::min(widest, c.cols - first);
        for (local_index j = 0; j < cols; j += Width)
          pack<Width>(b, b.at(p, first + j), depth, cols - j, panels + j * depth);
        for (local_index tile = begin; tile < end; ++tile)
          for (local_index i = tile * height, j = 0; j < cols; j += Width)
            multiply_tile<Width>(a, a.at(i, p), depth, panels + j * depth, alpha, p == 0 ? beta : T{1},
                                 c.block(i, first + j, std::min<local_index>(height, c.rows - i),
                                         std::min<local_index>(Width, cols - j)),
                                 std::make_integer_sequence<int, height>{});
      }
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
    constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));
    const gemm_detail::operand<T> left(a, ta), right(b, tb);
    n > lanes ? gemm_detail::multiply<2 * lanes>(q, alpha, left, right, beta, c, k)
              : gemm_detail::multiply<lanes>(q, alpha, left, right, beta, c, k);
  }
}

/// c(i, j) = act(sum_p a(i, p) b(p, j) + beta c(i, j) + bias[j]), with act a ReLU if `relu` is set. bias has
/// n elements or is null; beta = 0 overwrites c. a is (m, k), b is (k, n), c is (m, n) and must not alias a
/// or b. Uses the queue's backend, if any. Throws shape_error if the shapes do not match.
template <class T>
inline void gemm_bias_relu(const device_queue<host>& q, local::input_view<T> a, local::input_view<T> b,
                           const local::scalar<T>* bias, bool relu, local::scalar<T> beta, matrix_view<T> c) {
  gemm(q, false, false, T{1}, a, b, beta, c);
  if (bias == nullptr && !relu) return;
  elementwise_detail::assign(q, c, [=](local_index i, local_index j) {
    const T value = bias == nullptr ? c(i, j) : c(i, j) + bias[j];
    return relu && !(value > 0) ? T{0} : value;
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
