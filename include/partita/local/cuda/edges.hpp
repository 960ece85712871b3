// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels on the entries of a sparse pattern. An edge array has `heads` values per entry, values[e * heads +
/// h], with e as in the pattern's offsets. Values of the pattern itself are not read and may be null.

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/cuda/edge_folds.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/local/cuda/row_fold.hpp"
#include "partita/local/cuda/warp_rows.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

template <class F, class T>
struct apply_to_entry {
  F f;
  const local_index* columns;
  local_index heads;
  const T* in;
  T* out;

  template <int Width>
  constexpr void operator()(local_index row, local_index e, local_index h) const {
    const local_index column = columns[e];
    pack_of<T, Width> value = load<Width>(in + edge_at(e, heads, h));
    for (int c = 0; c < Width; ++c) value.at[c] = f(row, column, h + c, value.at[c]);
    on_cuda::store(value, out + edge_at(e, heads, h));
  }
};

template <class T>
struct store_softmax {
  attention<T> scores;
  matrix_view<const T> log_sum;
  T* values;

  template <int Width>
  __device__ void operator()(local_index row, local_index e, local_index h) const {
    const auto source = scores.template source<Width>(e, h), target = scores.template target<Width>(row, h),
               log_sums = load<Width>(&log_sum(row, h));
    pack_of<T, Width> value;
    for (int c = 0; c < Width; ++c)
      value.at[c] = exponential(scores.leaky(source.at[c] + target.at[c]) - log_sums.at[c]);
    on_cuda::store(value, values + edge_at(e, scores.heads, h));
  }
};

namespace edge_detail {

template <class T>
attention<T> attend(const char* operation, const local::csr_view<T>& a, local_index heads, T slope,
                    const matrix_view<const T>& source, const matrix_view<const T>& target) {
  local::require_scores(operation, a, heads, source, target);
  return {a.columns, heads, slope, table_of(source), table_of(target)};
}

/// An edge array, for its alignment.
template <class T>
matrix_view<const T> heads_of(const T* values, local_index heads) {
  return {values, 1, heads, heads};
}

/// Row sums of the products of softmax values with their gradients.
struct row_dot_memory {
  explicit row_dot_memory(const device_queue<cuda_device>&) {}

  buffer<std::byte, cuda_device> bytes;
};

}  // namespace edge_detail

/// As on_host::edge_apply.
template <class F, class T>
void edge_apply(const device_queue<cuda_device>& q, local::input_csr<T> a, local_index heads, F f,
                const local::scalar<T>* in, T* out) {
  using body = apply_to_entry<F, T>;
  fold_packs_of_heads<T>(q, rows_of(a), heads, each_head<body>{{f, a.columns, heads, in, out}},
                         edge_detail::heads_of(in, heads), edge_detail::heads_of<T>(out, heads));
}

/// As on_host::edge_log_sum.
template <class T>
void edge_log_sum(const device_queue<cuda_device>& q, local::input_csr<T> a, local_index heads,
                  local::scalar<T> slope, local::input_view<T> source, local::input_view<T> target,
                  matrix_view<T> log_sum, local_index = 0) {
  const attention<T> scores = edge_detail::attend("edge_log_sum", a, heads, slope, source, target);
  local::require_row_values("edge_log_sum", a, heads, "log_sum", log_sum);
  fold_heads<1>(q, rows_of(a), heads, log_sums_of_scores<T>{scores, log_sum});
}

/// As on_host::edge_softmax.
template <class T>
void edge_softmax(const device_queue<cuda_device>& q, local::input_csr<T> a, local_index heads,
                  local::scalar<T> slope, local::input_view<T> source, local::input_view<T> target,
                  local::input_view<T> log_sum, T* values) {
  const attention<T> scores = edge_detail::attend("edge_softmax", a, heads, slope, source, target);
  local::require_row_values("edge_softmax", a, heads, "log_sum", log_sum);
  using body = store_softmax<T>;
  fold_packs_of_heads<T>(q, rows_of(a), heads, each_head<body>{{scores, log_sum, values}}, source, target,
                         log_sum, edge_detail::heads_of<T>(values, heads));
}

