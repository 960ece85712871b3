// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Functions of the entries of a sparse pattern, as the definitions have them. An array of edges has `heads`
/// values an entry: values[e * heads + h], e as in the offsets of the pattern. Values of the pattern itself
/// are not read and may be null.
#include <cmath>
#include <vector>

#include "partita/local/head_slice.hpp"
#include "partita/local/view.hpp"

namespace partita::reference {

/// The place of entry e's value of head h.
inline std::ptrdiff_t edge_at(local_index e, local_index heads, local_index h) {
  return std::ptrdiff_t{e} * heads + h;
}

/// leaky(z) = z for z > 0, slope z otherwise. Throws nothing.
template <class T>
T leaky(T z, T slope) {
  return z > 0 ? z : slope * z;
}

/// f(i, e, h) for all rows i, their entries e and heads h.
template <class T, class F>
void for_edges(local::csr_view<T> a, local_index heads, F f) {
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
      for (local_index h = 0; h < heads; ++h) f(i, e, h);
}

/// out[e, h] = f(row(e), col(e), h, in[e, h]).
template <class F, class T>
void edge_apply(local::input_csr<T> a, local_index heads, F f, const local::scalar<T>* in, T* out) {
  for_edges(a, heads, [&](local_index i, local_index e, local_index h) {
    out[edge_at(e, heads, h)] = f(i, a.columns[e], h, in[edge_at(e, heads, h)]);
  });
}

/// log_sum(i, h) = log sum_e exp(leaky(source(col(e), h) + target(i, h))) over the entries e of row i.
template <class T>
void edge_log_sum(local::input_csr<T> a, local_index heads, local::scalar<T> slope,
                  local::input_view<T> source, local::input_view<T> target, matrix_view<T> log_sum) {
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index h = 0; h < heads; ++h) {
      const auto score = [&](local_index e) { return leaky(source(a.columns[e], h) + target(i, h), slope); };
      const local_index begin = a.offsets[i], end = a.offsets[i + 1];
      log_sum(i, h) = 0;
      if (begin == end) continue;
      T largest = score(begin);
      for (local_index e = begin; e < end; ++e)
        if (score(e) > largest) largest = score(e);
      double total = 0;
      for (local_index e = begin; e < end; ++e) total += std::exp(score(e) - largest);
      log_sum(i, h) = static_cast<T>(largest + std::log(total));
    }
}

/// values[e, h] = exp(leaky(source(col(e), h) + target(row(e), h)) - log_sum(row(e), h)).
template <class T>
void edge_softmax(local::input_csr<T> a, local_index heads, local::scalar<T> slope,
                  local::input_view<T> source, local::input_view<T> target, local::input_view<T> log_sum,
                  T* values) {
  for_edges(a, heads, [&](local_index i, local_index e, local_index h) {
    values[edge_at(e, heads, h)] =
        std::exp(leaky(source(a.columns[e], h) + target(i, h), slope) - log_sum(i, h));
  });
}

/// The way back through the softmax: edges[e, h], the gradient of the values, becomes that of the scores
/// before leaky, which dtarget adds up by rows and dsource by columns.
template <class T>
void edge_softmax_gradient(local::input_csr<T> a, local_index heads, local::scalar<T> slope,
                           local::input_view<T> source, local::input_view<T> target,
                           local::input_view<T> log_sum, local::input_view<T> row_dot, local::scalar<T> beta,
                           local::scalar<T>* edges, matrix_view<T> dsource, matrix_view<T> dtarget) {
  for (const matrix_view<T>& out : {dsource, dtarget})
    for (local_index i = 0; i < out.rows; ++i)
      for (local_index h = 0; h < heads; ++h) out(i, h) = beta == 0 ? T{0} : beta * out(i, h);
  for_edges(a, heads, [&](local_index i, local_index e, local_index h) {
    const T z = source(a.columns[e], h) + target(i, h), alpha = std::exp(leaky(z, slope) - log_sum(i, h));
    T& g = edges[edge_at(e, heads, h)];
    g = alpha * (g - row_dot(i, h)) * (z > 0 ? T{1} : slope);
    dsource(a.columns[e], h) += g;
    dtarget(i, h) += g;
  });
}

/// out(i, h) = sum_e u[e, h] v[e, h] over the entries of row i, accumulated in double.
template <class T>
void edge_row_dot(local::input_csr<T> a, local_index heads, const local::scalar<T>* u,
                  const local::scalar<T>* v, matrix_view<T> out) {
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index h = 0; h < heads; ++h) {
      double total = 0;
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
        total += double{u[edge_at(e, heads, h)]} * v[edge_at(e, heads, h)];
      out(i, h) = static_cast<T>(total);
    }
}

