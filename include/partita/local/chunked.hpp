// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels on dense operands with what they do to these, by the kernels' names (see pass.hpp). In chunks,
/// sums over rows are sums of the chunks' sums; everything else has the same bits. Weights, biases and
/// results with a number per column should be near; where they are not, they are addressed where they are.

#include <type_traits>
#include <utility>

#include "partita/base/function.hpp"
#include "partita/local/kernels.hpp"
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

/// sums = the sum over the chunks of what of_chunk(views ..., sums) writes for them; sums is (1, n).
template <class T, class Device, class Chunk, class... X>
void sum_over_chunks(const device_queue<Device>& q, matrix_view<T> sums, const Chunk& of_chunk,
                     const X&... x) {
  buffer<T, Device> more;
  by_rows(
      q,
      [&](local_index first, const auto&... views) {
        if (first == 0) return of_chunk(views..., sums.data);
        more.reset(q, static_cast<std::size_t>(sums.cols));
        of_chunk(views..., more.data());
        zip(q, base::linear_combination<T>{1, 1}, matrix_view<const T>(sums),
            matrix_view<const T>{more.data(), 1, sums.cols, sums.cols}, sums);
      },
      x...);
}

}  // namespace detail

template <class T, class Device>
void fill(const device_queue<Device>& q, scalar<T> value, matrix_view<T> y) {
  by_rows(
      q, [&](auto to) { fill(q, value, to); }, writes(y));
}

template <class T, class Device>
void copy(const device_queue<Device>& q, input_view<T> x, matrix_view<T> y) {
  by_rows(
      q, [&](auto from, auto to) { copy(q, from, to); }, reads(x), writes(y));
}

template <class F, class T, class Device>
void transform(const device_queue<Device>& q, F f, input_view<T> x, matrix_view<T> y) {
  by_rows(
      q, [&](auto from, auto to) { transform(q, f, from, to); }, reads(x), writes(y));
}

template <class F, class T, class Device>
void transform_indexed(const device_queue<Device>& q, F f, input_view<T> x, matrix_view<T> y) {
  const auto block = [&](local_index first, auto from, auto to) {
    transform_indexed(q, detail::from_row<F>{f, first}, from, to);
  };
  by_rows(q, block, reads(x), writes(y));
}

/// Blocks of one row each are cut by columns.
template <class F, class T, class Device>
void zip(const device_queue<Device>& q, F f, input_view<T> a, input_view<T> b, matrix_view<T> y) {
  using detail::turned;
  const auto block = [&](auto left, auto right, auto to) { zip(q, f, left, right, to); };
  const auto row = [&](auto left, auto right, auto to) { block(turned(left), turned(right), turned(to)); };
  if (y.rows != 1) return by_rows(q, block, reads(a), reads(b), writes(y));
  by_rows(q, row, reads(turned(a)), reads(turned(b)), writes(turned(y)));
}

/// Blocks of one row each are cut by columns.
template <class F, class T, class Device, class... Y>
void update(const device_queue<Device>& q, F f, input_view<T> x, matrix_view<T> y, Y... more) {
  using detail::turned;
  const auto block = [&](auto from, auto... to) { update(q, f, from, to...); };
  const auto row = [&](auto from, auto... to) { block(turned(from), turned(to)...); };
  if (y.rows != 1) return by_rows(q, block, reads(x), updates(y), updates(more)...);
  by_rows(q, row, reads(turned(x)), updates(turned(y)), updates(turned(more))...);
}

template <class T, class Device>
void add_row(const device_queue<Device>& q, const scalar<T>* bias, matrix_view<T> y) {
  by_rows(
      q, [&](auto to) { add_row(q, bias, to); }, updates(y));
}

/// c = alpha op(a) op(b) + beta c. Chunks of the rows of a and c or, where a is transposed and b is not, of a
/// and b, whose products are added.
template <class T, class Device>
void gemm(const device_queue<Device>& q, bool ta, bool tb, scalar<T> alpha, input_view<T> a, input_view<T> b,
          scalar<T> beta, matrix_view<T> c) {
  const auto of_rows = [&](auto rows, auto to) { gemm(q, ta, tb, alpha, rows, b, beta, to); };
  const auto of_sums = [&](local_index first, auto left, auto right) {
    gemm(q, ta, tb, alpha, left, right, first == 0 ? beta : T(1), c);
  };
  if (!ta) return by_rows(q, of_rows, reads(a), result(c, beta));
  if (tb) return gemm(q, ta, tb, alpha, a, b, beta, c);
  by_rows(q, of_sums, reads(a), reads(b));
}

