// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Max aggregation over neighbours, and its gradient.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/parallel.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace aggregate_detail {

inline constexpr local_index strip = 32;

/// Columns [j, j + width) of row i, accumulated in registers.
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
    const T* const from = x.row_data(a.columns[e]) + j;
    for (local_index c = 0; c < width; ++c) {
      const bool better = !(from[c] <= largest[c]) & (largest[c] == largest[c]);  // the first NaN wins
      largest[c] = better ? from[c] : largest[c];
      where[c] = better ? e : where[c];
    }
  }
  std::copy_n(largest, static_cast<local_index>(width), y.row_data(i) + j);
  std::copy_n(where, static_cast<local_index>(width), arg.row_data(i) + j);
}

template <class T>
struct maxima {
  local::csr_view<T> a;
  matrix_view<const T> x;
  matrix_view<T> y;
  matrix_view<local_index> arg;

  void operator()(local_index begin, local_index end) const {
    for (local_index i = begin; i < end; ++i)
      for (local_index j = 0; j < y.cols; j += strip)
        if (const local_index width = std::min(strip, y.cols - j); width == strip)
          row_strip(a, i, j, std::integral_constant<local_index, strip>{}, x, y, arg);
        else
          row_strip(a, i, j, width, x, y, arg);
  }
};

}  // namespace aggregate_detail

/// y(i, j) = max_e x(col(e), j) over the entries e of row i, and arg(i, j) is the first entry that attains
/// it; a NaN wins over all numbers. 0 and -1 for an empty row. x is (a.cols, f), y and arg are (a.rows, f).
/// Throws shape_error if the shapes do not match.
template <class T>
inline void max_aggregate(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                          matrix_view<T> y, matrix_view<local_index> arg) {
  local::require_product("max_aggregate", a, x, y, "the aggregate");
  local::require_equal("max_aggregate", "arg", local::shape_of(arg), "y", local::shape_of(y));
  const aggregate_detail::maxima<T> rows{a, x, y, arg};
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, x.cols,
                   [&](local_index begin, local_index end) { run_with<instructions>(rows, begin, end); });
  });
}

/// The form of a pattern that max_scatter takes, built once per pattern: the pattern itself on the host, its
/// inverse on CUDA devices.
template <class T>
inline local::csr_view<T> max_scatter_pattern(const device_queue<host>&, const local::csr_view<T>& a) {
  return a;
}

/// dx(col(e), j) += dy(row(e), j) over the entries e with arg(row(e), j) = e, those of one column in order.
/// `a` is the max_scatter_pattern of the pattern given to max_aggregate. arg and dy are (a.rows, f), dx is
/// (a.cols, f). Parallel over columns. Throws shape_error if the shapes do not match.
template <class T>
inline void max_scatter(const device_queue<host>& q, local::input_csr<T> a,
                        matrix_view<const local_index> arg, local::input_view<T> dy, matrix_view<T> dx) {
  local::require_product("max_scatter", matrix_shape{a.cols, a.rows}, dy, dx, "the gradient");
  local::require_equal("max_scatter", "arg", local::shape_of(arg), "dy", local::shape_of(dy));
  constexpr local_index line = 64 / sizeof(T);
  const auto columns = [=](local_index begin, local_index end) {
    for (local_index i = 0; i < dy.rows; ++i)
      for (local_index j = begin * line; j < std::min(end * line, dx.cols); ++j)
        if (const local_index e = arg(i, j); e >= 0) dx(a.columns[e], j) += dy(i, j);
  };
  with_instructions([&](auto instructions) {
    run_rows(q.threads(), (dx.cols + line - 1) / line, std::int64_t{dy.rows} * line,
             [&](local_index begin, local_index end) { run_with<instructions>(columns, begin, end); });
  });
}

}  // namespace partita::on_host
