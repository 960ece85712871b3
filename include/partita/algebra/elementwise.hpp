// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Element-wise functions, in any layout. Local; no communication. On the host f may be a lambda; the
/// requirements for device functions are in base/function.hpp.

#include <type_traits>

#include "partita/local/chunked.hpp"
#include "partita/matrix/dense.hpp"

namespace partita {

namespace algebra {

/// Whether matrices used in computations in T may be stored as S: T itself, or base::bfloat16 for float,
/// where products have the same bits as if its numbers were stored as floats. Kernels of a reproducible mesh
/// reject base::bfloat16.
template <class S, class T, class Device>
concept stored_as = std::is_same_v<S, T> ||
    (std::is_same_v<S, base::bfloat16>&& std::is_same_v<T, float>&& local::stores_bfloat16<Device>);

}  // namespace algebra

namespace algebra::detail {

template <class A, class B>
void require_same_blocks(const char* what, const A& a, const B& b) {
  if (a.layout() != b.layout())
    base::throw_error<shape_error>({what, " needs operands in the same layout, not (", to_string(a.layout()),
                                    ") and (", to_string(b.layout()), "); redistribute one of them"});
  if (!(a.row_blocking() == b.row_blocking() && a.col_blocking() == b.col_blocking()))
    base::throw_error<shape_error>({what, " needs operands of the same shape and blockings, not ", a.shape(),
                                    " and ", b.shape(),
                                    a.shape() == b.shape() ? " with different blockings" : ""});
}

/// f on a row, called with global column indices.
template <class Function>
struct with_global_columns {
  Function f;
  global_index col;

  template <class T>
  constexpr auto operator()(local_index j, T value) const {
    return f(col + j, value);
  }
};

/// f called with global indices, for a block whose first entry is at (first_row, col).
template <class Function>
struct with_global_indices {
  Function f;
  global_index first_row, col;

  template <class T>
  constexpr auto operator()(local_index i, local_index j, T value) const {
    return f(first_row + i, col + j, value);
  }
  constexpr auto row(local_index i) const requires requires { f.row(global_index{}); }
  { return with_global_columns<decltype(f.row(global_index{}))>{f.row(first_row + i), col}; }
};

/// f(x, value of row i).
template <class Function, class T>
struct with_row_value {
  Function f;
  const T* rows;

  constexpr T operator()(local_index i, local_index, T x) const { return f(x, rows[i]); }
};

/// f(x, value of column j).
template <class Function, class T>
struct with_column_value {
  Function f;
  const T* columns;

