// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Copy, pack and unpack, row gather and scatter, and sparse-to-dense conversion.

#include <span>

#include "partita/local/cuda/assign.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/local/row_encoding.hpp"
#include "partita/local/shapes.hpp"

namespace partita::on_cuda {

template <class T>
struct copied {
  matrix_view<const T> from;

  template <int Width>
  constexpr pack_of<T, Width> at(local_index i, local_index j) const {
    return load<Width>(from.row_data(i) + j);
  }
};

template <class T>
struct copied_from_rows {
  matrix_view<const T> from;
  const local_index* rows;

  template <int Width>
  constexpr pack_of<T, Width> at(local_index i, local_index j) const {
    return load<Width>(from.row_data(rows[i]) + j);
  }
};

template <class T>
struct everywhere {
  T value;

  template <int Width>
  constexpr pack_of<T, Width> at(local_index, local_index) const {
    pack_of<T, Width> values{};
    for (T& element : values.at) element = value;
    return values;
  }
};

template <class T>
struct put_entry {
  const local_index* columns;
  const T* values;
  matrix_view<T> y;

  constexpr void operator()(local_index row, local_index e) const { y(row, columns[e]) = values[e]; }
};

template <class T>
struct copy_from_starts {
  const T *own, *received;
  const global_index* starts;
  matrix_view<T> to;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, to.cols);
    const global_index start = starts[at.row];
    to(at.row, at.col) = start < 0 ? own[-1 - start + at.col] : received[start + at.col];
  }
};

template <class T>
struct put_in_row_of_list {
  const T* from;
  const local_index* rows;
  matrix_view<T> to;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, to.cols);
    to(rows[at.row], at.col) = from[thread];
  }
};

template <class T>
struct copy_between_lists {
  matrix_view<const T> from;
  const local_index *rows, *places;
  matrix_view<T> to;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, to.cols);
    to(places[at.row], at.col) = from(rows[at.row], at.col);
  }
};

template <class T>
struct add_to_row_of_list {
  const T* from;
  const local_index* rows;
  matrix_view<T> to;

  constexpr void operator()(std::int64_t thread) const {
    const cell at = cell_of(thread, to.cols);
    to(rows[at.row], at.col) += from[thread];
  }
};

/// As on_host::copy.
template <class T>
void copy(const device_queue<cuda_device>& q, local::input_view<T> from, matrix_view<T> to) {
  local::require_equal("copy", "from", local::shape_of(from), "to", local::shape_of(to));
  assign(q, to, copied<T>{from}, from);
}

/// As on_host::fill.
template <class T>
void fill(const device_queue<cuda_device>& q, local::scalar<T> value, matrix_view<T> y) {
  assign(q, y, everywhere<T>{value});
}

/// As on_host::pack.
template <class T>
void pack(const device_queue<cuda_device>& q, local::input_view<T> from, T* to) {
  copy(q, from, matrix_view<T>{to, from.rows, from.cols, from.cols});
}

/// As on_host::unpack.
template <class T>
void unpack(const device_queue<cuda_device>& q, const local::scalar<T>* from, matrix_view<T> to) {
  copy(q, matrix_view<const T>{from, to.rows, to.cols, to.cols}, to);
}

/// As on_host::sparse_to_dense.
template <class T>
void sparse_to_dense(const device_queue<cuda_device>& q, local::input_csr<T> a, matrix_view<T> y) {
  local::require_equal("sparse_to_dense", "a", local::shape_of(a), "y", local::shape_of(y));
  fill(q, T(0), y);
  for_entries(q, rows_of(a), put_entry<T>{a.columns, a.values, y});
}

/// As on_host::move_rows; `rows` and `places` are in device memory.
template <class T>
void move_rows(const device_queue<cuda_device>& q, local::input_view<T> from,
               std::span<const local_index> rows, std::span<const local_index> places, matrix_view<T> to) {
  const local_index count =
      base::to_local(static_cast<global_index>(rows.size()), "the number of moved rows");
  on_cuda::launch(q, std::int64_t{count} * to.cols,
                  copy_between_lists<T>{from, rows.data(), places.data(), to});
}

/// As on_host::gather_rows; `rows` is in device memory.
template <class T>
void gather_rows(const device_queue<cuda_device>& q, local::input_view<T> from,
                 std::span<const local_index> rows, T* to) {
  const local_index count =
      base::to_local(static_cast<global_index>(rows.size()), "the number of gathered rows");
  assign(q, matrix_view<T>{to, count, from.cols, from.cols}, copied_from_rows<T>{from, rows.data()}, from);
}

/// As on_host::gather_rows_of_two; `starts` is in device memory.
template <class T>
void gather_rows_of_two(const device_queue<cuda_device>& q, const local::scalar<T>* own,
                        const local::scalar<T>* received, std::span<const global_index> starts,
                        matrix_view<T> to) {
  local::require_starts("gather_rows_of_two", starts.size(), local::shape_of(to));
  on_cuda::launch(q, std::int64_t{to.rows} * to.cols, copy_from_starts<T>{own, received, starts.data(), to});
}

/// As on_host::scatter_rows; `rows` is in device memory.
template <class T>
void scatter_rows(const device_queue<cuda_device>& q, const local::scalar<T>* from,
                  std::span<const local_index> rows, matrix_view<T> to) {
  const local_index count =
      base::to_local(static_cast<global_index>(rows.size()), "the number of scattered rows");
  on_cuda::launch(q, std::int64_t{count} * to.cols, put_in_row_of_list<T>{from, rows.data(), to});
}

/// As on_host::scatter_add_distinct_rows; `rows` is in device memory.
template <class T>
void scatter_add_distinct_rows(const device_queue<cuda_device>& q, const local::scalar<T>* from,
                               std::span<const local_index> rows, matrix_view<T> to) {
  const local_index count =
      base::to_local(static_cast<global_index>(rows.size()), "the number of scattered rows");
  on_cuda::launch(q, std::int64_t{count} * to.cols, add_to_row_of_list<T>{from, rows.data(), to});
}

/// As on_host::encode_rows; everything is in device memory.
template <class T>
void encode_rows(const device_queue<cuda_device>& q, std::size_t count, const local::encoded_row<T>& row) {
  on_cuda::launch(q, static_cast<std::int64_t>(count), row);
}
template <class T>
void decode_rows(const device_queue<cuda_device>& q, std::size_t count, const local::decoded_row<T>& row) {
  on_cuda::launch(q, static_cast<std::int64_t>(count), row);
}

}  // namespace partita::on_cuda
