// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products and sums of edge values on reproducible meshes: one order per element, that of the entries of a
/// row, in double, and products of exact_factors only, as in exact.hpp.

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

struct whole_term {
  constexpr void add(double t, double& sum) const { sum += t; }
};

/// y(i, :) = the products of row i.
template <class T>
inline void multiply_row(const local::csr_view<T>& a, const local::head_slice& s, const T* values,
                         matrix_view<const T> x, local_index i, matrix_view<T> y) {
  constexpr local_index strip = 32;
  for_heads(s, 0, y.cols, [&](local_index begin, local_index end, local_index h) {
    for (local_index first = begin; first < end; first += strip) {
      const local_index width = std::min(strip, end - first);
      std::array<double, strip> sums{};
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
        exact_detail::add_products(edge_values(values, e, s.heads)[h], x.row_data(a.columns[e]) + first,
                                   width, whole_term{}, sums.data());
      for (local_index j = 0; j < width; ++j)
        y(i, first + j) = static_cast<T>(sums[static_cast<std::size_t>(j)]);
    }
  });
}

/// total += x y.
template <class T>
inline void add_product(T x, T y, double& total) {
  for (const double f : base::exact_factors(x))
    for (const double g : base::exact_factors(y)) total += f * g;
}

}  // namespace ordered_detail

/// y(i, j) = sum_e values[e, h(j)] x(col(e), j) over the entries of row i, as edge_multiply, which has the
/// shapes. Throws shape_error.
template <class T>
inline void ordered_edge_multiply(const device_queue<host>& q, local::input_csr<T> a, local::head_slice s,
                                  const local::scalar<T>* values, local::input_view<T> x, matrix_view<T> y) {
  local::require_edges("ordered_edge_multiply", a, s, local::shape_of(x), local::shape_of(y));
  const auto multiply = [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) ordered_detail::multiply_row<T>(a, s, values, x, i, y);
  };
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 4 * std::int64_t{y.cols},
                   [&](local_index begin, local_index end) { run_with<instructions>(multiply, begin, end); });
  });
}

/// values[e, h] = f(row(e), e, h), followed by ordered_edge_multiply with these values, in a single pass.
/// Throws shape_error.
template <class F, class T>
inline void ordered_edge_apply_multiply(const device_queue<host>& q, local::input_csr<T> a,
                                        local::head_slice s, F f, local::scalar<T>* values,
                                        local::input_view<T> x, matrix_view<T> y) {
  local::require_edges("ordered_edge_apply_multiply", a, s, local::shape_of(x), local::shape_of(y));
  const auto multiply = [=](local_index begin, local_index end) {
    for (local_index i = begin; i < end; ++i) ordered_detail::multiply_row<T>(a, s, values, x, i, y);
  };
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 4 * std::int64_t{y.cols}, [&](local_index begin, local_index end) {
      const F value = f;  // compiled for no particular instructions, which might contract its sums
      for (local_index i = begin; i < end; ++i) {
        for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
          for (local_index h = 0; h < s.heads; ++h) edge_values(values, e, s.heads)[h] = value(i, e, h);
        run_with<instructions>(multiply, i, i + 1);
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
  run_entry_rows(q.threads(), a, 4 * std::int64_t{x.cols}, [=](local_index first, local_index last) {
    for (local_index i = first; i < last; ++i)
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
        const T* const left = y.row_data(i);
        const T* const right = x.row_data(a.columns[e]);
        for_heads(s, 0, x.cols, [&](local_index begin, local_index end, local_index h) {
          T& value = edge_values(values, e, s.heads)[h];
          double total = beta == 0 ? 0 : double{value};
          for (local_index j = begin; j < end; ++j) ordered_detail::add_product(left[j], right[j], total);
          value = static_cast<T>(total);
        });
      }
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
          ordered_detail::add_product(edge_values(u, e, heads)[h], edge_values(v, e, heads)[h], total);
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
