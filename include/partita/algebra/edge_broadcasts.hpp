// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of the rows of an edge matrix, and functions of its values and of one number for each row or column.

#include "partita/algebra/edge_verbs.hpp"
#include "partita/algebra/elementwise.hpp"

namespace partita {

namespace algebra::detail {

template <class T, class Device>
void require_row_numbers(const char* what, const edge_matrix<T, Device>& x, const edge_matrix<T, Device>& r) {
  if (x.pattern().local() == r.pattern().local() && r.heads() == 1) return;
  base::throw_error<shape_error>({what, " of ", x.heads(),
                                  " columns of edges needs one number for each edge of ",
                                  "the same pattern, not ", r.heads()});
}

}  // namespace algebra::detail

/// sums(e, 0) = the sum over h of x(e, h) (entries x 1). Local; no communication. Throws shape_error unless
/// both have the same pattern.
template <class T, class Device>
void row_sums(const edge_matrix<T, Device>& x, edge_matrix<T, Device>& sums) {
  algebra::detail::require_row_numbers("row_sums", x, sums);
  algebra::detail::for_entry_rows(
      [&](auto rows, auto to) { local::chunked::row_sums(x.mesh().queue(), rows, to.data); }, x, sums);
}

/// y(e, h) = f(x(e, h), r(e, 0)), r (entries x 1); y may be x. Local; no communication. Throws shape_error.
template <class T, class Device, class Function>
void transform_rows(const edge_matrix<T, Device>& x, const edge_matrix<T, Device>& r,
                    edge_matrix<T, Device>& y, Function f) {
  algebra::detail::require_row_numbers("transform_rows", x, r);
  algebra::detail::require_same_values("transform_rows", x, y);
  const auto& q = x.mesh().queue();
  algebra::detail::for_entry_rows(
      [&](auto from, auto values, auto to) {
        local::by_rows(
            q, "rows: indexed transform",
            [&](local_index, matrix_view<const T> in, matrix_view<const T> of_rows, matrix_view<T> out) {
              transform_indexed(q, algebra::detail::with_row_value<Function, T>{f, of_rows.data}, in, out);
            },
            local::reads(from), local::reads(values), local::writes(to));
      },
      x, r, y);
}

/// y(e, h) = f(x(e, h), c(0, h)), c 1 x k on every rank; y may be x. Local; no communication. Throws
/// shape_error.
template <class T, class Device, class Function>
void transform_columns(const edge_matrix<T, Device>& x, const dense<T, replicated, Device>& c,
                       edge_matrix<T, Device>& y, Function f) {
  algebra::detail::require_same_values("transform_columns", x, y);
  if (c.shape() != matrix_shape{1, x.heads()})
    base::throw_error<shape_error>(
        {"transform_columns: ", x.heads(), " columns of edges do not match the values of ", c.shape()});
  const algebra::detail::with_column_value<Function, T> of_column{f, c.local().data};
  algebra::detail::for_entry_rows(
      [&](auto from, auto to) { local::chunked::transform_indexed(x.mesh().queue(), of_column, from, to); },
      x, y);
}

}  // namespace partita
