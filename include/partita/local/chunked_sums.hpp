// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels that sum dense operands with what they do to these, by the kernels' names (see pass.hpp): in
/// chunks, sums over rows are sums of the chunks' sums. Results with a number per column should be near.

#include <array>
#include <tuple>
#include <type_traits>

#include "partita/base/function.hpp"
#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/loss.hpp"
#include "partita/local/host/reductions.hpp"
#include "partita/local/host/softmax.hpp"
#include "partita/local/pass.hpp"

namespace partita::local::chunked {

namespace detail {

/// sums = the sum over the chunks of what of_chunk(views ..., sums) writes for them; sums is (1, n).
template <class T, class Device, class Chunk, class... X>
void sum_over_chunks(const device_queue<Device>& q, const char* what, matrix_view<T> sums,
                     const Chunk& of_chunk, const X&... x) {
  buffer<T, Device> more;
  by_rows(
      q, what,
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
void column_sums(const device_queue<Device>& q, input_view<T> x, T* sums) {
  detail::sum_over_chunks(
      q, "rows: column sums", matrix_view<T>{sums, 1, x.cols, x.cols},
      [&](auto rows, T* to) { column_sums(q, rows, to); }, reads(x));
}

template <class T, class Device>
void column_dots(const device_queue<Device>& q, input_view<T> x, input_view<T> y, T* products) {
  detail::sum_over_chunks(
      q, "rows: column dots", matrix_view<T>{products, 1, x.cols, x.cols},
      [&](auto left, auto right, T* to) { column_dots(q, left, right, to); }, reads(x), reads(y));
}

template <class T, class Device>
void row_sums(const device_queue<Device>& q, input_view<T> x, T* sums) {
  by_rows(
      q, "rows: row sums", [&](auto rows, auto to) { row_sums(q, rows, to.data); }, reads(x),
      writes(one_per_row(sums, x.rows)));
}

template <class T, class Device>
std::remove_const_t<T> sum(const device_queue<Device>& q, matrix_view<T> x) {
  double total = 0;
  by_rows(
      q, "rows: sum", [&](auto rows) { total += static_cast<double>(sum(q, rows)); }, reads(x));
  return static_cast<std::remove_const_t<T>>(total);
}

template <class T, class Device>
std::remove_const_t<T> dot(const device_queue<Device>& q, matrix_view<T> x,
                           std::type_identity_t<matrix_view<T>> y) {
  double total = 0;
  by_rows(
      q, "rows: dot", [&](auto left, auto right) { total += static_cast<double>(dot(q, left, right)); },
      reads(x), reads(y));
  return static_cast<std::remove_const_t<T>>(total);
}

template <class T, class Device>
double cross_entropy(const device_queue<Device>& q, input_view<T> logits, const local_index* labels,
                     scalar<T> scale, matrix_view<T> gradient) {
  double loss = 0;
  by_rows(
      q, "rows: cross entropy",
      [&](auto z, auto of_rows, auto dz) { loss += cross_entropy(q, z, of_rows.data, scale, dz); },
      reads(logits), reads(one_per_row(labels, logits.rows)), writes(gradient));
  return loss;
}

template <class T, class Device, std::size_t Sets>
std::array<global_index, Sets> count_correct(const device_queue<Device>& q, matrix_view<T> logits,
                                             const std::array<const local_index*, Sets>& labels) {
  std::array<global_index, Sets> correct{};
  const auto read = [&](const auto&... sets) {
    by_rows(
        q, "rows: count",
        [&](auto z, auto... of_rows) {
          const auto found = count_correct(q, z, std::array{of_rows.data...});
          for (std::size_t k = 0; k < Sets; ++k) correct[k] += found[k];
        },
        reads(logits), reads(one_per_row(sets, logits.rows))...);
  };
  std::apply(read, labels);
  return correct;
}

}  // namespace partita::local::chunked
