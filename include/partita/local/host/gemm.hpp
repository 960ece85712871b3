#pragma once
/// Dense times dense: the queue's backend, or blocks of c summed over chunks of the inner dimension in a
/// fixed order.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/local/host/gemm_backend.hpp"
#include "partita/local/host/gemm_tile.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/host/reductions.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace gemm_detail {

/// f(i) for the rows of c.
template <class T, class F>
void for_rows(const device_queue<host>& q, const matrix_view<T>& c, const F& f) {
  run_rows(q.threads(), c.rows, c.cols, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) f(i);
  });
}

template <class View>
int leading(const View& view) {
  return view.rows <= 1 ? std::max<int>(view.cols, 1)
                        : to_local(view.stride, "the stride of an operand of gemm");
}

/// The blocks of c and the chunks of the inner dimension: both depend on the shape alone.
template <class T>
struct grid {
  static constexpr int most_chunked = 64;
  static constexpr local_index chunk_depth = 4 * gemm_block<T>::depth;

  grid(local_index m, local_index n, local_index k)
      : across((n - 1) / gemm_block<T>::cols + 1),
        blocks(((m - 1) / gemm_block<T>::rows + 1) * across),
        chunk(blocks <= most_chunked ? chunk_depth : k),
        chunks((k - 1) / chunk + 1) {}

  int across;
  int blocks;
  local_index chunk;
  int chunks;
};

template <int Width, bool Ta, bool Tb, class T>
void panel_product(operand<Ta, T> a, operand<Tb, T> b, local_index rows, local_index depth, local_index cols,
                   T* panel, T* sum) {
  pack_panel<Width>(b, depth, std::min<local_index>(cols, Width), panel);
  multiply_panel<gemm_block<T>::tile_rows, Width>(a, rows, depth, panel, sum, gemm_block<T>::cols);
}

/// sum = op(a)(0:rows, 0:depth) op(b)(0:depth, 0:cols), rows and cols those of c.
template <bool Ta, bool Tb, class T>
void multiply_block(operand<Ta, T> a, operand<Tb, T> b, local_index depth, matrix_view<T> c, T* sum) {
  using block = gemm_block<T>;
  alignas(64) T panel[block::depth * block::tile_cols];
  std::fill_n(sum, static_cast<std::size_t>(c.rows) * block::cols, T{0});
  for (local_index p = 0; p < depth; p += block::depth) {
    const local_index d = std::min<local_index>(block::depth, depth - p);
    for (local_index j = 0; j < c.cols; j += block::tile_cols) {
      const local_index missing = c.cols - j;
      if (missing > block::lanes)
        panel_product<block::tile_cols>(a.block(0, p), b.block(p, j), c.rows, d, missing, panel, sum + j);
      else
        panel_product<block::lanes>(a.block(0, p), b.block(p, j), c.rows, d, missing, panel, sum + j);
    }
  }
}

template <class T>
void add(T alpha, const T* sum, T beta, matrix_view<T> c) {
  for (local_index i = 0; i < c.rows; ++i, sum += gemm_block<T>::cols)
    for (local_index j = 0; j < c.cols; ++j) c(i, j) = alpha * sum[j] + (beta == 0 ? T{0} : beta * c(i, j));
}

/// Chunks of one block of c are multiplied at once by several threads and added to c in turn.
template <bool Ta, bool Tb, class T>
void blocked(const device_queue<host>& q, T alpha, matrix_view<const T> a, matrix_view<const T> b, T beta,
             matrix_view<T> c, local_index k) {
  using block = gemm_block<T>;
  const grid<T> g(c.rows, c.cols, k);
  constexpr std::int64_t grain = 1 << 18;
  const std::int64_t work = std::int64_t{c.rows} * c.cols * k;
  const int threads = static_cast<int>(std::clamp<std::int64_t>(work / grain, 1, q.threads()));
  std::array<std::atomic<int>, grid<T>::most_chunked> turns{};
  run_tasks(threads, g.blocks * g.chunks, [&](int task) {
    const int chunk = task / g.blocks, at = task % g.blocks;
    const local_index row = at / g.across * block::rows, col = at % g.across * block::cols,
                      p = chunk * g.chunk;
    const matrix_view<T> part = c.block(row, col, std::min<local_index>(block::rows, c.rows - row),
                                        std::min<local_index>(block::cols, c.cols - col));
    alignas(64) T sum[block::rows * block::cols];
    multiply_block(operand<Ta, T>{a}.block(row, p), operand<Tb, T>{b}.block(p, col), std::min(g.chunk, k - p),
                   part, sum);
    if (g.chunks == 1) return add(alpha, sum, beta, part);
    std::atomic<int>& turn = turns[static_cast<std::size_t>(at)];
    for (int now; (now = turn.load()) != chunk;) turn.wait(now);
    add(alpha, sum, chunk == 0 ? beta : T{1}, part);
    turn.store(chunk + 1);
    turn.notify_all();
  });
}

}  // namespace gemm_detail

