// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Orthonormal columns: X = Q R of matrices with many rows and few columns. Needs partita::lapack.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/finite.hpp"
#include "partita/algebra/gram.hpp"
#include "partita/algebra/sum_along.hpp"
#include "partita/local/lapack/small.hpp"

namespace partita {

namespace algebra {

/// X = Q R, with Q (n x f) in the layout of X and R (f x f) on every rank.
template <class T, layout L, class Device>
struct qr_factors {
  dense<T, L, Device> q;
  dense<T, replicated, Device> r;
};

}  // namespace algebra

namespace algebra::detail {

/// This rank's block of x, in ordinary memory.
template <class T, layout L, class Device>
std::vector<T> values_of(const dense<T, L, Device>& x) {
  std::vector<T> values(x.values().size());
  copy(x.mesh().queue(), x.values(), std::span<T>(values));
  return values;
}

/// Uninitialised, like x.
template <class T, layout L, class Device>
dense<T, L, Device> shaped_like(const dense<T, L, Device>& x) {
  return {x.mesh(), x.layout(), x.row_blocking(), x.col_blocking()};
}

/// sqrt(sum of (x(i, j) - shift delta(i, j))^2).
template <class T>
T norm_of(matrix_view<const T> x, T shift = 0) {
  T sum = 0;
  for (local_index i = 0; i < x.rows; ++i)
    for (local_index j = 0; j < x.cols; ++j) {
      const T v = x(i, j) - (i == j ? shift : T(0));
      sum += v * v;
    }
  return std::sqrt(sum);
}

/// R of G = R^T R, and its inverse (f x f). Both are NaN if G is not positive definite.
template <class T, class Device>
struct cholesky_factor {
  explicit cholesky_factor(const dense<T, replicated, Device>& gram)
      : r(shaped_like(gram)), inverse(shaped_like(gram)) {
    const auto f = static_cast<local_index>(gram.shape().cols);
    std::vector<T> upper = values_of(gram);  // (f, f)
    const matrix_view<T> of_r{upper.data(), f, f, f};
    bool usable = lapack::cholesky(of_r);
    std::vector<T> inverted = upper;  // (f, f)
    const matrix_view<T> of_inverse{inverted.data(), f, f, f};
    usable = usable && lapack::invert_upper(of_inverse);
    if (!usable)
      for (std::vector<T>* v : {&upper, &inverted})
        std::fill(v->begin(), v->end(), std::numeric_limits<T>::quiet_NaN());
    condition = norm_of<T>(of_r) * norm_of<T>(of_inverse);
    copy(gram.mesh().queue(), std::span<const T>(upper), r.values());
    copy(gram.mesh().queue(), std::span<const T>(inverted), inverse.values());
  }

