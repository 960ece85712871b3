// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels on the entries of a sparse pattern. An edge array has `heads` values per entry, values[e * heads +
/// h], with e as in the pattern's offsets. Values of the pattern itself are not read and may be null.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/base/function.hpp"
#include "partita/local/csr_inverse.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/entry_scores.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/softmax_rows.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace edge_detail {

/// Calls f(i, begin, end, h) for every row i, with entries [begin, end), and every head h.
template <class T, class F>
inline void for_rows(const device_queue<host>& q, const local::csr_view<T>& a, local_index heads,
                     std::int64_t work, const F& f) {
  run_entry_rows(q.threads(), a, work * heads, [=](local_index first, local_index last) {
    for (local_index i = first; i < last; ++i)
      for (local_index h = 0; h < heads; ++h) f(i, a.offsets[i], a.offsets[i + 1], h);
  });
}

}  // namespace edge_detail

/// out[e, h] = f(row(e), col(e), h, in[e, h]). out may alias in. Throws what f throws.
template <class F, class T>
inline void edge_apply(const device_queue<host>& q, local::input_csr<T> a, local_index heads, F f,
                       const local::scalar<T>* in, T* out) {
  const auto rows = [=](auto instructions, local_index begin, local_index end) {
    if constexpr (exponential_of_scores<F, T>)
      if (takes_exponentials(f))
        return entry_exponentials<instructions>(
            a, heads, f, [=](local_index e) { return a.columns[e]; }, out, begin, end);
    for (local_index i = begin; i < end; ++i)
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
        const T* const from = edge_values(in, e, heads);
        T* const to = edge_values(out, e, heads);
        for (local_index h = 0; h < heads; ++h) to[h] = f(i, a.columns[e], h, from[h]);
      }
  };
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, heads, [&](local_index begin, local_index end) {
      run_with<instructions>(rows, instructions, begin, end);
    });
  });
}

/// log_sum(i, h) = log sum_e exp(score(e, h)) over the entries e of row i; 0 for an empty row. score(e, h) =
/// leaky(source(col(e), h) + target(row(e), h)), where leaky(z) = z for z > 0 and slope z otherwise. source
/// is (a.cols, heads), target and log_sum are (a.rows, heads). If these are some of `all_heads`, the result
/// has the bits of a call for all of them. Throws shape_error if the shapes do not match.
template <class T>
inline void edge_log_sum(const device_queue<host>& q, local::input_csr<T> a, local_index heads,
                         local::scalar<T> slope, local::input_view<T> source, local::input_view<T> target,
                         matrix_view<T> log_sum, local_index all_heads = 0) {
  memory::refuse_reproducible(q, "edge_log_sum");
  const edge_detail::attention<T> scores{a, heads, slope, source, target};
  local::require_scores("edge_log_sum", a, heads, source, target);
  local::require_row_values("edge_log_sum", a, heads, "log_sum", log_sum);
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 16 * std::int64_t{heads}, [&](local_index begin, local_index end) {
      run_with<instructions>(edge_detail::log_sums<instructions, T>(), scores, std::max(heads, all_heads),
                             log_sum, begin, end);
    });
  });
}

/// values[e, h] = exp(score(e, h) - log_sum(row(e), h)), with scores as in edge_log_sum. log_sum is (a.rows,
/// heads). Throws shape_error if the shapes do not match.
template <class T>
inline void edge_softmax(const device_queue<host>& q, local::input_csr<T> a, local_index heads,
                         local::scalar<T> slope, local::input_view<T> source, local::input_view<T> target,
                         local::input_view<T> log_sum, T* values) {
  const edge_detail::attention<T> scores{a, heads, slope, source, target, log_sum};
  local::require_scores("edge_softmax", a, heads, source, target);
  local::require_row_values("edge_softmax", a, heads, "log_sum", log_sum);
  const auto rows = [=](auto instructions, local_index begin, local_index end) {
    entry_exponentials<instructions>(
        a, heads, scores, [=](local_index e) { return a.columns[e]; }, values, begin, end);
  };
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 8 * std::int64_t{heads}, [&](local_index begin, local_index end) {
      run_with<instructions>(rows, instructions, begin, end);
    });
  });
}

