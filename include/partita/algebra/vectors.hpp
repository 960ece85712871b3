// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Vector operations for iterative methods, in any layout: inner products, norms and updates of a matrix,
/// either as one vector or column by column, for several right-hand sides.

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <span>
#include <type_traits>
#include <vector>

#include "partita/algebra/elementwise.hpp"
#include "partita/local/chunked_sums.hpp"

namespace partita {

namespace algebra::detail {

/// y(i, j) + alpha[j] x(i, j), for a block of x.
template <class T>
struct plus_scaled_column {
  const T* alpha;
  matrix_view<const T> x;

  constexpr T operator()(local_index i, local_index j, T y) const { return y + alpha[j] * x(i, j); }
};

/// The range of sums of squares whose square roots are taken directly, and the powers of 2 that scale numbers
/// outside it so that all squares that matter are normal numbers (Blue, ACM TOMS 4, 1978).
template <class T>
struct square_range {
  static constexpr bool wide = std::is_same_v<T, double>;
  static constexpr T least = static_cast<T>(wide ? 0x1p-900 : 0x1p-100);
  static constexpr T down = static_cast<T>(wide ? 0x1p-600 : 0x1p-90);
  static constexpr T up = static_cast<T>(wide ? 0x1p600 : 0x1p95);

  /// The scale for numbers with this sum of squares. 1 for NaN.
  static T factor(T squares) { return std::isinf(squares) ? down : squares < least ? up : T(1); }
};

struct square_root {
  template <class T>
  constexpr T operator()(T x) const {
    return std::sqrt(x);
  }
};

template <class X, class Y>
void require_one_number_per_column(const char* what, const X& x, const Y& numbers) {
  if (numbers.shape() != matrix_shape{1, x.shape().cols})
    base::throw_error<shape_error>({what, " of ", x.shape(), " needs one number per column in a matrix of ",
                                    matrix_shape{1, x.shape().cols}, ", not of ", numbers.shape()});
}

}  // namespace algebra::detail

/// The sum over i and j of x(i, j) y(i, j), on every rank; accumulated in double precision on each rank.
///
/// X and Y are n x f. Collective over the mesh. What travels: an all-reduce of one element over the ranks
/// that own different blocks. Throws shape_error unless x and y have the same layout and blockings.
template <class T, layout X, layout Y, class Device>
T dot(const dense<T, X, Device>& x, const dense<T, Y, Device>& y,
      std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  algebra::detail::require_same_blocks("dot", x, y);
  T total[] = {local::chunked::dot(x.mesh().queue(), x.local(), y.local())};
  if (const auto& group = x.mesh().control(x.layout().used()); group.size() > 1) group.all_reduce(total);
  return total[0];
}

/// products(0, j) = sum over i of x(i, j) y(i, j): the inner products of the columns.
///
/// X and Y are n x f with the same blockings; `products` is 1 x f, on every rank. Collective over the mesh.
/// What travels: an all-reduce of f elements over the ranks that own different blocks. Throws shape_error.
template <class T, layout X, layout Y, class Device>
void dot(const dense<T, X, Device>& x, const dense<T, Y, Device>& y, dense<T, replicated, Device>& products,
         std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  algebra::detail::require_same_blocks("dot", x, y);
  algebra::detail::require_one_number_per_column("dot", x, products);
  const auto& q = x.mesh().queue();
  fill(q, T(0), products.local());
  local::chunked::column_dots(q, x.local(), y.local(), products.local().data + x.col_range().begin);
  x.mesh().sum_along(x.layout().used(), products.values());
}

/// The Frobenius norm, sqrt(sum over i and j of x(i, j)^2); for n x 1 the Euclidean norm. As dot(x, x); if
/// that is infinite or close to 0, computed again from a scaled copy of x, so only a norm beyond the range of
/// T is infinite.
template <class T, layout X, class Device>
T norm(const dense<T, X, Device>& x, std::source_location where = std::source_location::current()) {
  memory::refuse_reproducible(x.mesh().queue(), "norm");
  const T squares = dot(x, x, where);
  const T factor = algebra::detail::square_range<T>::factor(squares);
  if (factor == T(1) || x.shape().rows * x.shape().cols == 0) return std::sqrt(squares);
  dense<T, X, Device> y(x.mesh(), x.layout(), x.row_blocking(), x.col_blocking());
  transform(x, y, partita::base::scaled<T>{factor});
  return std::sqrt(dot(y, y, where)) / factor;
}

/// norms(0, j) = sqrt(sum over i of x(i, j)^2): the Euclidean norms of the columns. As dot(x, x, norms),
/// scaled column by column as in the norm above.
template <class T, layout X, class Device>
void norm(const dense<T, X, Device>& x, dense<T, replicated, Device>& norms,
          std::source_location where = std::source_location::current()) {
  algebra::detail::require_one_number_per_column("norm", x, norms);
  memory::refuse_reproducible(x.mesh().queue(), "norm");
  dot(x, x, norms, where);
  const auto& q = x.mesh().queue();
  std::vector<T> factors(norms.values().size());
  copy(q, std::span<const T>(norms.values()), std::span<T>(factors));
  std::ranges::transform(factors, factors.begin(), algebra::detail::square_range<T>::factor);
  if (x.shape().rows == 0 || std::ranges::count(factors, T(1)) == std::ssize(factors))
    return transform(norms, norms, algebra::detail::square_root{});
  dense<T, replicated, Device> factor(x.mesh(), norms.shape());
  copy(q, std::span<const T>(factors), factor.values());
  dense<T, X, Device> y(x.mesh(), x.layout(), x.row_blocking(), x.col_blocking());
  transform_columns(x, factor, y, std::multiplies<>());
  dot(y, y, norms, where);
  transform(norms, norms, algebra::detail::square_root{});
  zip(norms, factor, norms, std::divides<>());
}

/// y(i, j) += alpha x(i, j). X and Y are n x f. Local; no communication. Throws shape_error unless x and y
/// have the same layout and blockings.
template <class T, layout X, layout Y, class Device>
void axpy(std::type_identity_t<T> alpha, const dense<T, X, Device>& x, dense<T, Y, Device>& y) {
  algebra::detail::require_same_blocks("axpy", x, y);
  local::chunked::zip(x.mesh().queue(), base::linear_combination<T>{alpha, 1}, x.local(), y.local(),
                      y.local());
}

/// y(i, j) += alpha(0, j) x(i, j), with one factor per column. X and Y are n x f, alpha is 1 x f, on every
/// rank. Local; no communication. Throws shape_error.
template <class T, layout X, layout Y, class Device>
void axpy(const dense<T, replicated, Device>& alpha, const dense<T, X, Device>& x, dense<T, Y, Device>& y) {
  algebra::detail::require_same_blocks("axpy", x, y);
  algebra::detail::require_one_number_per_column("axpy", x, alpha);
  const auto& q = y.mesh().queue();
  const T* const factors = alpha.local().data + x.col_range().begin;
  local::by_rows(
      q, "rows: indexed transform",
      [&](local_index, matrix_view<const T> from, matrix_view<T> to) {
        transform_indexed(q, algebra::detail::plus_scaled_column<T>{factors, from}, to, to);
      },
      local::reads(x.local()), local::updates(y.local()));
}

/// y(i, j) *= factors(0, j), with one factor per column. Y is n x f, `factors` is 1 x f, on every rank.
/// Local; no communication. Throws shape_error.
template <class T, layout Y, class Device>
void scale_columns(const dense<T, replicated, Device>& factors, dense<T, Y, Device>& y) {
  transform_columns(y, factors, y, std::multiplies<>());
}

}  // namespace partita
