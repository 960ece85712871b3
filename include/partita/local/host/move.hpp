// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Copy, pack and unpack, row gather and scatter, and sparse-to-dense conversion.

#include <algorithm>
#include <span>

#include "partita/local/host/parallel.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/row_encoding.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

/// to = from. Both (m, n), must not overlap. Throws shape_error if the shapes differ.
template <class T>
inline void copy(const device_queue<host>& q, local::input_view<T> from, matrix_view<T> to) {
  local::require_equal("copy", "from", local::shape_of(from), "to", local::shape_of(to));
  for_rows(q.threads(), to.rows, to.cols,
           [=](local_index i) { std::copy_n(from.row_data(i), from.cols, to.row_data(i)); });
}

/// y(i, j) = value. y is (m, n).
template <class T>
inline void fill(const device_queue<host>& q, local::scalar<T> value, matrix_view<T> y) {
  for_rows(q.threads(), y.rows, y.cols, [=](local_index i) { std::fill_n(y.row_data(i), y.cols, value); });
}

/// to[i n + j] = from(i, j). from is (m, n), to has m n elements.
template <class T>
inline void pack(const device_queue<host>& q, local::input_view<T> from, T* to) {
  copy(q, from, matrix_view<T>{to, from.rows, from.cols, from.cols});
}

/// to(i, j) = from[i n + j]. to is (m, n), from has m n elements.
template <class T>
inline void unpack(const device_queue<host>& q, const local::scalar<T>* from, matrix_view<T> to) {
  copy(q, matrix_view<const T>{from, to.rows, to.cols, to.cols}, to);
}

/// y(i, j) = a(i, j), 0 where a has no entry. Both (m, n); a must have no duplicates. Throws shape_error if
/// the shapes differ.
template <class T>
inline void sparse_to_dense(const device_queue<host>& q, local::input_csr<T> a, matrix_view<T> y) {
  local::require_equal("sparse_to_dense", "a", local::shape_of(a), "y", local::shape_of(y));
  for_rows(q.threads(), y.rows, y.cols, [=](local_index i) {
    std::fill_n(y.row_data(i), y.cols, T(0));
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) y(i, a.columns[e]) = a.values[e];
  });
}

namespace move_detail {

/// How many rows before its own turn a scattered row is fetched.
inline constexpr local_index ahead = 8;

}  // namespace move_detail

/// to(places[i], j) = from(rows[i], j); the places[i] must be distinct. from and to have n columns. Throws
/// shape_error if the number of rows does not fit in a local index.
template <class T>
inline void move_rows(const device_queue<host>& q, local::input_view<T> from,
                      std::span<const local_index> rows, std::span<const local_index> places,
                      matrix_view<T> to) {
  const local_index count =
      base::to_local(static_cast<global_index>(rows.size()), "the number of moved rows");
  run_rows(q.threads(), count, from.cols, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) {
      if (i + move_detail::ahead < end)
        prefetch(from.row_data(rows[static_cast<std::size_t>(i + move_detail::ahead)]), from.cols);
      std::copy_n(from.row_data(rows[static_cast<std::size_t>(i)]), from.cols,
                  to.row_data(places[static_cast<std::size_t>(i)]));
    }
  });
}

/// to[i n + j] = from(rows[i], j). from is (m, n), to has rows.size() n elements, every rows[i] is less than
/// m. Throws shape_error if the number of rows does not fit in a local index.
template <class T>
inline void gather_rows(const device_queue<host>& q, local::input_view<T> from,
                        std::span<const local_index> rows, T* to) {
  const local_index count =
      base::to_local(static_cast<global_index>(rows.size()), "the number of gathered rows");
  const matrix_view<T> out{to, count, from.cols, from.cols};
  run_rows(q.threads(), count, from.cols, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) {
      if (i + move_detail::ahead < end)
        prefetch(from.row_data(rows[static_cast<std::size_t>(i + move_detail::ahead)]), from.cols);
      std::copy_n(from.row_data(rows[static_cast<std::size_t>(i)]), from.cols, out.row_data(i));
    }
  });
}

/// to(i, j) = received[starts[i] + j], or own[-1 - starts[i] + j] where starts[i] < 0. to is (m, n), starts
/// has m elements. Throws shape_error if it has not.
template <class T>
inline void gather_rows_of_two(const device_queue<host>& q, const local::scalar<T>* own,
                               const local::scalar<T>* received, std::span<const global_index> starts,
                               matrix_view<T> to) {
  local::require_starts("gather_rows_of_two", starts.size(), local::shape_of(to));
  const auto row = [=](local_index i) {
    const global_index start = starts[static_cast<std::size_t>(i)];
    return start < 0 ? own + (-1 - start) : received + start;
  };
  run_rows(q.threads(), to.rows, to.cols, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) {
      if (i + move_detail::ahead < end) prefetch(row(i + move_detail::ahead), to.cols);
      std::copy_n(row(i), to.cols, to.row_data(i));
    }
  });
}

/// to(rows[i], j) = from[i n + j]; the rows[i] must be distinct. to is (m, n), from has rows.size() n
/// elements, every rows[i] is less than m. Throws shape_error if the number of rows does not fit in a local
/// index.
template <class T>
inline void scatter_rows(const device_queue<host>& q, const local::scalar<T>* from,
                         std::span<const local_index> rows, matrix_view<T> to) {
  const local_index count =
      base::to_local(static_cast<global_index>(rows.size()), "the number of scattered rows");
  const matrix_view<const T> in{from, count, to.cols, to.cols};
  for_rows(q.threads(), count, to.cols, [=](local_index i) {
    std::copy_n(in.row_data(i), to.cols, to.row_data(rows[static_cast<std::size_t>(i)]));
  });
}

/// to(rows[i], j) += from[i n + j]; the rows[i] must be distinct. to is (m, n), from has rows.size() n
/// elements, every rows[i] is less than m. Throws shape_error if the number of rows does not fit in a local
/// index.
template <class T>
inline void scatter_add_distinct_rows(const device_queue<host>& q, const local::scalar<T>* from,
                                      std::span<const local_index> rows, matrix_view<T> to) {
  memory::refuse_reproducible(q, "scatter_add_distinct_rows");
  const local_index count =
      base::to_local(static_cast<global_index>(rows.size()), "the number of scattered rows");
  const matrix_view<const T> in{from, count, to.cols, to.cols};
  for_rows(q.threads(), count, to.cols, [=](local_index i) {
    T* const sums = to.row_data(rows[static_cast<std::size_t>(i)]);
    for (local_index j = 0; j < to.cols; ++j) sums[j] += in(i, j);
  });
}

/// The codes of `count` rows, and the rows of such codes.
template <class T>
inline void encode_rows(const device_queue<host>& q, std::size_t count, const local::encoded_row<T>& row) {
  run_rows(q.threads(), static_cast<local_index>(count), row.width, [&](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) row(i);
  });
}
template <class T>
inline void decode_rows(const device_queue<host>& q, std::size_t count, const local::decoded_row<T>& row) {
  run_rows(q.threads(), static_cast<local_index>(count), row.width, [&](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) row(i);
  });
}

}  // namespace partita::on_host