  constexpr T operator()(local_index, local_index j, T x) const { return f(x, columns[j]); }
};

}  // namespace algebra::detail

/// y(i, j) = value. Local; no communication.
template <class T, layout L, class Device>
void fill(dense<T, L, Device>& y, std::type_identity_t<T> value) {
  local::chunked::fill(y.mesh().queue(), value, y.local());
}

/// y = x. Throws shape_error unless x and y have the same layout and blockings.
template <class T, layout X, layout Y, class Device>
void copy(const dense<T, X, Device>& x, dense<T, Y, Device>& y) {
  algebra::detail::require_same_blocks("copy", x, y);
  local::chunked::copy(x.mesh().queue(), x.local(), y.local());
}

/// A copy of x, in its layout and blockings. Local; no communication.
template <class T, layout L, class Device>
dense<T, L, Device> copy(const dense<T, L, Device>& x) {
  dense<T, L, Device> y(x.mesh(), x.layout(), x.row_blocking(), x.col_blocking());
  copy(x, y);
  return y;
}

/// y = x, rounded to the type of Y: float to base::bfloat16, and back. Local; no communication. Throws
/// shape_error unless x and y have the same layout and blockings.
template <class S, class T, layout X, layout Y, class Device>
requires(!std::is_same_v<S, T>) void copy(const dense<S, X, Device>& x, dense<T, Y, Device>& y) {
  static_assert(local::multiplies_bfloat16<Device>, "matrices of bfloat16 are for the host and CUDA devices");
  algebra::detail::require_same_blocks("copy", x, y);
  const auto& q = x.mesh().queue();
  const auto round = [&](auto from, auto to) { copy(q, from, to); };
  local::by_rows(q, "rows: round", round, local::reads(x.local()), local::writes(y.local()));
}

/// y(i, j) = f(x(i, j)); y may alias x. Throws shape_error unless x and y have the same layout and blockings.
template <class T, layout X, layout Y, class Device, class Function>
void transform(const dense<T, X, Device>& x, dense<T, Y, Device>& y, Function f) {
  algebra::detail::require_same_blocks("transform", x, y);
  local::chunked::transform(x.mesh().queue(), f, x.local(), y.local());
}

/// y(i, j) = f(a(i, j), b(i, j)); y may alias a or b. S: the type in which A is stored. Throws shape_error
/// unless all have the same layout and blockings.
template <class T, layout A, layout B, layout Y, class Device, class Function, class S>
requires algebra::stored_as<S, T, Device>
void zip(const dense<S, A, Device>& a, const dense<T, B, Device>& b, dense<T, Y, Device>& y, Function f) {
  algebra::detail::require_same_blocks("zip", a, b);
  algebra::detail::require_same_blocks("zip", a, y);
  local::chunked::zip(a.mesh().queue(), f, a.local(), b.local(), y.local());
}

namespace algebra {

/// Calls f(x(i, j), y(i, j), more(i, j) ...), which updates the entries of y and more, in one pass; no two
/// of them may alias. Throws shape_error unless all have the same layout and blockings.
template <class T, layout X, layout Y, class Device, class Function, class... More>
void update(const dense<T, X, Device>& x, Function f, dense<T, Y, Device>& y, More&... more) {
  partita::algebra::detail::require_same_blocks("update", x, y);
  (partita::algebra::detail::require_same_blocks("update", x, more), ...);
  local::chunked::update(x.mesh().queue(), f, x.local(), y.local(), more.local()...);
}

}  // namespace algebra

/// y(i, j) = f(i, j, x(i, j)) with global indices; y may alias x. Throws shape_error unless x and y have the
/// same layout and blockings.
template <class T, layout X, layout Y, class Device, class Function>
void transform_indexed(const dense<T, X, Device>& x, dense<T, Y, Device>& y, Function f) {
  algebra::detail::require_same_blocks("transform_indexed", x, y);
  const algebra::detail::with_global_indices<Function> of_block{f, x.row_range().begin, x.col_range().begin};
  local::chunked::transform_indexed(x.mesh().queue(), of_block, x.local(), y.local());
}

/// y(i, j) = f(x(i, j), r(i, 0)); r is n x 1 with the row blocking of x; y may alias x. Throws shape_error.
template <class T, layout X, layout R, layout Y, class Device, class Function>
void transform_rows(const dense<T, X, Device>& x, const dense<T, R, Device>& r, dense<T, Y, Device>& y,
                    Function f) {
  algebra::detail::require_same_blocks("transform_rows", x, y);
  if (r.layout() != partition::rows_of(x.layout()) || !(r.row_blocking() == x.row_blocking()) ||
      r.shape().cols != 1)
    base::throw_error<shape_error>({"the rows of ", x.shape(), " do not match the values of ", r.shape()});
  const auto& q = x.mesh().queue();
  local::by_rows(
      q, "rows: indexed transform",
      [&](local_index, matrix_view<const T> from, matrix_view<const T> values, matrix_view<T> to) {
        transform_indexed(q, algebra::detail::with_row_value<Function, T>{f, values.data}, from, to);
      },
      local::reads(x.local()), local::reads(r.local()), local::writes(y.local()));
}

/// y(i, j) = f(x(i, j), c(0, j)); c is 1 x f on every rank; y may alias x. Throws shape_error.
template <class T, layout X, layout Y, class Device, class Function>
void transform_columns(const dense<T, X, Device>& x, const dense<T, replicated, Device>& c,
                       dense<T, Y, Device>& y, Function f) {
  algebra::detail::require_same_blocks("transform_columns", x, y);
  if (c.shape() != matrix_shape{1, x.shape().cols})
    base::throw_error<shape_error>({"the columns of ", x.shape(), " do not match the values of ", c.shape()});
  const algebra::detail::with_column_value<Function, T> of_column{f, c.local().data + x.col_range().begin};
  local::chunked::transform_indexed(x.mesh().queue(), of_column, x.local(), y.local());
}

/// y(i, j) += bias(0, j); bias is 1 x f on every rank. Throws shape_error naming the shapes.
template <class T, layout L, class Device>
void add_row(const dense<T, replicated, Device>& bias, dense<T, L, Device>& y) {
  if (bias.shape() != matrix_shape{1, y.shape().cols})
    base::throw_error<shape_error>(
        {"a row of ", bias.shape(), " cannot be added to every row of ", y.shape()});
  local::chunked::add_row(y.mesh().queue(), bias.local().data + y.col_range().begin, y.local());
}

}  // namespace partita
