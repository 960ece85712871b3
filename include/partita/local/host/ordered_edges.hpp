// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products and sums of edge values on reproducible meshes: one order per element, that of the entries of a
/// row, in double, and products that are rounded with their sums only, as in exact.hpp.

#include <algorithm>
#include <array>
#include <cstdint>

#include "partita/local/head_slice.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/exact.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace ordered_detail {

/// Rows [begin, end) of y = the products with the values of each head.
template <class T, instruction_set I>
struct edge_rows {
  void operator()(const local::csr_view<T>& a, const local::head_slice& s, const T* values,
                  const matrix_view<const T>& x, const matrix_view<T>& y, local_index begin,
                  local_index end) const {
    const local_index heads = s.heads;
    for (local_index i = begin; i < end; ++i)
      for_heads(s, 0, y.cols, [&](local_index from, local_index to, local_index h) {
        exact_detail::for_strips<I>(from, to, [&](auto lanes, auto count, local_index first) {
          exact_detail::exact_spmm_strip<T, lanes, count>()(
              a, [=](local_index e) { return edge_values(values, e, heads)[h]; }, x,
              exact_detail::ordered_sums<T>(), exact_detail::strip_columns<lanes, count>{first, to}, i, i + 1,
              [&](int, local_index row, local_index j, double sum) { y(row, j) = static_cast<T>(sum); });
        });
      });
  }
};

/// values[e, h] = beta values[e, h] + the products of row i of y with the rows of x of `Count` entries, from
/// e on: sums side by side, which need not wait for each other.
template <class T, int Count>
struct entry_dots {
  void operator()(const local::csr_view<T>& a, const local::head_slice& s, const T* left,
                  const matrix_view<const T>& x, T beta, T* values, local_index e) const {
    const T* right[Count];
    for (int n = 0; n < Count; ++n) right[n] = x.row_data(a.columns[e + n]);
    for_heads(s, 0, x.cols, [&](local_index begin, local_index end, local_index h) {
      double totals[Count];
      for (int n = 0; n < Count; ++n)
        totals[n] = beta == 0 ? 0 : double{edge_values(values, e + n, s.heads)[h]};
      for (local_index j = begin; j < end; ++j)
        for (int n = 0; n < Count; ++n)
          base::multiply_add<T>(double{left[j]}, double{right[n][j]}, totals[n]);
      for (int n = 0; n < Count; ++n) edge_values(values, e + n, s.heads)[h] = static_cast<T>(totals[n]);
    });
  }
};

}  // namespace ordered_detail

/// y(i, j) = sum_e values[e, h(j)] x(col(e), j) over the entries of row i, as edge_multiply, which has the
/// shapes. Throws shape_error.
template <class T>
inline void ordered_edge_multiply(const device_queue<host>& q, local::input_csr<T> a, local::head_slice s,
                                  const local::scalar<T>* values, local::input_view<T> x, matrix_view<T> y) {
  local::require_edges("ordered_edge_multiply", a, s, local::shape_of(x), local::shape_of(y));
  with_instructions([&](auto i) {
    constexpr instruction_set set = decltype(i)::value;
    run_entry_rows(q.threads(), a, 4 * std::int64_t{y.cols}, [&](local_index begin, local_index end) {
      run_with<set>(ordered_detail::edge_rows<T, set>(), a, s, values, x, y, begin, end);
    });
  });
}

/// values[e, h] = f(row(e), e, h), followed by ordered_edge_multiply with these values, in a single pass.
/// Throws shape_error.
template <class F, class T>
inline void ordered_edge_apply_multiply(const device_queue<host>& q, local::input_csr<T> a,
                                        local::head_slice s, F f, local::scalar<T>* values,
                                        local::input_view<T> x, matrix_view<T> y) {
  local::require_edges("ordered_edge_apply_multiply", a, s, local::shape_of(x), local::shape_of(y));
  with_instructions([&](auto instructions) {
    constexpr instruction_set set = decltype(instructions)::value;
    run_entry_rows(q.threads(), a, 4 * std::int64_t{y.cols}, [&](local_index begin, local_index end) {
      const F value = f;  // compiled for no particular instructions, which might contract its sums
      for (local_index i = begin; i < end; ++i) {
        for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
          for (local_index h = 0; h < s.heads; ++h) edge_values(values, e, s.heads)[h] = value(i, e, h);
        run_with<set>(ordered_detail::edge_rows<T, set>(), a, s, values, x, y, i, i + 1);
      }
    });
  });
}

/// values[e, h] = beta values[e, h] + sum_j y(row(e), j) x(col(e), j) over the columns j of head h in their
/// order; beta is 0 or 1. y is (a.rows, f), x (a.cols, f), f whole heads. Throws shape_error.
template <class T>
inline void ordered_edge_dot(const device_queue<host>& q, local::input_csr<T> a, local::head_slice s,
                             local::input_view<T> y, local::input_view<T> x, local::scalar<T> beta,
                             T* values) {
  local::require_edges("ordered_edge_dot", a, s, local::shape_of(x), local::shape_of(y));
  constexpr int together = 4;
  const auto dots = [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) {
      local_index e = a.offsets[i];
      for (; e + together <= a.offsets[i + 1]; e += together)
        ordered_detail::entry_dots<T, together>()(a, s, y.row_data(i), x, beta, values, e);
      for (; e < a.offsets[i + 1]; ++e)
        ordered_detail::entry_dots<T, 1>()(a, s, y.row_data(i), x, beta, values, e);
    }
  };
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 4 * std::int64_t{x.cols},
                   [&](local_index begin, local_index end) { run_with<instructions>(dots, begin, end); });
  });
}

/// out(i, h) = sum_e u[e, h] v[e, h] over the entries of row i in their order. out is (a.rows, heads). Throws
/// shape_error if it is not.
template <class T>
inline void ordered_row_dot(const device_queue<host>& q, local::input_csr<T> a, local_index heads,
                            const local::scalar<T>* u, const local::scalar<T>* v, matrix_view<T> out) {
  local::require_row_values("ordered_row_dot", a, heads, "out", out);
  run_entry_rows(q.threads(), a, 4 * std::int64_t{heads}, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i)
      for (local_index h = 0; h < heads; ++h) {
        double total = 0;
        for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
          base::multiply_add<T>(double{edge_values(u, e, heads)[h]}, double{edge_values(v, e, heads)[h]},
                                total);
        out(i, h) = static_cast<T>(total);
      }
  });
}

/// out(i, h) = sum_e values[e, h] over the entries of row i in their order. out is (a.rows, heads). Throws
/// shape_error if it is not.
template <class T>
inline void ordered_row_sum(const device_queue<host>& q, local::input_csr<T> a, local_index heads,
                            const local::scalar<T>* values, matrix_view<T> out) {
  local::require_row_values("ordered_row_sum", a, heads, "out", out);
  run_entry_rows(q.threads(), a, heads, [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i)
      for (local_index h = 0; h < heads; ++h) {
        double total = 0;
        for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
          total += double{edge_values(values, e, heads)[h]};
        out(i, h) = static_cast<T>(total);
      }
  });
}

}  // namespace partita::on_host