/// edge_softmax_gradient with row_dot(i, h) = sum_e alpha[e, h] edges[e, h], alpha the softmax.
template <class T>
void edge_softmax_gradient_of_rows(local::input_csr<T> a, local_index heads, local::scalar<T> slope,
                                   local::input_view<T> source, local::input_view<T> target,
                                   local::input_view<T> log_sum, local::scalar<T> beta,
                                   local::scalar<T>* edges, matrix_view<T> dsource, matrix_view<T> dtarget) {
  const auto end = static_cast<std::size_t>(a.rows == 0 ? 0 : a.offsets[a.rows]);
  const auto numbers = static_cast<std::size_t>(heads);
  std::vector<T> alpha(end * numbers), dots(static_cast<std::size_t>(a.rows) * numbers);
  const matrix_view<T> row_dot{dots.data(), a.rows, heads, heads};
  edge_softmax<T>(a, heads, slope, source, target, log_sum, alpha.data());
  edge_row_dot<T>(a, heads, alpha.data(), edges, row_dot);
  edge_softmax_gradient<T>(a, heads, slope, source, target, log_sum, row_dot, beta, edges, dsource, dtarget);
}

/// out(i, h) = f(out(i, h), values[e, h]) over the entries e of row i in order.
template <class F, class T>
void edge_row_fold(local::input_csr<T> a, local_index heads, F f, const local::scalar<T>* values,
                   matrix_view<T> out) {
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
      for (local_index h = 0; h < heads; ++h) out(i, h) = f(out(i, h), values[edge_at(e, heads, h)]);
}

/// y(i, j) = beta y(i, j) + sum_e values[e, h(j)] x(col(e), j) over the entries of row i.
template <class T>
void edge_multiply(local::input_csr<T> a, local::head_slice s, const local::scalar<T>* values,
                   local::input_view<T> x, local::scalar<T> beta, matrix_view<T> y) {
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index j = 0; j < y.cols; ++j) {
      T total = 0;
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
        total += values[edge_at(e, s.heads, s.head_of(j))] * x(a.columns[e], j);
      y(i, j) = beta == 0 ? total : total + beta * y(i, j);
    }
}

/// values[e, h] = f(row(e), e, h) for the heads of y's columns, and y as edge_multiply has it with them.
template <class F, class T>
void edge_apply_multiply(local::input_csr<T> a, local::head_slice s, F f, local::scalar<T>* values,
                         local::input_view<T> x, local::scalar<T> beta, matrix_view<T> y) {
  for (local_index i = 0; i < a.rows; ++i)
    for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e)
      for (local_index j = 0; j < y.cols; ++j)
        values[edge_at(e, s.heads, s.head_of(j))] = f(i, e, s.head_of(j));
  edge_multiply(a, s, values, x, beta, y);
}

/// x(c, j) = beta x(c, j) + sum_e values[e, h(j)] y(row(e), j) over the entries of column c.
template <class T>
void edge_multiply_transposed(local::input_csr<T> a, local::head_slice s, const local::scalar<T>* values,
                              local::input_view<T> y, local::scalar<T> beta, matrix_view<T> x) {
  for (local_index c = 0; c < x.rows; ++c)
    for (local_index j = 0; j < x.cols; ++j) x(c, j) = beta == 0 ? T{0} : beta * x(c, j);
  for_edges(a, x.cols, [&](local_index i, local_index e, local_index j) {
    x(a.columns[e], j) += values[edge_at(e, s.heads, s.head_of(j))] * y(i, j);
  });
}

/// values[e, h] = beta values[e, h] + sum_j y(row(e), j) x(col(e), j) over the columns j of head h in the
/// slice.
template <class T>
void edge_dot(local::input_csr<T> a, local::head_slice s, local::input_view<T> y, local::input_view<T> x,
              local::scalar<T> beta, T* values) {
  for_edges(a, s.heads, [&](local_index i, local_index e, local_index h) {
    T total = 0;
    for (local_index j = 0; j < x.cols; ++j)
      if ((s.first_col + j) / s.head_width == h) total += y(i, j) * x(a.columns[e], j);
    T& value = values[edge_at(e, s.heads, h)];
    value = beta == 0 ? total : total + beta * value;
  });
}

}  // namespace partita::reference