template <class T, class Device>
void gemm_bias_relu(const device_queue<Device>& q, input_view<T> a, input_view<T> b, const scalar<T>* bias,
                    bool relu, scalar<T> beta, matrix_view<T> c,
                    const std::type_identity_t<block_dropout<T>>& drop = {}) {
  const auto block = [&](local_index first, auto rows, auto to) {
    gemm_bias_relu(q, rows, b, bias, relu, beta, to, drop.from_row(first));
  };
  by_rows(q, block, reads(a), result(c, beta));
}

template <class T, class Device>
void gemm_relu_backward(const device_queue<Device>& q, input_view<T> dc, input_view<T> b, input_view<T> a,
                        matrix_view<T> dz) {
  by_rows(
      q, [&](auto gradient, auto rows, auto to) { gemm_relu_backward(q, gradient, b, rows, to); }, reads(dc),
      reads(a), writes(dz));
}

template <class T, class Device>
void gemm_bias_gradient(const device_queue<Device>& q, input_view<T> a, input_view<T> dc, matrix_view<T> db,
                        scalar<T>* dbias) {
  bool first = true;
  detail::sum_over_chunks(
      q, matrix_view<T>{dbias, 1, dc.cols, dc.cols},
      [&](matrix_view<const T> rows, matrix_view<const T> gradient, T* sums) {
        if (std::exchange(first, false)) return gemm_bias_gradient(q, rows, gradient, db, sums);
        gemm(q, true, false, T(1), rows, gradient, T(1), db);
        column_sums(q, gradient, sums);
      },
      reads(a), reads(dc));
}

template <class T, class Device>
void column_sums(const device_queue<Device>& q, input_view<T> x, T* sums) {
  detail::sum_over_chunks(
      q, matrix_view<T>{sums, 1, x.cols, x.cols}, [&](auto rows, T* to) { column_sums(q, rows, to); },
      reads(x));
}

template <class T, class Device>
void column_dots(const device_queue<Device>& q, input_view<T> x, input_view<T> y, T* products) {
  detail::sum_over_chunks(
      q, matrix_view<T>{products, 1, x.cols, x.cols},
      [&](auto left, auto right, T* to) { column_dots(q, left, right, to); }, reads(x), reads(y));
}

template <class T, class Device>
void row_sums(const device_queue<Device>& q, input_view<T> x, T* sums) {
  by_rows(
      q, [&](auto rows, auto to) { row_sums(q, rows, to.data); }, reads(x),
      writes(one_per_row(sums, x.rows)));
}

template <class T, class Device>
std::remove_const_t<T> sum(const device_queue<Device>& q, matrix_view<T> x) {
  double total = 0;
  by_rows(
      q, [&](auto rows) { total += static_cast<double>(sum(q, rows)); }, reads(x));
  return static_cast<std::remove_const_t<T>>(total);
}

template <class T, class Device>
std::remove_const_t<T> dot(const device_queue<Device>& q, matrix_view<T> x,
                           std::type_identity_t<matrix_view<T>> y) {
  double total = 0;
  by_rows(
      q, [&](auto left, auto right) { total += static_cast<double>(dot(q, left, right)); }, reads(x),
      reads(y));
  return static_cast<std::remove_const_t<T>>(total);
}

template <class T, class Device>
double cross_entropy(const device_queue<Device>& q, input_view<T> logits, const local_index* labels,
                     scalar<T> scale, matrix_view<T> gradient) {
  double loss = 0;
  by_rows(
      q, [&](auto z, auto of_rows, auto dz) { loss += cross_entropy(q, z, of_rows.data, scale, dz); },
      reads(logits), reads(one_per_row(labels, logits.rows)), writes(gradient));
  return loss;
}

template <class T, class Device>
global_index count_correct(const device_queue<Device>& q, matrix_view<T> logits, const local_index* labels) {
  global_index correct = 0;
  by_rows(
      q, [&](auto z, auto of_rows) { correct += count_correct(q, z, of_rows.data); }, reads(logits),
      reads(one_per_row(labels, logits.rows)));
  return correct;
}

}  // namespace partita::local::chunked
