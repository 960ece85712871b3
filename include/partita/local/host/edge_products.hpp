// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products of dense blocks with a sparse pattern that has one value per entry and head. As in spmm, strips
/// of columns are accumulated in registers over the entries of a row; a strip is within one head, or covers
/// several heads of compile-time width.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/host/edge_parts.hpp"
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

  const T* values_of(local_index e) const {
    return edge_values(values, order == nullptr ? e : order[e], s.heads);
  }
};

/// Columns [first + skip, first + stop) of rows [begin, end), starting in head `head`.
struct part {
  local_index begin, end, first, skip, stop, head;
};

/// Each group of `Group` columns of the strip has one value per entry.
template <int Width, int Group, class T>
inline void strip(const product<T>& p, const part& where) {
  constexpr local_index ahead = Width * sizeof(T) <= 128 ? 32 : 16;
  const local_index last = p.a.offsets[p.a.rows] - 1;
  const T* const x = p.x.data + where.first;
  for (local_index i = where.begin; i < where.end; ++i) {
    T sum[Width] = {};
    const local_index row_end = p.a.offsets[i + 1];
    for (local_index e = p.a.offsets[i]; e < row_end; ++e) {
      prefetch(x + p.a.columns[e < last - ahead ? e + ahead : last] * p.x.row_stride, Width);
      const T* const value = p.values_of(e) + where.head;
      const T* const from = x + p.a.columns[e] * p.x.row_stride;
      for (int g = 0; g < Width; g += Group)
        for (int j = g; j < g + Group; ++j) sum[j] += value[g / Group] * from[j];
    }
    T* const y = p.y.row_data(i) + where.first;
    for (int j = where.skip; j < where.stop; ++j) y[j] = p.beta == 0 ? sum[j] : sum[j] + p.beta * y[j];
  }
}

template <int Width, int Group, class T>
inline bool groups_of(const product<T>& p, const part& where) {
  if (p.s.head_width == Group)
    strip<Width, Group>(p, where);
  else if constexpr (Group > 1)
    return groups_of<Width, Group / 2>(p, where);
  else
    return false;
  return true;
}

/// Number of columns covered by a strip of several whole heads starting at column `first`; 0 if there is
/// none.
template <class T>
inline local_index heads_strip(const product<T>& p, local_index begin, local_index end, local_index first,
                               local_index h) {
  constexpr int wide = 128 / sizeof(T), narrow = 32 / sizeof(T);
  if ((p.s.first_col + first) % p.s.head_width != 0) return 0;
  for (const int width : {wide, narrow})
    if (p.y.cols - first >= width) {
      const part where{begin, end, first, 0, width, h};
      if (width == wide ? groups_of<wide, narrow>(p, where) : groups_of<narrow, narrow / 2>(p, where))
        return width;
    }
  return 0;
}

template <int Width, class T>
inline void strip_of(local_index width, const product<T>& p, const part& where) {
  if (width == Width)
    strip<Width, Width>(p, where);
  else if constexpr (Width > 1)
    strip_of<Width / 2>(width, p, where);
}

/// Covers the columns with strips of several heads where possible, else within a head.
template <class T>
inline void rows(const product<T>& p, local_index begin, local_index end) {
  for_heads(p.s, 0, p.y.cols,
            [&, covered = local_index{0}](local_index from, local_index to, local_index h) mutable {
              if (from < covered) return;
              covered = std::max(covered, from + heads_strip<T>(p, begin, end, from, h));
              for (local_index done = std::max(from, covered); done < to;) {
                const local_index width = strip_width<T>(p.y.cols, to - done);
                const local_index first = std::min(done, p.y.cols - width);
                const part where{begin, end, first, done - first, std::min(to - first, width), h};
                strip_of<widest_strip<T>>(width, p, where);
                done = first + where.stop;
              }
            });
}

template <local_index Lanes, class T>
inline T fold(const T (&partial)[Lanes]) {
  if constexpr (Lanes == 1) {
    return partial[0];
  } else {
    T halves[Lanes / 2];
    for (local_index c = 0; c < Lanes / 2; ++c) halves[c] = partial[c] + partial[c + Lanes / 2];
    return fold<Lanes / 2>(halves);
  }
}

template <local_index Lanes, class T>
inline T dot_of(const T* u, const T* v, local_index n) {
  T partial[Lanes] = {};
  local_index j = 0;
  for (; j + Lanes <= n; j += Lanes)
    for (local_index c = 0; c < Lanes; ++c) partial[c] += u[j + c] * v[j + c];
  T total = fold<Lanes>(partial);
  for (; j < n; ++j) total += u[j] * v[j];
  return total;
}

/// Dot product in up to sixteen interleaved partial sums; the number depends on n only.
template <class T>
inline T dot(const T* u, const T* v, local_index n) {
  return n >= 16 ? dot_of<16>(u, v, n) : n >= 8 ? dot_of<8>(u, v, n) : dot_of<1>(u, v, n);
}

template <class T>
inline void multiply(const device_queue<host>& q, const product<T>& p) {
  run_entry_rows(q.threads(), p.a, p.y.cols, [&](local_index begin, local_index end) {
    for (local_index i = begin; i < end; i += row_block) rows(p, i, std::min(i + row_block, end));
  });
}

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
  local::require_edges("edge_apply_multiply", a, s, local::shape_of(x), local::shape_of(y));
  const edge_product_detail::product<T> p{a, s, values, nullptr, x, beta, y};
  run_entry_rows(q.threads(), a, y.cols, [&](local_index begin, local_index end) {
    const F value = f;
    for (local_index i = begin; i < end; i += row_block) {
      const local_index last = std::min(i + row_block, end);
      for (local_index row = i; row < last; ++row)
        for (local_index e = a.offsets[row]; e < a.offsets[row + 1]; ++e)
          for_heads(s, 0, y.cols, [&](local_index, local_index, local_index h) {
            edge_values(values, e, s.heads)[h] = value(row, e, h);
          });
      edge_product_detail::rows(p, i, last);
    }
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
  local::require_edges("edge_dot", a, s, local::shape_of(x), local::shape_of(y));
  const auto add = [=](T& value, T total) { value = beta == 0 ? total : total + beta * value; };
  const local_index last_entry = a.nonzeros() == 0 ? 0 : a.offsets[a.rows] - 1;
  const local_index first_head = x.cols == 0 ? s.heads : s.first_col / s.head_width;
  run_entry_rows(q.threads(), a, std::int64_t{x.cols} + s.heads, [=](local_index first, local_index last) {
    for (local_index i = first; i < last; ++i)
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
        prefetch(x.row_data(a.columns[e < last_entry - 16 ? e + 16 : last_entry]), x.cols);
        const T* const left = y.row_data(i);
        const T* const right = x.row_data(a.columns[e]);
        T* const value = edge_values(values, e, s.heads);
        for (local_index h = 0; h < first_head; ++h) add(value[h], T{0});
        local_index done = first_head;
        for_heads(s, 0, x.cols, [&](local_index begin, local_index end, local_index h) {
          add(value[h], edge_product_detail::dot(left + begin, right + begin, end - begin));
          done = h + 1;
        });
        for (local_index h = done; h < s.heads; ++h) add(value[h], T{0});
      }
  });
}

}  // namespace partita::on_host
