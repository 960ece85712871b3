// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Elementwise operations, also with a row or column vector.

#include <type_traits>

#include "partita/local/host/instructions.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace elementwise_detail {

/// y(i, j) = f(i, j).
template <class T, class F>
inline void assign(const device_queue<host>& q, matrix_view<T> y, const F& f) {
  const auto rows = [f, y](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i)
      for (local_index j = 0; j < y.cols; ++j) y(i, j) = f(i, j);
  };
  with_instructions([&](auto instructions) {
    run_rows(q.threads(), y.rows, y.cols,
             [&](local_index begin, local_index end) { run_with<instructions>(rows, begin, end); });
  });
}

}  // namespace elementwise_detail

/// y(i, j) = f(x(i, j)). Both (m, n); y may alias x. Throws shape_error if the shapes differ, and what f
/// throws.
template <class F, class T>
inline void transform(const device_queue<host>& q, F f, local::input_view<T> x, matrix_view<T> y) {
  local::require_equal("transform", "x", local::shape_of(x), "y", local::shape_of(y));
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return f(x(i, j)); });
}

/// y(i, j) = f(i, j, x(i, j)). Both (m, n); y may alias x. Throws shape_error if the shapes differ, and what
/// f throws.
template <class F, class T>
inline void transform_indexed(const device_queue<host>& q, F f, local::input_view<T> x, matrix_view<T> y) {
  local::require_equal("transform_indexed", "x", local::shape_of(x), "y", local::shape_of(y));
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return f(i, j, x(i, j)); });
}

/// y(i, j) = f(a(i, j), b(i, j)). All (m, n); y may alias a or b. Throws shape_error if the shapes differ,
/// and what f throws.
template <class F, class T>
inline void zip(const device_queue<host>& q, F f, local::input_view<T> a, local::input_view<T> b,
                matrix_view<T> y) {
  local::require_equal("zip", "a", local::shape_of(a), "y", local::shape_of(y));
  local::require_equal("zip", "b", local::shape_of(b), "y", local::shape_of(y));
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return f(a(i, j), b(i, j)); });
}

/// to(i, j) = T(from(i, j)): floats rounded to base::bfloat16, and back. Both (m, n), must not overlap.
/// Throws shape_error if the shapes differ.
template <class S, class T>
requires(!std::is_same_v<S, T>) inline void copy(const device_queue<host>& q, matrix_view<const S> from,
                                                 matrix_view<T> to) {
  local::require_equal("copy", "from", local::shape_of(from), "to", local::shape_of(to));
  elementwise_detail::assign(q, to, [=](local_index i, local_index j) { return T(from(i, j)); });
}

/// y(i, j) += bias[j]. y is (m, n), bias has n elements.
template <class T>
inline void add_row(const device_queue<host>& q, const local::scalar<T>* bias, matrix_view<T> y) {
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return y(i, j) + bias[j]; });
}

/// y(i, j) *= factors[i]. y is (m, n), factors has m elements.
template <class T>
inline void scale_rows(const device_queue<host>& q, const local::scalar<T>* factors, matrix_view<T> y) {
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return y(i, j) * factors[i]; });
}

/// y(i, j) /= divisors[i]. y is (m, n), divisors has m elements.
template <class T>
inline void divide_rows(const device_queue<host>& q, const local::scalar<T>* divisors, matrix_view<T> y) {
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return y(i, j) / divisors[i]; });
}

}  // namespace partita::on_host
