// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Elementwise operations, also with a row or column vector.

#include <type_traits>

#include "partita/local/fusion.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace elementwise_detail {

/// f(i, row i of y), which writes it.
template <class T, class F>
inline void assign_rows(const device_queue<host>& q, matrix_view<T> y, const F& f) {
  const auto rows = [f, y](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) f(i, y.row_data(i));
  };
  with_instructions([&](auto instructions) {
    run_rows(q.threads(), y.rows, y.cols,
             [&](local_index begin, local_index end) { run_with<instructions>(rows, begin, end); });
  });
}

/// y(i, j) = f(i, j).
template <class T, class F>
inline void assign(const device_queue<host>& q, matrix_view<T> y, const F& f) {
  assign_rows(q, y, [f, y](local_index i, T* to) {
    for (local_index j = 0; j < y.cols; ++j) to[j] = f(i, j);
  });
}

/// Drops entries of rows of y.
template <class T>
struct dropped_rows {
  local::block_dropout<T> drop;
  matrix_view<T> y;
  const row_place* places = nullptr;  ///< of the rows, if they are in another order than those of y

  void operator()(local_index begin, local_index end) const {
    for (local_index i = begin; i < end; ++i) {
      const local_index row = places == nullptr ? i : places[i].row;
      of_row(drop, row, y.row_data(row), y.cols);
    }
  }
  static void of_row(const local::block_dropout<T>& drop, local_index i, T* row, local_index cols) {
    const auto of_entry = drop.of_matrix.row(drop.first_row + i);
    for (local_index j = 0; j < cols; ++j) row[j] = of_entry(drop.first_col + j, row[j]);
  }
};

/// Row i of y = drop(act(row + bias)), act and drop as in spmm_epilogue.
template <class T>
inline void finish_row(const T* bias, bool relu, const local::block_dropout<T>& drop, local_index i, T* row,
                       local_index cols) {
  if (bias != nullptr)
    for (local_index j = 0; j < cols; ++j) row[j] += bias[j];
  if (relu)
    for (local_index j = 0; j < cols; ++j) row[j] = row[j] > 0 ? row[j] : T{0};
  if (drop.drops()) dropped_rows<T>::of_row(drop, i, row, cols);
}

/// Row `to` of y = alpha from + beta y + bias, rounded as spmm_epilogue::cut. Returns the bias, if it is not
/// added yet.
template <class T>
inline const T* scale_row(const local::spmm_epilogue<T>& e, const T* from, T* to, local_index cols) {
  if (e.beta != 0) {
    for (local_index j = 0; j < cols; ++j) to[j] = e.alpha * from[j] + e.beta * to[j];
    return e.bias;
  }
  if (e.bias == nullptr)
    for (local_index j = 0; j < cols; ++j) to[j] = e.alpha * from[j];
  else
    for (local_index j = 0; j < cols; ++j) to[j] = e.alpha * from[j] + e.bias[j];
  return nullptr;
}

}  // namespace elementwise_detail

/// y(i, j) = f(x(i, j)). Both (m, n); y may alias x. Throws shape_error if the shapes differ, and what f
/// throws.
template <class F, class T>
inline void transform(const device_queue<host>& q, F f, local::input_view<T> x, matrix_view<T> y) {
  local::require_equal("transform", "x", local::shape_of(x), "y", local::shape_of(y));
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return f(x(i, j)); });
}

/// y(i, j) = f(i, j, x(i, j)). Both (m, n); y may alias x. If f.row(i) is what f is in row i, loops over the
/// columns call that, with j and x(i, j). Throws shape_error if the shapes differ, and what f throws.
template <class F, class T>
inline void transform_indexed(const device_queue<host>& q, F f, local::input_view<T> x, matrix_view<T> y) {
  local::require_equal("transform_indexed", "x", local::shape_of(x), "y", local::shape_of(y));
  if constexpr (requires { f.row(local_index{}); })
    elementwise_detail::assign_rows(q, y, [=](local_index i, T* to) {
      const auto of_entry = f.row(i);
      const T* const from = x.row_data(i);
      for (local_index j = 0; j < y.cols; ++j) to[j] = of_entry(j, from[j]);
    });
  else
    elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return f(i, j, x(i, j)); });
}

/// y = the epilogue e of sums. Both (m, n); y may alias sums if beta is 0. Throws shape_error if the shapes
/// differ.
template <class T>
inline void finish_rows(const device_queue<host>& q, local::input_view<T> sums,
                        const local::spmm_epilogue<T>& e, matrix_view<T> y) {
  local::require_equal("finish_rows", "sums", local::shape_of(sums), "y", local::shape_of(y));
  elementwise_detail::assign_rows(q, y, [=](local_index i, T* to) {
    const T* const bias = elementwise_detail::scale_row(e, sums.row_data(i), to, y.cols);
    elementwise_detail::finish_row(bias, e.relu, e.drop, i, to, y.cols);
  });
}

/// y(i, j) = f(a(i, j), b(i, j)). All (m, n); y may alias a or b. X: what a is stored as, T or
/// base::bfloat16. Throws shape_error if the shapes differ, and what f throws.
template <class F, class T, class X>
inline void zip(const device_queue<host>& q, F f, matrix_view<X> a, local::input_view<T> b,
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

/// f(x(i, j), y(i, j) ...), which updates the y(i, j). All (m, n), and apart from one another. Throws
/// shape_error if the shapes differ, and what f throws.
template <class F, class T, class... Y>
inline void update(const device_queue<host>& q, F f, local::input_view<T> x, matrix_view<T> y, Y... more) {
  local::require_equal("update", "x", local::shape_of(x), "y", local::shape_of(y));
  (local::require_equal("update", "x", local::shape_of(x), "y", local::shape_of(more)), ...);
  elementwise_detail::assign_rows(q, y, [=](local_index i, T* to) {
    const T* const from = x.row_data(i);
    [&](auto* const... others) {
      for (local_index j = 0; j < y.cols; ++j) f(from[j], to[j], others[j]...);
    }(more.row_data(i)...);
  });
}

/// y(i, j) += bias[j]. y is (m, n), bias has n elements.
template <class T>
inline void add_row(const device_queue<host>& q, const local::scalar<T>* bias, matrix_view<T> y) {
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return y(i, j) + bias[j]; });
}

/// y(i, j) /= divisors[i]. y is (m, n), divisors has m elements.
template <class T>
inline void divide_rows(const device_queue<host>& q, const local::scalar<T>* divisors, matrix_view<T> y) {
  elementwise_detail::assign(q, y, [=](local_index i, local_index j) { return y(i, j) / divisors[i]; });
}

}  // namespace partita::on_host
