// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of dense blocks with a sparse pattern that has one value per entry and head.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/entry_scores.hpp"
#include "partita/local/host/head_dots.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/row_strips.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace edge_product_detail {

/// `order` maps entries to value indices; null for the identity.
template <class T>
struct product {
  local::csr_view<T> a;
  local::head_slice s;
  const T* values;
  const local_index* order;
  matrix_view<const T> x;
  T beta;
  matrix_view<T> y;

  /// Those of head h; without entries there are none.
  const T* values_of(local_index h) const { return values == nullptr ? values : values + h; }
};

/// Rows [begin, end) of y: all columns in one pass if vectors can lie within heads, else head by head.
template <instruction_set I, class T>
inline void rows(const product<T>& p, local_index begin, local_index end) {
  if (p.y.cols == 0) return;
  const strip_detail::operands<T> all{p.a, p.x, {.beta = p.beta}, p.y};
  const local_index head = p.s.first_col / p.s.head_width, first = p.s.first_col % p.s.head_width;
  const local_index cuts = p.s.head_width | first | p.y.cols, shared = cuts & -cuts;  // a power of two
  const bool one_head = first + p.y.cols <= p.s.head_width;
  if (!one_head && shared * sizeof(T) >= strip_detail::shortest<T, strip_detail::value_of_head<T>>)
    return strip_detail::multiply_rows<I>(
        all, strip_detail::value_of_head<T>{p.values_of(head), p.order, p.s.heads, p.s.head_width, first},
        shared, begin, end);
  for (local_index i = begin; i < end; i += one_head ? end - begin : row_block)
    for_heads(p.s, 0, p.y.cols, [&](local_index from, local_index to, local_index h) {
      strip_detail::multiply_rows<I>(all.columns(from, to),
                                     strip_detail::one_value<T>{p.values_of(h), p.order, p.s.heads}, 0, i,
                                     one_head ? end : std::min(i + row_block, end));
    });
}

template <class T>
inline void multiply(const device_queue<host>& q, const product<T>& p) {
  memory::refuse_reproducible(q, "a product with edge values");
  with_instructions([&](auto instructions) {
    const auto sum = [&](const local::csr_view<T>& a, const matrix_view<T>& y, bool whole, local_index begin,
                         local_index end) {
      rows<instructions>(product<T>{a, p.s, p.values, p.order, p.x, whole ? p.beta : T{0}, y}, begin, end);
    };
    run_row_sums<T>(q.threads(), p.a, p.y, sum, [&](local_index row, const T* total) {
      strip_detail::finish_shared_row<instructions>(
          strip_detail::operands<T>{p.a, p.x, {.beta = p.beta}, p.y},
          strip_detail::one_value<T>{nullptr, nullptr}, total, row);
    });
  });
}

/// The values of rows [begin, end), for the heads of y's columns.
template <instruction_set I, class T, class F>
struct values_of {
  const F& given;

  void operator()(const product<T>& p, T* values, local_index begin, local_index end) const {
    const F f = given;
    if constexpr (exponential_of_scores<F, T>)
      if (takes_exponentials(f) && heads_of(p) == p.s.heads)
        return entry_exponentials<I>(
            p.a, p.s.heads, f, [](local_index e) { return e; }, values, begin, end);
    for_entries(p, begin, end, [&](local_index i, local_index e, local_index h) {
      edge_values(values, e, p.s.heads)[h] = f(i, e, h);
    });
  }

 private:
  static local_index heads_of(const product<T>& p) {
    local_index heads = 0;
    for_heads(p.s, 0, p.y.cols, [&](local_index, local_index, local_index) { ++heads; });
    return heads;
  }
  template <class G>
  static void for_entries(const product<T>& p, local_index begin, local_index end, const G& g) {
    for (local_index i = begin; i < end; ++i)
      for (local_index e = p.a.offsets[i]; e < p.a.offsets[i + 1]; ++e)
        for_heads(p.s, 0, p.y.cols, [&](local_index, local_index, local_index h) { g(i, e, h); });
  }
};

}  // namespace edge_product_detail

/// y(i, j) = beta y(i, j) + sum_e values[e, h(j)] x(col(e), j) over the entries of row i; beta = 0 overwrites
/// y. x is (a.cols, f), y is (a.rows, f), with columns as in s; y must not alias x. Throws shape_error if the
/// shapes do not match.
template <class T>
inline void edge_multiply(const device_queue<host>& q, local::input_csr<T> a, local::head_slice s,
                          const local::scalar<T>* values, local::input_view<T> x, local::scalar<T> beta,
                          matrix_view<T> y) {
  local::require_edges("edge_multiply", a, s, local::shape_of(x), local::shape_of(y));
  edge_product_detail::multiply<T>(q, {a, s, values, nullptr, x, beta, y});
}

/// values[e, h] = f(row(e), e, h) for the heads of y's columns, followed by edge_multiply with these values,
/// in a single pass. Throws shape_error if the shapes do not match.
template <class F, class T>
inline void edge_apply_multiply(const device_queue<host>& q, local::input_csr<T> a, local::head_slice s, F f,
                                local::scalar<T>* values, local::input_view<T> x, local::scalar<T> beta,
                                matrix_view<T> y) {
  memory::refuse_reproducible(q, "edge_apply_multiply");
  local::require_edges("edge_apply_multiply", a, s, local::shape_of(x), local::shape_of(y));
  const edge_product_detail::product<T> p{a, s, values, nullptr, x, beta, y};
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, y.cols, [&](local_index begin, local_index end) {
      const edge_product_detail::values_of<instructions, T, F> apply{f};
      for (local_index i = begin; i < end; i += row_block) {
        const local_index last = std::min(i + row_block, end);
        run_with<instructions>(apply, p, values, i, last);
        edge_product_detail::rows<instructions>(p, i, last);
      }
    });
  });
}

/// x(c, j) = beta x(c, j) + sum_e values[e, h(j)] y(row(e), j) over the entries of column c; beta = 0
/// overwrites x. `a` is the inverse of the pattern. y is (a.rows, f), x is (a.cols, f), with columns as in s;
/// x must not alias y. Throws shape_error if the shapes do not match.
template <class T>
inline void edge_multiply_transposed(const device_queue<host>& q, const local::csr_inverse_view& a,
                                     local::head_slice s, const local::scalar<T>* values,
                                     local::input_view<T> y, local::scalar<T> beta, matrix_view<T> x) {
  local::require_edges("edge_multiply_transposed", a, s, local::shape_of(x), local::shape_of(y));
  edge_product_detail::multiply<T>(q, {a.transposed<T>(), s, values, a.entry_numbers, y, beta, x});
}

/// values[e, h] = beta values[e, h] + sum_j y(row(e), j) x(col(e), j) over the columns j of head h in the
/// slice; the sum is 0 for heads outside it. beta = 0 overwrites values. y is (a.rows, f), x is (a.cols, f),
/// with columns as in s. Throws shape_error if the shapes do not match.
template <class T>
inline void edge_dot(const device_queue<host>& q, local::input_csr<T> a, local::head_slice s,
                     local::input_view<T> y, local::input_view<T> x, local::scalar<T> beta, T* values) {
  memory::refuse_reproducible(q, "edge_dot");
  local::require_edges("edge_dot", a, s, local::shape_of(x), local::shape_of(y));
  const dot_detail::operands<T> p{a, s, y, x, beta, values};
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, std::int64_t{x.cols} + s.heads, [&](local_index first, local_index last) {
      dot_detail::rows<instructions>(p, first, last);
    });
  });
}

}  // namespace partita::on_host
