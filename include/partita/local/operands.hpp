// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Operands of passes: what a kernel does to a block, said by the type of what it gets.

#include <cstddef>
#include <type_traits>

#include "partita/local/view.hpp"
#include "partita/memory/out_of_core.hpp"

namespace partita::local {

namespace detail {

template <class T>
matrix_view<T> rows_of(const operand& x) {
  return {reinterpret_cast<T*>(x.data), x.rows, x.cols, x.stride / static_cast<std::ptrdiff_t>(sizeof(T))};
}

}  // namespace detail

/// An operand that a kernel gets as a view of T or, of entries, as a pointer.
template <class T, along Has>
struct typed_operand : operand {
  using number = std::remove_const_t<T>;
  static constexpr bool gathers = Has == along::columns && std::is_const_v<T>,
                        adds = Has == along::columns && !std::is_const_v<T>;

  static auto view_of(const operand& x) {
    if constexpr (Has == along::entries)
      return reinterpret_cast<T*>(x.data);
    else
      return detail::rows_of<T>(x);
  }
};

namespace detail {

template <along Has, class T>
typed_operand<T, Has> operand_of(matrix_view<T> x, bool is_read, bool is_written) {
  return {{.data = reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(x.data)),
           .rows = x.rows,
           .cols = x.cols,
           .stride = x.row_stride * static_cast<std::ptrdiff_t>(sizeof(T)),
           .element = sizeof(T),
           .has = Has,
           .is_read = is_read,
           .is_written = is_written}};
}

}  // namespace detail

/// Rows of a pass.
template <class T>
auto reads(matrix_view<T> x) {
  return detail::operand_of<along::rows>(matrix_view<const T>(x), true, false);
}
template <class T>
auto writes(matrix_view<T> y) {
  return detail::operand_of<along::rows>(y, false, true);
}
template <class T>
auto updates(matrix_view<T> y) {
  return detail::operand_of<along::rows>(y, true, true);
}
/// The rows of y = f(...) + beta y.
template <class T>
auto result(matrix_view<T> y, scalar<T> beta) {
  return beta == T(0) ? writes(y) : updates(y);
}
/// An operand with so many multiplications for each of its elements.
template <class Operand>
Operand multiplied(Operand x, local_index each) {
  x.work = static_cast<double>(each);
  return x;
}
/// A vector with an element for each row.
template <class T>
matrix_view<T> one_per_row(T* data, local_index rows) {
  return {data, rows, 1, 1};
}

/// Values of the entries of a pattern, `width` of them for each: (entries x width), entry e as in the
/// pattern's offsets. Results that are not written are not brought back.
template <class T>
auto entry_operand(T* values, local_index width, bool is_read, bool is_written) {
  return detail::operand_of<along::entries>(matrix_view<T>{values, 0, width, width}, is_read, is_written);
}
template <class T>
auto reads_entries(const T* values, local_index width) {
  return entry_operand(values, width, true, false);
}
template <class T>
auto writes_entries(T* values, local_index width) {
  return entry_operand(values, width, false, true);
}
template <class T>
auto updates_entries(T* values, local_index width) {
  return entry_operand(values, width, true, true);
}
template <class T>
auto consumes_entries(T* values, local_index width) {
  return entry_operand(values, width, true, false);
}
/// Memory for values of the entries, with any values.
template <class T>
auto scratch_entries(T* values, local_index width) {
  return entry_operand(values, width, false, false);
}

/// Rows that the columns of the pattern index: gathered for each chunk, or the sums of the chunks are added
/// to beta times the rows.
template <class T>
auto gathers(matrix_view<T> x) {
  return detail::operand_of<along::columns>(matrix_view<const T>(x), true, false);
}
template <class T>
auto adds(matrix_view<T> y, scalar<T> beta) {
  auto of = detail::operand_of<along::columns>(y, false, true);
  of.beta = static_cast<double>(beta);
  return of;
}

}  // namespace partita::local