/// c = alpha op(a) op(b) + beta c, op(z) = z^T where ta (tb) is set; beta = 0 overwrites c, alpha = 0 does
/// not read a and b. op(a) is (m, k), op(b) is (k, n), c is (m, n) and neither a nor b. Uses the queue's
/// backend if it has one. Throws shape_error when the shapes do not fit.
template <class T>
void gemm(const device_queue<host>& q, bool ta, bool tb, std::type_identity_t<T> alpha,
          std::type_identity_t<matrix_view<const T>> a, std::type_identity_t<matrix_view<const T>> b,
          std::type_identity_t<T> beta, matrix_view<T> c) {
  const local_index m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols, n = tb ? b.rows : b.cols;
  local::require_equal("gemm", "c", local::shape_of(c), "op(a) op(b)", matrix_shape{m, n});
  local::require_equal("gemm", "op(a)", matrix_shape{m, k}, "the op(a) that op(b) needs",
                       matrix_shape{m, tb ? b.cols : b.rows});
  if (m == 0 || n == 0) return;
  if (k == 0 || alpha == 0) {
    run_rows(q.threads(), m, n, [=](local_index begin, local_index end) {
      for (local_index i = begin; i < end; ++i)
        for (local_index j = 0; j < n; ++j) c(i, j) = beta == 0 ? T{0} : beta * c(i, j);
    });
  } else if (const auto multiply = gemm_of<T>(q)) {
    multiply(q.threads(), ta, tb, m, n, k, alpha, a.data, gemm_detail::leading(a), b.data,
             gemm_detail::leading(b), beta, c.data, gemm_detail::leading(c));
  } else if (ta) {
    tb ? gemm_detail::blocked<true, true>(q, alpha, a, b, beta, c, k)
       : gemm_detail::blocked<true, false>(q, alpha, a, b, beta, c, k);
  } else {
    tb ? gemm_detail::blocked<false, true>(q, alpha, a, b, beta, c, k)
       : gemm_detail::blocked<false, false>(q, alpha, a, b, beta, c, k);
  }
}

/// c(i, j) = sum_p a(i, p) b(p, j) + beta c(i, j) + bias[j], cut at 0 where relu is set; bias counts where
/// it is not null, beta = 0 overwrites c. a is (m, k), b is (k, n), c is (m, n) and neither a nor b, bias
/// has n elements. Uses the queue's backend if it has one. Throws shape_error when the shapes do not fit.
template <class T>
void gemm_bias_relu(const device_queue<host>& q, std::type_identity_t<matrix_view<const T>> a,
                    std::type_identity_t<matrix_view<const T>> b, const std::type_identity_t<T>* bias,
                    bool relu, std::type_identity_t<T> beta, matrix_view<T> c) {
  gemm(q, false, false, T{1}, a, b, beta, c);
  if (bias == nullptr && !relu) return;
  gemm_detail::for_rows(q, c, [=](local_index i) {
    for (local_index j = 0; j < c.cols; ++j) {
      const T value = bias == nullptr ? c(i, j) : c(i, j) + bias[j];
      c(i, j) = relu && !(value > 0) ? T{0} : value;
    }
  });
}

/// The gradients of b and bias in c = a b + bias: db = a^T dc, dbias[j] = sum_i dc(i, j). a is (m, k), dc
/// is (m, n), db is (k, n) and neither a nor dc, dbias has n elements. Uses the queue's backend if it has
/// one. Throws shape_error when the shapes do not fit.
template <class T>
void gemm_bias_gradient(const device_queue<host>& q, std::type_identity_t<matrix_view<const T>> a,
                        std::type_identity_t<matrix_view<const T>> dc, matrix_view<T> db,
                        std::type_identity_t<T>* dbias) {
  gemm(q, true, false, T{1}, a, dc, T{0}, db);
  column_sums(q, dc, dbias);
}

/// The gradient of z in c = a b, a = relu(z): dz(i, p) = sum_j dc(i, j) b(p, j) where a(i, p) > 0, 0
/// elsewhere. dc is (m, n), b is (k, n), a and dz are (m, k); dz is neither dc nor b. Uses the queue's
/// backend if it has one. Throws shape_error when the shapes do not fit.
template <class T>
void gemm_relu_backward(const device_queue<host>& q, std::type_identity_t<matrix_view<const T>> dc,
                        std::type_identity_t<matrix_view<const T>> b,
                        std::type_identity_t<matrix_view<const T>> a, matrix_view<T> dz) {
  local::require_equal("gemm_relu_backward", "a", local::shape_of(a), "dz", local::shape_of(dz));
  gemm(q, false, true, T{1}, dc, b, T{0}, dz);
  gemm_detail::for_rows(q, dz, [=](local_index i) {
    for (local_index p = 0; p < dz.cols; ++p) dz(i, p) = a(i, p) > 0 ? dz(i, p) : T{0};
  });
}

}  // namespace partita::on_host
