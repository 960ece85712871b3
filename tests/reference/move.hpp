// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Copies of blocks: into blocks, into and out of contiguous memory, by lists of rows, from sparse to dense.

#include "partita/local/view.hpp"

namespace partita::reference {

/// to = from.
template <class T>
void copy(local::input_view<T> from, matrix_view<T> to) {
  for (local_index i = 0; i < to.rows; ++i)
    for (local_index j = 0; j < to.cols; ++j) to(i, j) = from(i, j);
}

/// y(i, j) = value.
template <class T>
void fill(local::scalar<T> value, matrix_view<T> y) {
  for (local_index i = 0; i < y.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) y(i, j) = value;
}

/// to[i n + j] = from(i, j).
template <class T>
void pack(local::input_view<T> from, T* to) {
  for (local_index i = 0; i < from.rows; ++i)
    for (local_index j = 0; j < from.cols; ++j) *to++ = from(i, j);
}

/// to(i, j) = from[i n + j].
template <class T>
void unpack(const local::scalar<T>* from, matrix_view<T> to) {
  for (local_index i = 0; i < to.rows; ++i)
    for (local_index j = 0; j < to.cols; ++j) to(i, j) = *from++;
}

/// y(i, j) = the entry of a at (i, j), or 0.
template <class T>
void sparse_to_dense(local::input_csr<T> a, matrix_view<T> y) {
  fill(T(0), y);
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) y(i, a.columns[e]) = a.values[e];
}

/// to[i n + j] = from(rows[i], j).
template <class T>
void gather_rows(local::input_view<T> from, std::span<const local_index> rows, T* to) {
  for (const local_index row : rows)
    for (local_index j = 0; j < from.cols; ++j) *to++ = from(row, j);
}

/// to(i, j) = received[starts[i] + j], or own[-1 - starts[i] + j] where starts[i] < 0.
template <class T>
void gather_rows_of_two(const local::scalar<T>* own, const local::scalar<T>* received,
                        std::span<const global_index> starts, matrix_view<T> to) {
  for (local_index i = 0; i < to.rows; ++i) {
    const global_index start = starts[static_cast<std::size_t>(i)];
    for (local_index j = 0; j < to.cols; ++j)
      to(i, j) = start < 0 ? own[-1 - start + j] : received[start + j];
  }
}

/// to(rows[i], j) = from[i n + j] in the order of i.
template <class T>
void scatter_rows(const local::scalar<T>* from, std::span<const local_index> rows, matrix_view<T> to) {
  for (const local_index row : rows)
    for (local_index j = 0; j < to.cols; ++j) to(row, j) = *from++;
}

/// to(rows[i], j) += from[i n + j] in the order of i; rows may repeat.
template <class T>
void scatter_add_rows(const local::scalar<T>* from, std::span<const local_index> rows, matrix_view<T> to) {
  for (const local_index row : rows)
    for (local_index j = 0; j < to.cols; ++j) to(row, j) += *from++;
}

}  // namespace partita::reference
