#pragma once
/// Largest neighbours of rows, tile after tile, and sums into listed rows. Sums go into one element in the
/// order of the rows they come from.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
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

/// Columns [j, j + width) of row i, kept in registers while the entries go by. A row that has had no
/// entries has none in any column, and begins with its first one.
template <class T, class Width>
void row_strip(const csr_view<T>& a, local_index i, local_index j, Width width, matrix_view<const T> x,
               local_index column_offset, bool first, matrix_view<T> y, matrix_view<local_index> arg) {
  T largest[strip];
  local_index where[strip];
  T* const y_row = y.row(i) + j;
  local_index* const arg_row = arg.row(i) + j;
  local_index e = a.offsets[i];
  const bool fresh = first || arg_row[0] < 0, taken = fresh && e < a.offsets[i + 1];
  const T* const start = taken ? x.row(a.columns[e]) + j : y_row;
  const local_index start_index = taken ? column_offset + a.columns[e++] : -1;
  for (local_index c = 0; c < width; ++c) {
    largest[c] = fresh && !taken ? std::numeric_limits<T>::lowest() : start[c];
    where[c] = fresh ? start_index : arg_row[c];
  }
  for (; e < a.offsets[i + 1]; ++e) {
    const local_index index = column_offset + a.columns[e];
    const T* const from = x.row(a.columns[e]) + j;
    for (local_index c = 0; c < width; ++c) {
      const bool better = from[c] > largest[c];
      largest[c] = better ? from[c] : largest[c];
      where[c] = better ? index : where[c];
    }
  }
  for (local_index c = 0; c < width; ++c) {
    y_row[c] = largest[c];
    arg_row[c] = where[c];
  }
}

}  // namespace aggregate_detail

/// y(i, j) = max(y(i, j), max_e x(col(e), j)) over the entries e of row i, and arg(i, j) = column_offset +
/// col(e) of the first entry that attained it, in this call or an earlier one. `first` forgets y and arg.
/// While a row has had no entries, arg = -1 and y is the lowest finite number. x is (a.cols, f), y and arg
/// are (a.rows, f). Throws shape_error when the shapes do not fit.
template <class T>
void max_aggregate(const queue<host>& q, std::type_identity_t<csr_view<T>> a,
                   std::type_identity_t<matrix_view<const T>> x, local_index column_offset, bool first,
                   matrix_view<T> y, matrix_view<local_index> arg) {
  require_equal("max_aggregate", "y", shape_of(y), "the aggregate", {a.rows, x.cols});
  require_equal("max_aggregate", "x", shape_of(x), "the x that a needs", {a.cols, x.cols});
  require_equal("max_aggregate", "arg", shape_of(arg), "y", shape_of(y));
  run_entry_rows(q.threads(), a, x.cols, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i)
      for (local_index j = 0; j < y.cols; j += aggregate_detail::strip) {
        const local_index width = std::min(aggregate_detail::strip, y.cols - j);
        if (width == aggregate_detail::strip)
          aggregate_detail::row_strip(a, i, j, std::integral_constant<local_index, aggregate_detail::strip>{},
                                      x, column_offset, first, y, arg);
        else
          aggregate_detail::row_strip(a, i, j, width, x, column_offset, first, y, arg);
      }
  });
}

/// y(i, j) = 0 where arg(i, j) = -1. Both (m, n). Throws shape_error when the shapes differ.
template <class T>
void finish_max(const queue<host>& q, matrix_view<T> y, matrix_view<const local_index> arg) {
  require_equal("finish_max", "arg", shape_of(arg), "y", shape_of(y));
  run_rows(q.threads(), y.rows, y.cols, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i)
      for (local_index j = 0; j < y.cols; ++j) y(i, j) = arg(i, j) == -1 ? T{0} : y(i, j);
  });
}

/// dx(arg(i, j) - column_offset, j) += dy(i, j) in the order of i, where dx has such a row. arg and dy are
/// (m, f), dx is (k, f). Throws shape_error when the shapes do not fit.
template <class T>
void max_scatter(const queue<host>& q, matrix_view<const local_index> arg,
                 std::type_identity_t<matrix_view<const T>> dy, local_index column_offset,
                 matrix_view<T> dx) {
  require_equal("max_scatter", "arg", shape_of(arg), "dy", shape_of(dy));
  require_equal("max_scatter", "dx", shape_of(dx), "a block with the columns of dy", {dx.rows, dy.cols});
  const std::int64_t work = std::int64_t{dy.rows} * dy.cols;
  run_targets<T>(q.threads(), dx.rows, dx.cols, work, [=](const owned_block& own) {
    for (local_index i = 0; i < dy.rows; ++i)
      for (local_index j = own.col_begin; j < own.col_end; ++j) {
        const local_index source = arg(i, j);
        if (source < 0) continue;
        const local_index row = source - column_offset;
        if (own.has_row(row)) dx(row, j) += dy(i, j);
      }
  });
}

/// to(rows[i], j) += from[i n + j] in the order of i; rows may repeat. to is (m, n), from has rows.size() n
/// elements, every rows[i] is below m. Throws nothing.
template <class T>
void scatter_add_rows(const queue<host>& q, const std::type_identity_t<T>* from,
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
