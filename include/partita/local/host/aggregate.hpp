#pragma once
/// The largest neighbours of rows, and the way back to them.

#include <algorithm>
#include <type_traits>

#include "partita/local/csr_inverse.hpp"
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
inline void row_strip(const local::csr_view<T>& a, local_index i, local_index j, Width width,
                      matrix_view<const T> x, matrix_view<T> y, matrix_view<local_index> arg) {
  T largest[strip] = {};
  local_index where[strip];
  const local_index begin = a.offsets[i], end = a.offsets[i + 1];
  for (local_index c = 0; c < width; ++c) {
    if (begin < end) largest[c] = x(a.columns[begin], j + c);
    where[c] = begin < end ? begin : -1;
  }
  for (local_index e = begin + 1; e < end; ++e) {
    const T* const from = x.row(a.columns[e]) + j;
    for (local_index c = 0; c < width; ++c) {
      const bool better = from[c] > largest[c];
      largest[c] = better ? from[c] : largest[c];
      where[c] = better ? e : where[c];
    }
  }
  std::copy_n(largest, static_cast<local_index>(width), y.row(i) + j);
  std::copy_n(where, static_cast<local_index>(width), arg.row(i) + j);
}

/// Columns [j, j + width) of row i of dx, kept in registers while the entries go by that may have won them.
template <class T, class Width>
inline void scatter_strip(const local::csr_inverse<host>& a, local_index i, local_index j, Width width,
                          matrix_view<const local_index> arg, matrix_view<const T> dy, matrix_view<T> dx) {
  T sum[strip];
  std::copy_n(dx.row(i) + j, static_cast<local_index>(width), sum);
  for (local_index t = a.offsets.data()[i]; t < a.offsets.data()[i + 1]; ++t) {
    const local_index entry = a.entry_numbers.data()[t], row = a.entry_rows.data()[t];
    const local_index* const winner = arg.row(row) + j;
    const T* const from = dy.row(row) + j;
    for (local_index c = 0; c < width; ++c) sum[c] += winner[c] == entry ? from[c] : T{0};
  }
  std::copy_n(sum, static_cast<local_index>(width), dx.row(i) + j);
}

/// f(row, column, width) for strips of a (rows, cols) block; the width of whole ones is a constant.
template <class F>
inline void for_strips(local_index begin, local_index end, local_index cols, const F& f) {
  for (local_index i = begin; i < end; ++i)
    for (local_index j = 0; j < cols; j += strip)
      if (const local_index width = std::min(strip, cols - j); width == strip)
        f(i, j, std::integral_constant<local_index, strip>{});
      else
        f(i, j, width);
}

}  // namespace aggregate_detail

/// y(i, j) = max_e x(col(e), j) over the entries e of row i, and arg(i, j) is the first entry that attained
/// it; 0 and -1 for a row without entries. x is (a.cols, f), y and arg are (a.rows, f). Throws shape_error
/// when the shapes do not fit.
template <class T>
inline void max_aggregate(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                          matrix_view<T> y, matrix_view<local_index> arg) {
  local::require_product("max_aggregate", a, x, y, "the aggregate");
  local::require_equal("max_aggregate", "arg", local::shape_of(arg), "y", local::shape_of(y));
  run_entry_rows(q.threads(), a, x.cols, [=](local_index begin, local_index end) {
    aggregate_detail::for_strips(begin, end, y.cols, [&](local_index i, local_index j, auto width) {
      aggregate_detail::row_strip(a, i, j, width, x, y, arg);
    });
  });
}

/// dx(col(e), j) += dy(row(e), j) over the entries e with arg(row(e), j) = e, those of one column in their
/// order. `a` is the inverse of the pattern that max_aggregate had. arg and dy are (a.rows, f), dx is
/// (a.cols, f). Throws shape_error when the shapes do not fit.
template <class T>
inline void max_scatter(const device_queue<host>& q, const local::csr_inverse<host>& a,
                        matrix_view<const local_index> arg, local::input_view<T> dy, matrix_view<T> dx) {
  const local::csr_view<T> columns = a.transposed<T>();
  local::require_product("max_scatter", columns, dy, dx, "the gradient");
  local::require_equal("max_scatter", "arg", local::shape_of(arg), "dy", local::shape_of(dy));
  run_entry_rows(q.threads(), columns, dx.cols, [&](local_index begin, local_index end) {
    aggregate_detail::for_strips(begin, end, dx.cols, [&](local_index i, local_index j, auto width) {
      aggregate_detail::scatter_strip<T>(a, i, j, width, arg, dy, dx);
    });
  });
}

}  // namespace partita::on_host