/// As on_host::edge_softmax_gradient.
template <class T>
void edge_softmax_gradient(const device_queue<cuda_device>& q, local::input_csr<T> a,
                           const local::csr_inverse_view& inverse, local_index heads, local::scalar<T> slope,
                           local::input_view<T> source, local::input_view<T> target,
                           local::input_view<T> log_sum, local::input_view<T> row_dot, local::scalar<T> beta,
                           local::scalar<T>* edges, matrix_view<T> dsource, matrix_view<T> dtarget) {
  constexpr const char* name = "edge_softmax_gradient";
  const attention<T> scores = edge_detail::attend(name, a, heads, slope, source, target);
  local::require_equal(name, "inverse", local::shape_of(inverse), "the pattern", local::shape_of(a));
  local::require_row_values(name, a, heads, "log_sum", log_sum);
  local::require_row_values(name, a, heads, "row_dot", row_dot);
  local::require_equal(name, "dsource", local::shape_of(dsource), "source", local::shape_of(source));
  local::require_equal(name, "dtarget", local::shape_of(dtarget), "target", local::shape_of(target));
  const auto of_edges = edge_detail::heads_of<T>(edges, heads);
  fold_packs_of_heads<T>(q, rows_of(a), heads,
                         target_gradient<T>{{beta, dtarget}, {scores, log_sum, edges}, row_dot}, source,
                         target, log_sum, row_dot, dtarget, of_edges);
  fold_packs_of_heads<T>(q, rows_of(inverse.transposed<T>()), heads,
                         source_gradient<T>{{beta, dsource}, {}, edges, inverse.entry_numbers, heads},
                         dsource, of_edges);
}

/// As on_host::edge_softmax_gradient_of_rows; `first`, if it is given, is what edge_apply changes the
/// gradients by before.
template <class T, class First = unchanged>
void edge_softmax_gradient_of_rows(const device_queue<cuda_device>& q, local::input_csr<T> a,
                                   const local::csr_inverse_view& inverse, local_index heads,
                                   local::scalar<T> slope, local::input_view<T> source,
                                   local::input_view<T> target, local::input_view<T> log_sum,
                                   local::scalar<T> beta, local::scalar<T>* edges, matrix_view<T> dsource,
                                   matrix_view<T> dtarget, const First& first = {}) {
  constexpr const char* name = "edge_softmax_gradient_of_rows";
  const attention<T> scores = edge_detail::attend(name, a, heads, slope, source, target);
  local::require_row_values(name, a, heads, "log_sum", log_sum);
  auto& bytes = q.resource<edge_detail::row_dot_memory>().bytes;
  bytes.grow(q, static_cast<std::size_t>(a.rows) * static_cast<std::size_t>(heads) * sizeof(T));
  const matrix_view<T> dots{reinterpret_cast<T*>(bytes.data()), a.rows, heads, heads};
  fold_packs_of_heads<T>(q, rows_of(a), heads,
                         softmax_row_dots<T, First>{{T(0), dots}, {scores, log_sum, edges}, first}, source,
                         target, log_sum, dots, edge_detail::heads_of<T>(edges, heads));
  edge_softmax_gradient<T>(q, a, inverse, heads, slope, source, target, log_sum, dots, beta, edges, dsource,
                           dtarget);
}

/// As on_host::edge_row_dot.
template <class T>
void edge_row_dot(const device_queue<cuda_device>& q, local::input_csr<T> a, local_index heads,
                  const local::scalar<T>* u, const local::scalar<T>* v, matrix_view<T> out) {
  local::require_row_values("edge_row_dot", a, heads, "out", out);
  fold_packs_of_heads<T>(q, rows_of(a), heads, dots_of_values<T>{{T(0), out}, {}, u, v, heads}, out,
                         edge_detail::heads_of(u, heads), edge_detail::heads_of(v, heads));
}

/// As on_host::edge_row_fold, but out(i, h) = f(out(i, h), f(... f(values[e, h], values[e', h]) ...)); f must
/// be associative.
template <class F, class T>
void edge_row_fold(const device_queue<cuda_device>& q, local::input_csr<T> a, local_index heads, F f,
                   const local::scalar<T>* values, matrix_view<T> out) {
  local::require_row_values("edge_row_fold", a, heads, "out", out);
  fold_rows(q, rows_of(a), heads, 0, fold_of_values<F, T>{{}, f, values, heads, out});
}

}  // namespace partita::on_cuda