namespace edge_detail {

/// edge_softmax_gradient, with row_dot computed if it has no rows.
template <class T>
inline void gradient_of_softmax(const char* name, const device_queue<host>& q, const attention<T>& scores,
                                const local::csr_inverse_view& inverse, const matrix_view<const T>& row_dot,
                                T beta, T* edges, const matrix_view<T>& dsource,
                                const matrix_view<T>& dtarget) {
  memory::refuse_reproducible(q, name);
  const local::csr_view<T> a = scores.a, columns = inverse.transposed<T>();
  const local_index heads = scores.heads;
  local::require_scores(name, a, heads, scores.source, scores.target);
  local::require_equal(name, "inverse", local::shape_of(inverse), "the pattern", local::shape_of(a));
  local::require_row_values(name, a, heads, "log_sum", scores.log_sum);
  local::require_equal(name, "dsource", local::shape_of(dsource), "source", local::shape_of(scores.source));
  local::require_equal(name, "dtarget", local::shape_of(dtarget), "target", local::shape_of(scores.target));
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 16 * std::int64_t{heads}, [&](local_index begin, local_index end) {
      run_with<instructions>(softmax_gradient<instructions, T>(), scores, row_dot, beta, edges, dtarget,
                             begin, end);
    });
    run_entry_rows(q.threads(), columns, heads, [&](local_index begin, local_index end) {
      run_with<instructions>(column_sums<instructions, T>(), columns, inverse.entry_numbers, heads, edges,
                             beta, dsource, begin, end);
    });
  });
}

}  // namespace edge_detail

/// Gradient of edge_softmax with respect to its score arguments z = source + target. In place: edges[e, h]
/// holds the gradient of the values on entry and g(e, h) = exp(leaky(z) - log_sum) (edges[e, h] - row_dot)
/// leaky'(z) on return. dtarget(i, h) = beta dtarget(i, h) + sum_e g(e, h) over the entries of row i,
/// dsource(c, h) = beta dsource(c, h) + sum_e g(e, h) over those of column c; beta = 0 overwrites. source and
/// dsource are (a.cols, heads), the others (a.rows, heads); `inverse` is that of a. Throws shape_error if the
/// shapes do not match.
template <class T>
inline void edge_softmax_gradient(const device_queue<host>& q, local::input_csr<T> a,
                                  const local::csr_inverse_view& inverse, local_index heads,
                                  local::scalar<T> slope, local::input_view<T> source,
                                  local::input_view<T> target, local::input_view<T> log_sum,
                                  local::input_view<T> row_dot, local::scalar<T> beta,
                                  local::scalar<T>* edges, matrix_view<T> dsource, matrix_view<T> dtarget) {
  local::require_row_values("edge_softmax_gradient", a, heads, "row_dot", row_dot);
  edge_detail::gradient_of_softmax<T>("edge_softmax_gradient", q, {a, heads, slope, source, target, log_sum},
                                      inverse, row_dot, beta, edges, dsource, dtarget);
}

/// edge_softmax_gradient with row_dot(i, h) = sum_e exp(leaky(z) - log_sum) edges[e, h] over the entries of
/// row i, in the same pass. Throws shape_error if the shapes do not match.
template <class T>
inline void edge_softmax_gradient_of_rows(const device_queue<host>& q, local::input_csr<T> a,
                                          const local::csr_inverse_view& inverse, local_index heads,
                                          local::scalar<T> slope, local::input_view<T> source,
                                          local::input_view<T> target, local::input_view<T> log_sum,
                                          local::scalar<T> beta, local::scalar<T>* edges,
                                          matrix_view<T> dsource, matrix_view<T> dtarget) {
  edge_detail::gradient_of_softmax<T>("edge_softmax_gradient_of_rows", q,
                                      {a, heads, slope, source, target, log_sum}, inverse, {}, beta, edges,
                                      dsource, dtarget);
}

/// out(i, h) = sum_e u[e, h] v[e, h] over the entries of row i, accumulated in double. out is (a.rows,
/// heads). Throws shape_error if it is not.
template <class T>
inline void edge_row_dot(const device_queue<host>& q, local::input_csr<T> a, local_index heads,
                         const local::scalar<T>* u, const local::scalar<T>* v, matrix_view<T> out) {
  memory::refuse_reproducible(q, "edge_row_dot");
  local::require_row_values("edge_row_dot", a, heads, "out", out);
  edge_detail::for_rows(q, a, heads, 1,
                        [=](local_index i, local_index begin, local_index end, local_index h) {
                          double total = 0;
                          for (local_index e = begin; e < end; ++e)
                            total += double{edge_values(u, e, heads)[h]} * edge_values(v, e, heads)[h];
                          out(i, h) = static_cast<T>(total);
                        });
}

/// out(i, h) = f(... f(f(out(i, h), values[e, h]), values[e', h]) ...) over the entries of row i in order.
/// out is (a.rows, heads). Throws shape_error if it is not.
template <class F, class T>
inline void edge_row_fold(const device_queue<host>& q, local::input_csr<T> a, local_index heads, F f,
                          const local::scalar<T>* values, matrix_view<T> out) {
  if constexpr (!std::is_same_v<F, base::larger_of>) memory::refuse_reproducible(q, "edge_row_fold");
  local::require_row_values("edge_row_fold", a, heads, "out", out);
  edge_detail::for_rows(q, a, heads, 1,
                        [=](local_index i, local_index begin, local_index end, local_index h) {
                          for (local_index e = begin; e < end; ++e)
                            out(i, h) = f(out(i, h), edge_values(values, e, heads)[h]);
                        });
}

}  // namespace partita::on_host
