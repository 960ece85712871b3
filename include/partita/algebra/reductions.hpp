// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums over the rows, the columns or all of a matrix, and the row-wise softmax, in any layout.

#include <algorithm>
#include <array>
#include <cmath>

#include "partita/algebra/elementwise.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/chunked_sums.hpp"

namespace partita {

/// The sum of all entries, on every rank. Collective over the mesh. What travels: an all-reduce of one
/// element over the ranks that own different blocks.
template <class T, layout L, class Device>
T sum(const dense<T, L, Device>& x, std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  if (const auto* const verbs = algebra::reproducible_verbs_of<T>(x.mesh()))
    return static_cast<T>(verbs->sum(x));
  T total[] = {static_cast<T>(local::chunked::sum(x.mesh().queue(), x.local()))};
  if (const auto& group = x.mesh().control(x.layout().used()); group.size() > 1) group.all_reduce(total);
  return total[0];
}

/// sums(0, j) = sum over i of x(i, j), 1 x f on every rank. Collective over the mesh. What travels: an
/// all-reduce of f elements over the ranks that own different blocks. Throws shape_error.
template <class T, layout L, class Device>
void column_sums(const dense<T, L, Device>& x, dense<T, replicated, Device>& sums,
                 std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  if (sums.shape() != matrix_shape{1, x.shape().cols})
    base::throw_error<shape_error>({"column sums of ", x.shape(), " cannot be stored in ", sums.shape()});
  if (const auto* const verbs = algebra::reproducible_verbs_of<T>(x.mesh()))
    return verbs->column_sums(x, sums.values());
  fill(x.mesh().queue(), T(0), sums.local());
  local::chunked::column_sums(x.mesh().queue(), x.local(), sums.local().data + x.col_range().begin);
  x.mesh().sum_along(x.layout().used(), sums.values());
}

/// sums(i, 0) = sum over j of x(i, j), n x 1 with the row blocking of x. Collective over the mesh. What
/// travels: an all-reduce of one element per row over the ranks that share the row. Throws shape_error.
template <class T, layout L, class Device>
void row_sums(const dense<T, L, Device>& x, dense<T, partition::rows_of(L), Device>& sums,
              std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  if (sums.layout() != partition::rows_of(x.layout()) || !(sums.row_blocking() == x.row_blocking()) ||
      sums.shape().cols != 1)
    base::throw_error<shape_error>({"row sums of ", x.shape(), " cannot be stored in ", sums.shape()});
  local::chunked::row_sums(x.mesh().queue(), x.local(), sums.local().data);
  x.mesh().sum_along(x.layout().cols, sums.values());
}

namespace algebra::detail {

/// y(i, j) = exp(x(i, j) - maximum[i]) and total[i] = sum over j of y(i, j), where maximum[i] is the largest
/// x(i, j). Returns maximum and total, in memory that grows to hold them.
template <class T, layout L, class Device>
std::array<matrix_view<T>, 2> row_exponentials(const dense<T, L, Device>& x, dense<T, L, Device>& y,
                                               buffer<T, Device>& memory) {
  const auto& q = x.mesh().queue();
  const auto& group = x.mesh().along(x.layout().cols);
  const auto rows = static_cast<std::size_t>(x.local().rows);
  memory.grow(q, std::max(memory.size(), 2 * rows));
  const std::span<T> of_maximum = memory.span().first(rows), of_total = memory.span().subspan(rows, rows);
  const matrix_view<T> maximum = local::one_per_row(of_maximum.data(), x.local().rows),
                       total = local::one_per_row(of_total.data(), x.local().rows);
  local::by_rows(
      q, "rows: maximum", [&](local_index, auto from, auto to) { row_max(q, from, to.data); },
      local::reads(x.local()), local::writes(maximum));
  if (group.size() > 1) group.all_reduce(of_maximum, reduction::max);
  local::by_rows(
      q, "rows: exponential",
      [&](local_index, auto from, auto largest, auto to, auto sums) {
        softmax_exp(q, from, largest.data, to, sums.data);
      },
      local::reads(x.local()), local::reads(maximum), local::writes(y.local()), local::writes(total));
  x.mesh().sum_along(x.layout().cols, of_total);
  return {maximum, total};
}

/// x - maximum - log(total) of the row.
template <class T>
struct log_probability {
  const T *maximum, *total;
  constexpr T operator()(local_index i, local_index, T x) const {
    return x - maximum[i] - std::log(total[i]);
  }
};

}  // namespace algebra::detail

/// y(i, j) = exp(x(i, j)) / sum over k of exp(x(i, k)), shifted by the row maximum; y may alias x.
///
/// Collective over the mesh. What travels: all-reduces of one maximum and one sum per row over the ranks that
/// share the row; nothing when columns are not partitioned. `memory`: grows to two numbers for each row.
/// Throws shape_error unless x and y have the same layout and blockings.
template <class T, layout L, class Device>
void row_softmax(const dense<T, L, Device>& x, dense<T, L, Device>& y, buffer<T, Device>& memory,
                 std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  algebra::detail::require_same_blocks("row_softmax", x, y);
  const auto& q = x.mesh().queue();
  const matrix_view<T> total = algebra::detail::row_exponentials(x, y, memory)[1];
  local::by_rows(
      q, "rows: division", [&](local_index, auto sums, auto to) { divide_rows(q, sums.data, to); },
      local::reads(total), local::updates(y.local()));
}
template <class T, layout L, class Device>
void row_softmax(const dense<T, L, Device>& x, dense<T, L, Device>& y,
                 std::source_location where = std::source_location::current()) {
  buffer<T, Device> memory;
  row_softmax(x, y, memory, where);
}

namespace algebra {

/// y(i, j) = x(i, j) - log(sum over k of exp(x(i, k))), shifted by the row maximum; y must not alias x.
///
/// Collective over the mesh. What travels, `memory` and what it throws: as for row_softmax.
template <class T, layout L, class Device>
void log_softmax(const dense<T, L, Device>& x, dense<T, L, Device>& y, buffer<T, Device>& memory,
                 std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  detail::require_same_blocks("log_softmax", x, y);
  const auto& q = x.mesh().queue();
  const auto [maximum, total] = detail::row_exponentials(x, y, memory);
  local::by_rows(
      q, "rows: logarithm",
      [&](local_index, auto from, auto largest, auto sums, auto to) {
        transform_indexed(q, detail::log_probability<T>{largest.data, sums.data}, from, to);
      },
      local::reads(x.local()), local::reads(maximum), local::reads(total), local::writes(y.local()));
}
template <class T, layout L, class Device>
void log_softmax(const dense<T, L, Device>& x, dense<T, L, Device>& y,
                 std::source_location where = std::source_location::current()) {
  buffer<T, Device> memory;
  log_softmax(x, y, memory, where);
}

}  // namespace algebra

}  // namespace partita
