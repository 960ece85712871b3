// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Product with the transpose of a CSR block, without an index of its columns: each row of x is scattered to
/// the rows of y that the entries of its row name. Threads own disjoint parts of y, in strips of columns and
/// in ranges of rows, which are consecutive entries in every row of the block; sums are in the order of the
/// block's rows whatever the number of threads.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace scatter_detail {

/// Columns of x that are kept in registers.
template <class T>
inline constexpr int widest = 256 / static_cast<int>(sizeof(T));

/// A rectangle of y.
struct part {
  local_index row_begin, row_end, col_begin, col_end;
};

/// X: what x is stored as, T or base::bfloat16.
template <class T, class X = T>
struct product {
  local::csr_view<T> a;
  matrix_view<const X> x;
  T alpha, beta;
  matrix_view<T> y;

  void operator()(const part& where) const;
};

/// Adds `count` <= Width columns from `first` on of rows [begin, end) of x, scaled by the entries, to the
/// rows [where.row_begin, where.row_end) of y.
template <int Width, class T, class X>
inline void strip(local_index count, const product<T, X>& p, const part& where, local_index begin,
                  local_index end, local_index first) {
  if constexpr (Width > 1)
    if (count <= Width / 2) return strip<Width / 2>(count, p, where, begin, end, first);
  constexpr std::ptrdiff_t ahead = 16;
  const T* const values = p.a.values;
  const T* const factors = p.a.column_factors;
  const bool all_rows = where.row_begin == 0 && where.row_end == p.a.cols;
  for (local_index i = begin; i < end; ++i) {
    const local_index* entry = p.a.columns + p.a.offsets[i];
    const local_index* stop = p.a.columns + p.a.offsets[i + 1];
    if (!all_rows) {
      entry = std::lower_bound(entry, stop, where.row_begin);
      stop = std::lower_bound(entry, stop, where.row_end);
    }
    T from[Width] = {};
    const T scale = p.a.row_factors == nullptr ? p.alpha : p.alpha * p.a.row_factors[i];
    for (local_index j = 0; j < count; ++j) from[j] = scale * p.x(i, first + j);
    for (; entry < stop; ++entry) {
      if (stop - entry > ahead) prefetch(p.y.row_data(entry[ahead]) + first, count);
      const T value = values != nullptr    ? values[entry - p.a.columns]
                      : factors != nullptr ? factors[*entry]
                                           : T(1);
      T* const to = p.y.row_data(*entry) + first;
      if (count == Width)
        for (local_index j = 0; j < Width; ++j) to[j] += value * from[j];
      else
        for (local_index j = 0; j < count; ++j) to[j] += value * from[j];
    }
  }
}

template <class T, class X>
inline void product<T, X>::operator()(const part& where) const {
  for (local_index i = where.row_begin; i < where.row_end && beta != 1; ++i)
    for (local_index j = where.col_begin; j < where.col_end; ++j) y(i, j) = beta == 0 ? T{0} : beta * y(i, j);
  for (local_index i = 0; i < a.rows; i += row_block) {
    const local_index end = std::min(i + row_block, a.rows);
    for (local_index first = where.col_begin; first < where.col_end; first += widest<T>)
      strip<widest<T>>(std::min<local_index>(widest<T>, where.col_end - first), *this, where, i, end, first);
  }
}

template <class T, class X>
inline void multiply(const device_queue<host>& q, const local::csr_view<T>& a, const matrix_view<const X>& x,
                     T alpha, T beta, const matrix_view<T>& y) {
  memory::refuse_reproducible(q, "spmm_transposed");
  local::require_product("spmm_transposed", matrix_shape{a.cols, a.rows}, x, y, "a^T x");
  constexpr std::int64_t grain = 16384;
  constexpr local_index line = 64 / sizeof(T);
  const std::int64_t work = (std::int64_t{a.nonzeros()} + a.cols) * y.cols;
  const auto threads = static_cast<local_index>(std::clamp<std::int64_t>(work / grain, 1, q.threads()));
  const local_index strips = std::clamp<local_index>(y.cols / line, 1, threads);
  const local_index ranges = (threads + strips - 1) / strips;
  const auto cut = [](local_index size, local_index number, local_index count) {
    return static_cast<local_index>(std::int64_t{size} * number / count);
  };
  const product<T, X> p{a, x, alpha, beta, y};
  with_instructions([&](auto instructions) {
    run_tasks(q.threads(), static_cast<int>(strips * ranges), [&](int task) {
      const local_index s = task % strips, r = task / strips;
      run_with<instructions>(p, part{cut(y.rows, r, ranges), cut(y.rows, r + 1, ranges),
                                     cut(y.cols, s, strips), cut(y.cols, s + 1, strips)});
    });
  });
}

}  // namespace scatter_detail

/// y = alpha a^T x + beta y; beta = 0 overwrites y. a is (m, k), its columns ascending in each row; x is (m,
/// f), y is (k, f) and must not alias x. Throws shape_error if the shapes do not match.
template <class T>
inline void spmm_transposed(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                            local::scalar<T> alpha, local::scalar<T> beta, matrix_view<T> y) {
  scatter_detail::multiply(q, a, x, alpha, beta, y);
}
/// The same for x stored as bfloat16: with the bits of spmm_transposed for the floats that these are.
template <std::same_as<float> T>
inline void spmm_transposed(const device_queue<host>& q, local::input_csr<T> a,
                            matrix_view<const base::bfloat16> x, local::scalar<T> alpha,
                            local::scalar<T> beta, matrix_view<T> y) {
  scatter_detail::multiply(q, a, x, alpha, beta, y);
}

}  // namespace partita::on_host