  dense<T, replicated, Device> r, inverse;
  T condition;  ///< of R, in the Frobenius norm
};

/// X = Q R of an X of whole rows by two Cholesky factorisations of Gram matrices. Returns false, with q and
/// r unspecified, if X is too ill-conditioned for that.
///
/// The Gram matrix G of the first Q decides: if ||G - I||_F <= 5/64, the second Q is orthonormal to working
/// precision. G is the same on every rank, and so is the answer; a rank whose first factorisation failed
/// makes G NaN. Source: Yamamoto et al., ETNA 44 (2015).
template <class T, layout L, class Device>
bool cholesky_qr(const dense<T, L, Device>& x, dense<T, L, Device>& q, dense<T, replicated, Device>& r) {
  const auto multiply = [&](T alpha, const auto& a, const auto& b, T beta, auto& c) {
    local::chunked::gemm(x.mesh().queue(), false, false, alpha, a.local(), b.local(), beta, c.local());
  };
  const cholesky_factor<T, Device> first(gram(x));
  dense<T, L, Device> q1 = shaped_like(x);  // (n, f)
  multiply(1, x, first.inverse, 0, q1);
  // A product with R^-1 loses digits as R's condition number grows; one step of refinement regains them.
  if (first.condition > T(10) * static_cast<T>(x.shape().cols)) {
    copy(x, q);
    multiply(-1, q1, first.r, 1, q);
    multiply(1, q, first.inverse, 1, q1);
  }
  const dense<T, replicated, Device> g = gram(q1);  // (f, f)
  const auto f = static_cast<local_index>(x.shape().cols);
  const std::vector<T> of_g = values_of(g);
  if (!(norm_of<T>({of_g.data(), f, f, f}, 1) <= T(5) / 64)) return false;
  const cholesky_factor<T, Device> second(g);
  multiply(1, q1, second.inverse, 0, q);
  multiply(1, second.r, first.r, 0, r);
  return true;
}

/// What the first rank of a group answers to the others' triangles, stacked (sum of heights, f): for each
/// rank its rows of Q (height, f), then R (f, f) with a diagonal that is not negative. All NaN if an operand
/// or R is not finite.
template <class T>
std::vector<T> stacked_qr(std::vector<T> stacked, const std::vector<local_index>& heights, local_index f) {
  const local_index rows = std::accumulate(heights.begin(), heights.end(), local_index{0});
  std::vector<T> triangle(static_cast<std::size_t>(f) * static_cast<std::size_t>(f));  // (f, f)
  const matrix_view<T> q{stacked.data(), rows, f, f}, r{triangle.data(), f, f, f};
  if (all_finite(stacked))
    lapack::qr(q, r);
  else
    std::fill(triangle.begin(), triangle.end(), std::numeric_limits<T>::quiet_NaN());
  for (local_index j = 0; j < f; ++j) {
    if (!(r(j, j) < 0)) continue;
    for (local_index k = j; k < f; ++k) r(j, k) = -r(j, k);
    for (local_index i = 0; i < rows; ++i) q(i, j) = -q(i, j);
  }
  std::vector<T> answers;
  auto from = stacked.begin();
  for (const local_index height : heights) {
    const auto end = from + static_cast<std::ptrdiff_t>(height) * f;
    answers.insert(answers.end(), from, end);
    answers.insert(answers.end(), triangle.begin(), triangle.end());
    from = end;
  }
  return answers;
}

/// X = Q R of an X of whole rows by Householder reflections: of each rank's rows and then, on the first rank
/// of the group, of their triangles. Throws error, on every rank, if R is not finite. Source: Demmel et al.,
/// SIAM J. Sci. Comput. 34 (2012), with one level.
template <class T, layout L, class Device>
void householder_qr(const dense<T, L, Device>& x, dense<T, L, Device>& q, dense<T, replicated, Device>& r) {
  const auto& m = x.mesh();
  const auto& queue = m.queue();
  const axis_set cut = x.layout().used();
  const communicator& group = m.control(cut);
  const local_index rows = x.local().rows, f = x.local().cols;
  std::vector<local_index> heights;
  for (const interval block : pieces_along(m, cut, x.row_blocking(), cut))
    heights.push_back(static_cast<local_index>(std::min<global_index>(block.size(), f)));
  const auto me = static_cast<std::size_t>(group.rank());
  const local_index k = heights[me];

  std::vector<T> of_q = values_of(x);                                              // (n/p, f)
  std::vector<T> of_r(static_cast<std::size_t>(k) * static_cast<std::size_t>(f));  // (k, f)
  const matrix_view<T> block{of_q.data(), rows, f, f}, triangle{of_r.data(), k, f, f};
  if (all_finite(of_q))
    lapack::qr(block, triangle);
  else
    std::fill(of_r.begin(), of_r.end(), std::numeric_limits<T>::quiet_NaN());

  const bool is_first = group.rank() == 0;
  std::vector<global_index> to_first(heights.size(), 0), from_each = to_first, to_each = to_first,
                                                         from_first = to_first;
  to_first[0] = global_index{k} * f;
  from_first[0] = global_index{k + f} * f;
  for (std::size_t p = 0; is_first && p < heights.size(); ++p) {
    from_each[p] = global_index{heights[p]} * f;
    to_each[p] = global_index{heights[p] + f} * f;
  }
  std::vector<T> stacked = group.all_to_all(of_r, to_first, from_each);  // (sum of heights, f), or nothing
  std::vector<T> answers;
  if (is_first) answers = stacked_qr(std::move(stacked), heights, f);
  const std::vector<T> answer = group.all_to_all(answers, to_each, from_first);  // (k + f, f)
  const auto second = std::span(answer).first(of_r.size()),                      // (k, f)
      whole_r = std::span(answer).subspan(of_r.size());                          // (f, f)
  if (!all_finite(whole_r))
    base::throw_error<error>(
        {"qr: X of ", x.shape(), " has elements that are not finite, or columns whose norms overflow"});

  buffer<T, Device> right(queue, second.size());  // (k, f)
  dense<T, L, Device> left = shaped_like(x);      // (n, f)
  copy(queue, second, right.span());
  copy(queue, std::span<const T>(of_q), left.values());
  copy(queue, whole_r, r.values());
  const matrix_view<const T> tall = std::as_const(left).local(), low{right.data(), k, f, f};
  gemm(queue, false, false, T(1), tall.block(0, 0, rows, k), low, T(0), q.local());
}

template <class T, layout L, class Device>
algebra::qr_factors<T, L, Device> qr_of_rows(const dense<T, L, Device>& x) {
  const global_index f = x.shape().cols;
  algebra::qr_factors<T, L, Device> result{shaped_like(x),
                                           dense<T, replicated, Device>(x.mesh(), matrix_shape{f, f})};
  if (!cholesky_qr(x, result.q, result.r)) householder_qr(x, result.q, result.r);
  return result;
}

}  // namespace algebra::detail

/// X = Q R: Q (n x f) with orthonormal columns in the layout of X, R (f x f) upper triangular with a positive
/// diagonal on every rank; `auto [q, r] = qr(x)`. Where X's rank is less than f, R has diagonal elements near
/// or equal to 0, none negative, and Q is orthonormal nevertheless.
///
/// X is n x f, n >= f. By Cholesky factorisations of Gram matrices, all on the device; where those fail, for
/// condition numbers above 1e7 (float: 1e3) and where squares overflow or vanish, by Householder reflections
/// through LAPACK. The latter compute R on one rank; the former on every rank from the same numbers, so R is
/// the same bit for bit on ranks with the same processor and LAPACK.
///
/// Collective over the mesh. What travels, with p ranks that own different rows and k = min(f, rows of a
/// rank): two all-reduces of f^2 elements; with Householder reflections also k f elements from each rank to
/// the first of the p, and (k + f) f elements back. If the columns of X are partitioned, X is redistributed
/// to full-width rows first and Q back. Throws shape_error naming the shape if n < f; error, on every rank,
/// if X has elements that are not finite. Sources: Yamamoto et al., ETNA 44 (2015), CholeskyQR2; Demmel et
/// al., SIAM J. Sci. Comput. 34 (2012), TSQR.
template <class T, layout L, class Device>
algebra::qr_factors<T, L, Device> qr(const dense<T, L, Device>& x,
                                     std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  if (x.shape().rows < x.shape().cols)
    base::throw_error<shape_error>(
        {"qr needs an X with at least as many rows as columns, not of ", x.shape()});
  if (x.layout().cols.empty()) return algebra::detail::qr_of_rows(x);
  auto wide = algebra::detail::qr_of_rows(redistribute(x, partition::full_width(x.layout())));
  return {dense<T, L, Device>(redistribute(wide.q, x.layout())), std::move(wide.r)};
}

}  // namespace partita
