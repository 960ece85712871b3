// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Elementwise operations, also with a row or column vector. Function objects are copied to the device; they
/// must be of a named type with a constexpr operator().

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "partita/local/cuda/assign.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/shapes.hpp"

namespace partita::on_cuda {

template <class F, class T>
struct mapped {
  F f;
  matrix_view<const T> x;

  template <int Width>
  constexpr pack_of<T, Width> at(local_index i, local_index j) const {
    pack_of<T, Width> value = load<Width>(x.row_data(i) + j);
    for (T& element : value.at) element = f(element);
    return value;
  }
};

template <class F, class T>
struct mapped_with_index {
  F f;
  matrix_view<const T> x;

  template <int Width>
  constexpr pack_of<T, Width> at(local_index i, local_index j) const {
    pack_of<T, Width> value = load<Width>(x.row_data(i) + j);
    for (int c = 0; c < Width; ++c) value.at[c] = f(i, j + c, value.at[c]);
    return value;
  }
};

template <class F, class T>
struct zipped {
  F f;
  matrix_view<const T> a, b;

  template <int Width>
  constexpr pack_of<T, Width> at(local_index i, local_index j) const {
    pack_of<T, Width> left = load<Width>(a.row_data(i) + j);
    const pack_of<T, Width> right = load<Width>(b.row_data(i) + j);
    for (int c = 0; c < Width; ++c) left.at[c] = f(left.at[c], right.at[c]);
    return left;
  }
};

template <class F, class T, std::size_t Count>
struct updated {
  F f;
  matrix_view<const T> x;
  matrix_view<T> y[Count];

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, x.cols);
    all(at.row, at.col, std::make_index_sequence<Count>());
  }

 private:
  template <std::size_t... I>
  constexpr void all(local_index i, local_index j, std::index_sequence<I...>) const {
    if constexpr (std::is_invocable_v<const F&, local_index, T, decltype(y[I](i, j))...>)
      f(j, x(i, j), y[I](i, j)...);
    else
      f(x(i, j), y[I](i, j)...);
  }
};

template <class S, class T>
struct converted {
  matrix_view<const S> x;

  template <int Width>
  constexpr pack_of<T, Width> at(local_index i, local_index j) const {
    const pack_of<S, Width> from = load<Width>(x.row_data(i) + j);
    pack_of<T, Width> to{};
    for (int c = 0; c < Width; ++c) to.at[c] = T(from.at[c]);
    return to;
  }
};

template <class T>
struct plus_row {
  const T* bias;

  constexpr T operator()(local_index, local_index j, T value) const { return value + bias[j]; }
};

template <class T>
struct over_row_divisor {
  const T* divisors;

  constexpr T operator()(local_index i, local_index, T value) const { return value / divisors[i]; }
};

template <class T>
struct finished_entry {
  local::spmm_epilogue<T> e;
  matrix_view<const T> old;

  constexpr T operator()(local_index i, local_index j, T sum) const {
    return e.finished(sum, i, j, old(i, j));
  }
};

/// As on_host::transform.
template <class F, class T>
void transform(const device_queue<cuda_device>& q, F f, local::input_view<T> x, matrix_view<T> y) {
  local::require_equal("transform", "x", local::shape_of(x), "y", local::shape_of(y));
  assign(q, y, mapped<F, T>{f, x}, x);
}

/// As on_host::transform_indexed.
template <class F, class T>
void transform_indexed(const device_queue<cuda_device>& q, F f, local::input_view<T> x, matrix_view<T> y) {
  local::require_equal("transform_indexed", "x", local::shape_of(x), "y", local::shape_of(y));
  assign(q, y, mapped_with_index<F, T>{f, x}, x);
}

/// As on_host::finish_rows.
template <class T>
void finish_rows(const device_queue<cuda_device>& q, local::input_view<T> sums,
                 const local::spmm_epilogue<T>& e, matrix_view<T> y) {
  local::require_equal("finish_rows", "sums", local::shape_of(sums), "y", local::shape_of(y));
  assign(q, y, mapped_with_index<finished_entry<T>, T>{{e, y}, sums}, sums);
}

/// As on_host::zip for X = T.
template <class F, class T, class X>
void zip(const device_queue<cuda_device>& q, F f, matrix_view<X> a, local::input_view<T> b,
         matrix_view<T> y) {
  local::require_equal("zip", "a", local::shape_of(a), "y", local::shape_of(y));
  local::require_equal("zip", "b", local::shape_of(b), "y", local::shape_of(y));
  assign(q, y, zipped<F, T>{f, a, b}, a, b);
}

/// As on_host::copy: floats rounded to base::bfloat16, and back.
template <class S, class T>
requires(!std::is_same_v<S, T>) void copy(const device_queue<cuda_device>& q, matrix_view<const S> from,
                                          matrix_view<T> to) {
  local::require_equal("copy", "from", local::shape_of(from), "to", local::shape_of(to));
  assign(q, to, converted<S, T>{from}, from);
}

/// As on_host::update.
template <class F, class T, class... Y>
void update(const device_queue<cuda_device>& q, F f, local::input_view<T> x, matrix_view<T> y, Y... more) {
  local::require_equal("update", "x", local::shape_of(x), "y", local::shape_of(y));
  (local::require_equal("update", "x", local::shape_of(x), "y", local::shape_of(more)), ...);
  on_cuda::launch(q, std::int64_t{x.rows} * x.cols, updated<F, T, 1 + sizeof...(Y)>{f, x, {y, more...}});
}

/// As on_host::add_row.
template <class T>
void add_row(const device_queue<cuda_device>& q, const local::scalar<T>* bias, matrix_view<T> y) {
  transform_indexed(q, plus_row<T>{bias}, y, y);
}

/// As on_host::divide_rows.
template <class T>
void divide_rows(const device_queue<cuda_device>& q, const local::scalar<T>* divisors, matrix_view<T> y) {
  transform_indexed(q, over_row_divisor<T>{divisors}, y, y);
}

}  // namespace partita::on_cuda
