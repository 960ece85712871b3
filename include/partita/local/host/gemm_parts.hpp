// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense products divided among threads.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "partita/local/host/parallel.hpp"

namespace partita::on_host {

/// C = alpha op(A) op(B) + beta C (m x n = m x k times k x n) on row-major blocks, with the conventions of
/// CBLAS; beta = 0 overwrites C. X: what A is stored as, T or base::bfloat16.
template <class T, class X = T>
struct gemm_call {
  bool transpose_a, transpose_b;
  int m, n, k;
  T alpha;
  const X* a;
  int lda;
  const T* b;
  int ldb;
  T beta;
  T* c;
  int ldc;

  /// Element (i, p) of op(A) is at a[i * a_down() + p * a_right()]; likewise op(B).
  std::ptrdiff_t a_down() const { return transpose_a ? 1 : lda; }
  std::ptrdiff_t a_right() const { return transpose_a ? lda : 1; }
  std::ptrdiff_t b_down() const { return transpose_b ? 1 : ldb; }
  std::ptrdiff_t b_right() const { return transpose_b ? ldb : 1; }

  /// Rows or columns [begin, end) of C.
  gemm_call rows(int begin, int end) const {
    gemm_call part = *this;
    part.m = end - begin;
    part.a += begin * a_down();
    part.c += std::ptrdiff_t{begin} * ldc;
    return part;
  }
  gemm_call columns(int begin, int end) const {
    gemm_call part = *this;
    part.n = end - begin;
    part.b += begin * b_right();
    part.c += begin;
    return part;
  }
  /// `to` = alpha times the terms [begin, end) of the sums, without gaps between its rows.
  gemm_call terms(int begin, int end, T* to) const {
    gemm_call part = *this;
    part.k = end - begin;
    part.a += begin * a_right();
    part.b += begin * b_down();
    part.beta = 0;
    part.c = to;
    part.ldc = n;
    return part;
  }
};

namespace gemm_detail {

/// Into how many pieces the sums are cut, if they have far more terms than C has rows and columns; else 1.
template <class T, class X>
inline int pieces_of(const gemm_call<T, X>& p) {
  constexpr std::int64_t terms = 4096, most = 32, elements = 1 << 20;
  if (p.k / 16 < std::max(p.m, p.n)) return 1;
  return static_cast<int>(
      std::max<std::int64_t>(1, std::min({most, p.k / terms, elements / (std::int64_t{p.m} * p.n)})));
}

template <class T, class X, class F>
inline void sum_pieces(int threads, const gemm_call<T, X>& p, int pieces, const F& serial) {
  const std::size_t size = static_cast<std::size_t>(p.m) * static_cast<std::size_t>(p.n);
  const auto sums = std::make_unique_for_overwrite<T[]>(size * static_cast<std::size_t>(pieces));
  const auto cut = [&](int piece) { return static_cast<int>(std::int64_t{p.k} * piece / pieces); };
  run_tasks(threads, pieces, [&](int piece) {
    serial(p.terms(cut(piece), cut(piece + 1), sums.get() + static_cast<std::size_t>(piece) * size));
  });
  for (int piece = 1; piece < pieces; ++piece)
    for (std::size_t i = 0; i < size; ++i) sums[i] += sums[static_cast<std::size_t>(piece) * size + i];
  for (int i = 0; i < p.m; ++i)
    for (int j = 0; j < p.n; ++j) {
      T& to = p.c[std::ptrdiff_t{i} * p.ldc + j];
      to = sums[static_cast<std::size_t>(i) * static_cast<std::size_t>(p.n) + static_cast<std::size_t>(j)] +
           (p.beta == 0 ? T{0} : p.beta * to);
    }
}

}  // namespace gemm_detail

/// What is done with rows of C that are complete: nothing.
struct leave_rows {
  void operator()(int, int) const {}
};

/// Computes a product on `threads` threads by calls of serial(gemm_call). Parts are rows of C, or columns
/// where these are more, in multiples of 24 or 64; or pieces of long sums, whose number depends on the shape
/// only and which are added in order. Where rows [begin, end) of C are complete, finish(begin, end) is
/// called, if rows are divided while they are in a cache. The sizes are not zero.
template <class T, class X, class F, class G = leave_rows>
inline void multiply_in_parts(int threads, const gemm_call<T, X>& p, const F& serial, const G& finish = {}) {
  constexpr int rows = 24, cols = 64, cached = 1 << 16;
  const int pieces = gemm_detail::pieces_of(p);
  if (pieces == 1 && p.m >= p.n) {
    const int panel = std::is_same_v<G, leave_rows> ? p.m : (cached / p.n / rows + 1) * rows;
    return run_rows(threads, (p.m - 1) / rows + 1, std::int64_t{rows} * p.n * p.k, [&](int begin, int end) {
      const int last = std::min(end * rows, p.m);
      for (int row = begin * rows, next; row < last; row = next) {
        next = panel < last - row ? row + panel : last;
        serial(p.rows(row, next));
        finish(row, next);
      }
    });
  }
  if (pieces > 1)
    gemm_detail::sum_pieces(threads, p, pieces, serial);
  else
    run_rows(threads, (p.n - 1) / cols + 1, std::int64_t{cols} * p.m * p.k,
             [&](int begin, int end) { serial(p.columns(begin * cols, std::min(end * cols, p.n))); });
  if constexpr (!std::is_same_v<G, leave_rows>) run_rows(threads, p.m, p.n, finish);
}

}  // namespace partita::on_host
