#pragma once
/// Largest neighbours of rows, and sums into listed rows. Sums go into one element in the
/// order of the rows they come from.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace aggregate_detail {

inline constexpr local_index strip = 32;

/// Columns [j, j + width) of row i, kept in registers while the entries go by.
template <class T, class Width>
void row_strip(const local::csr_view<T>& a, local_index i, local_index j, Width width, matrix_view<const T> x,
               matrix_view<T> y, matrix_view<local_index> arg) {
  T largest[strip] = {};
  local_index where[strip];
  const local_index begin = a.offsets[i], end = a.offsets[i + 1];
  const local_index first = begin < end ? a.columns[begin] : -1;
  for (local_index c = 0; c < width; ++c) {
    if (begin < end) largest[c] = x(first, j + c);
    where[c] = first;
  }
  for (local_index e = begin + 1; e < end; ++e) {
    const local_index index = a.columns[e];
    const T* const from = x.row(index) + j;
    for (local_index c = 0; c < width; ++c) {
      const bool better = from[c] > largest[c];
      largest[c] = better ? from[c] : largest[c];
      where[c] = better ? index : where[c];
    }
  }
  std::copy_n(largest, static_cast<local_index>(width), y.row(i) + j);
  std::copy_n(where, static_cast<local_index>(width), arg.row(i) + j);
}

}  // namespace aggregate_detail

/// y(i, j) = max_e x(col(e), j) over the entries e of row i, and arg(i, j) = col(e) of the first entry that
/// attained it; 0 and -1 for a row without entries. x is (a.cols, f), y and arg are (a.rows, f). Throws
/// shape_error when the shapes do not fit.
template <class T>
void max_aggregate(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                   matrix_view<T> y, matrix_view<local_index> arg) {
  local::require_product("max_aggregate", a, x, y, "the aggregate");
  local::require_equal("max_aggregate", "arg", local::shape_of(arg), "y", local::shape_of(y));
  using aggregate_detail::strip;
  run_entry_rows(q.threads(), a, x.cols, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i)
      for (local_index j = 0; j < y.cols; j += strip)
        if (const local_index width = std::min(strip, y.cols - j); width == strip)
          aggregate_detail::row_strip(a, i, j, std::integral_constant<local_index, strip>{}, x, y, arg);
        else
          aggregate_detail::row_strip(a, i, j, width, x, y, arg);
  });
}

/// dx(arg(i, j), j) += dy(i, j) in the order of i, where arg(i, j) is not -1. arg and dy are (m, f), dx is
/// (k, f), k above every arg(i, j). Throws shape_error when the shapes do not fit.
template <class T>
void max_scatter(const device_queue<host>& q, matrix_view<const local_index> arg, local::input_view<T> dy,
                 matrix_view<T> dx) {
  local::require_equal("max_scatter", "arg", local::shape_of(arg), "dy", local::shape_of(dy));
  local::require_equal("max_scatter", "dx", local::shape_of(dx), "a block with the columns of dy",
                       matrix_shape{dx.rows, dy.cols});
  const std::int64_t work = std::int64_t{dy.rows} * dy.cols;
  run_targets<T>(q.threads(), dx.rows, dx.cols, work, [=](const owned_block& own) {
    for (local_index i = 0; i < dy.rows; ++i)
      for (local_index j = own.col_begin; j < own.col_end; ++j)
        if (const local_index row = arg(i, j); own.has_row(row)) dx(row, j) += dy(i, j);
  });
}

/// to(rows[i], j) += from[i n + j] in the order of i; rows may repeat. to is (m, n), from has rows.size() n
/// elements, every rows[i] is below m. Throws nothing.
template <class T>
void scatter_add_rows(const device_queue<host>& q, const local::scalar<T>* from,
                      std::span<const local_index> rows, matrix_view<T> to) {
  const std::int64_t work = static_cast<std::int64_t>(rows.size()) * to.cols;
  run_targets<T>(q.threads(), to.rows, to.cols, work, [=](const owned_block& own) {
    const T* summands = from;
    for (const local_index row : rows) {
      if (own.has_row(row)) {
        T* const sums = to.row(row);
        for (local_index j = own.col_begin; j < own.col_end; ++j) sums[j] += summands[j];
      }
      summands += to.cols;
    }
  });
}

}  // namespace partita::on_host
