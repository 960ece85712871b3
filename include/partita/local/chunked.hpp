// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels on elements of dense operands with what they do to these, by the kernels' names (see pass.hpp),
/// and with the same bits in chunks. Operands with a number per column should be near; where they are not,
/// they are addressed where they are. Products are in chunked_gemm.hpp, sums in chunked_sums.hpp.

#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/move.hpp"
#include "partita/local/pass.hpp"

namespace partita::local::chunked {

namespace detail {

/// f of the rows of a block, for a chunk that begins at row `first` of it.
template <class F>
struct from_row {
  F f;
  local_index first;

  template <class T>
  constexpr auto operator()(local_index i, local_index j, T x) const {
    return f(first + i, j, x);
  }
  constexpr auto row(local_index i) const requires requires { f.row(i); }
  { return f.row(first + i); }
};

/// A block of one row as one of one column, and back.
template <class T>
constexpr matrix_view<T> turned(matrix_view<T> x) {
  return {x.data, x.cols, x.rows, x.rows};
}

}  // namespace detail

template <class T, class Device>
void fill(const device_queue<Device>& q, scalar<T> value, matrix_view<T> y) {
  by_rows(
      q, "rows: fill", [&](auto to) { fill(q, value, to); }, writes(y));
}

template <class T, class Device>
void copy(const device_queue<Device>& q, input_view<T> x, matrix_view<T> y) {
  by_rows(
      q, "rows: copy", [&](auto from, auto to) { copy(q, from, to); }, reads(x), writes(y));
}

template <class F, class T, class Device>
void transform(const device_queue<Device>& q, F f, input_view<T> x, matrix_view<T> y) {
  by_rows(
      q, "rows: transform", [&](auto from, auto to) { transform(q, f, from, to); }, reads(x), writes(y));
}

template <class F, class T, class Device>
void transform_indexed(const device_queue<Device>& q, F f, input_view<T> x, matrix_view<T> y) {
  const auto block = [&](local_index first, auto from, auto to) {
    transform_indexed(q, detail::from_row<F>{f, first}, from, to);
  };
  by_rows(q, "rows: indexed transform", block, reads(x), writes(y));
}

/// Blocks of one row each are cut by columns. X: as of the kernel.
template <class F, class T, class Device, class X>
void zip(const device_queue<Device>& q, F f, matrix_view<X> a, input_view<T> b, matrix_view<T> y) {
  using detail::turned;
  const auto block = [&](auto left, auto right, auto to) { zip(q, f, left, right, to); };
  const auto row = [&](auto left, auto right, auto to) { block(turned(left), turned(right), turned(to)); };
  if (y.rows != 1) return by_rows(q, "rows: zip", block, reads(a), reads(b), writes(y));
  by_rows(q, "rows: zip", row, reads(turned(a)), reads(turned(b)), writes(turned(y)));
}

/// Blocks of one row each are cut by columns: f.from(first) is then f for those from the first one on, if f
/// takes their numbers, which is for such blocks and devices other than the host only.
template <class F, class T, class Device, class... Y>
void update(const device_queue<Device>& q, F f, input_view<T> x, matrix_view<T> y, Y... more) {
  using detail::turned;
  constexpr bool numbers = requires(const F& g) { g.from(local_index{}); };
  const auto block = [&](auto from, auto... to) { update(q, f, from, to...); };
  const auto row = [&](local_index first, auto from, auto... to) {
    if constexpr (numbers)
      update(q, f.from(first), matrix_view<const T>(turned(from)), turned(to)...);
    else
      block(turned(from), turned(to)...);
  };
  if (y.rows != 1) return by_rows(q, "rows: update", block, reads(x), updates(y), updates(more)...);
  by_rows(q, "rows: update", row, reads(turned(x)), updates(turned(y)), updates(turned(more))...);
}

template <class T, class Device>
void add_row(const device_queue<Device>& q, const scalar<T>* bias, matrix_view<T> y) {
  by_rows(
      q, "rows: add row", [&](auto to) { add_row(q, bias, to); }, updates(y));
}

}  // namespace partita::local::chunked
