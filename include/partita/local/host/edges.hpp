// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Kernels on the entries of a sparse pattern. An edge array has `heads` values per entry, values[e * heads +
/// h], with e as in the pattern's offsets. Values of the pattern itself are not read and may be null.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "partita/local/csr_inverse.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/exponential.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace edge_detail {

template <class T>
struct attention {
  local::csr_view<T> a;
  local_index heads;
  T slope;
  matrix_view<const T> source, target;

  T leaky(T z) const {
    const T scaled = slope * z;
    return z > 0 ? z : scaled;
  }
  T sum(local_index i, local_index e, local_index h) const { return source(a.columns[e], h) + target(i, h); }
  T score(local_index i, local_index e, local_index h) const { return leaky(sum(i, e, h)); }
};

/// Exponentials of the scores of some entries and heads, minus a number of the row and head, with a buffer
/// that stays in the first-level cache.
template <class T>
struct score_exponentials {
  static constexpr local_index most_heads = 64, size = 1024;
  T values[size];

  /// Calls f(first entry, last entry, values by entry and head) for all entries of row i.
  template <instruction_set I, class F>
  void of_row(const attention<T>& scores, local_index i, local_index first_head, local_index heads,
              const T* minus, const F& f) {
    const local_index row_end = scores.a.offsets[i + 1];
    for (local_index first = scores.a.offsets[i]; first < row_end; first += size / heads) {
      const local_index last = std::min(row_end, first + size / heads);
      T* to = values;
      for (local_index e = first; e < last; ++e)
        for (local_index h = 0; h < heads; ++h) *to++ = scores.score(i, e, first_head + h) - minus[h];
      exponentials<I>(values, static_cast<std::size_t>(to - values));
      f(first, last, values);
    }
  }
};

template <instruction_set I, class T>
struct log_sums {
  void operator()(const attention<T>& scores, const matrix_view<T>& log_sum, local_index begin,
                  local_index end) const {
    constexpr local_index most = score_exponentials<T>::most_heads;
    score_exponentials<T> exponentials;
    for (local_index i = begin; i < end; ++i)
      for (local_index first = 0; first < scores.heads; first += most) {
        const local_index heads = std::min(most, scores.heads - first);
        T largest[most];
        double total[most] = {};
        std::fill_n(largest, heads, -std::numeric_limits<T>::infinity());
        for (local_index e = scores.a.offsets[i]; e < scores.a.offsets[i + 1]; ++e)
          for (local_index h = 0; h < heads; ++h)
            largest[h] = std::max(largest[h], scores.score(i, e, first + h));
        exponentials.template of_row<I>(scores, i, first, heads, largest,
                                        [&](local_index from, local_index to, const T* value) {
                                          for (local_index e = from; e < to; ++e)
                                            for (local_index h = 0; h < heads; ++h) total[h] += *value++;
                                        });
        for (local_index h = 0; h < heads; ++h)
          log_sum(i, first + h) = scores.a.offsets[i] == scores.a.offsets[i + 1]
                                      ? T{0}
                                      : static_cast<T>(largest[h] + std::log(total[h]));
      }
  }
};

template <instruction_set I, class T>
struct softmax {
  void operator()(const attention<T>& scores, const matrix_view<const T>& log_sum, T* values,
                  local_index begin, local_index end) const {
    const local_index heads = scores.heads;
    for (local_index i = begin; i < end; ++i) {
      T* const first = edge_values(values, scores.a.offsets[i], heads);
      T* to = first;
      for (local_index e = scores.a.offsets[i]; e < scores.a.offsets[i + 1]; ++e)
        for (local_index h = 0; h < heads; ++h) *to++ = scores.score(i, e, h) - log_sum(i, h);
      exponentials<I>(first, static_cast<std::size_t>(to - first));
    }
  }
};

/// Calls f(i, begin, end, h) for every row i, with entries [begin, end), and every head h.
template <class T, class F>
inline void for_rows(const device_queue<host>& q, const local::csr_view<T>& a, local_index heads,
                     std::int64_t work, const F& f) {
  run_entry_rows(q.threads(), a, work * heads, [=](local_index first, local_index last) {
    for (local_index i = first; i < last; ++i)
      for (local_index h = 0; h < heads; ++h) f(i, a.offsets[i], a.offsets[i + 1], h);
  });
}

/// Scales row i of out by beta; beta = 0 sets it to zero.
template <class T>
inline void scale_row(T beta, const matrix_view<T>& out, local_index i) {
  for (local_index j = 0; j < out.cols; ++j) out(i, j) = beta == 0 ? T{0} : beta * out(i, j);
}

/// Of one row: g in place and dtarget.
template <instruction_set I, class T>
struct softmax_gradient {
  void operator()(const attention<T>& scores, const matrix_view<const T>& log_sum,
                  const matrix_view<const T>& row_dot, T beta, T* edges, const matrix_view<T>& dtarget,
                  local_index begin, local_index end) const {
    constexpr local_index most = score_exponentials<T>::most_heads;
    score_exponentials<T> exponentials;
    for (local_index i = begin; i < end; ++i) {
      scale_row(beta, dtarget, i);
      for (local_index first = 0; first < scores.heads; first += most) {
        const local_index heads = std::min(most, scores.heads - first);
        exponentials.template of_row<I>(scores, i, first, heads, log_sum.row_data(i) + first,
                                        [&](local_index from, local_index to, const T* alpha) {
                                          for (local_index e = from; e < to; ++e, alpha += heads) {
                                            T* const g = edge_values(edges, e, scores.heads) + first;
                                            for (local_index h = 0; h < heads; ++h) {
                                              const T slope =
                                                  scores.sum(i, e, first + h) > 0 ? T{1} : scores.slope;
                                              g[h] = alpha[h] * (g[h] - row_dot(i, first + h)) * slope;
                                              dtarget(i, first + h) += g[h];
                                            }
                                          }
                                        });
      }
    }
  }
};

}  // namespace edge_detail

/// out[e, h] = f(row(e), col(e), h, in[e, h]). out may alias in. Throws what f throws.
template <class F, class T>
inline void edge_apply(const device_queue<host>& q, local::input_csr<T> a, local_index heads, F f,
                       const local::scalar<T>* in, T* out) {
  run_entry_rows(q.threads(), a, heads, [=, &f](local_index begin, local_index end) {
    const F element = f;
    for (local_index i = begin; i < end; ++i)
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
        const T* const from = edge_values(in, e, heads);
        T* const to = edge_values(out, e, heads);
        for (local_index h = 0; h < heads; ++h) to[h] = element(i, a.columns[e], h, from[h]);
      }
  });
}

/// log_sum(i, h) = log sum_e exp(score(e, h)) over the entries e of row i; 0 for an empty row. score(e, h) =
/// leaky(source(col(e), h) + target(row(e), h)), where leaky(z) = z for z > 0 and slope z otherwise. source
/// is (a.cols, heads), target and log_sum are (a.rows, heads). Throws shape_error if the shapes do not match.
template <class T>
inline void edge_log_sum(const device_queue<host>& q, local::input_csr<T> a, local_index heads,
                         local::scalar<T> slope, local::input_view<T> source, local::input_view<T> target,
                         matrix_view<T> log_sum) {
  const edge_detail::attention<T> scores{a, heads, slope, source, target};
  local::require_scores("edge_log_sum", a, heads, source, target);
  local::require_row_values("edge_log_sum", a, heads, "log_sum", log_sum);
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 16 * std::int64_t{heads}, [&](local_index begin, local_index end) {
      run_with<instructions>(edge_detail::log_sums<instructions, T>(), scores, log_sum, begin, end);
    });
  });
}

/// values[e, h] = exp(score(e, h) - log_sum(row(e), h)), with scores as in edge_log_sum. log_sum is (a.rows,
/// heads). Throws shape_error if the shapes do not match.
template <class T>
inline void edge_softmax(const device_queue<host>& q, local::input_csr<T> a, local_index heads,
                         local::scalar<T> slope, local::input_view<T> source, local::input_view<T> target,
                         local::input_view<T> log_sum, T* values) {
  const edge_detail::attention<T> scores{a, heads, slope, source, target};
  local::require_scores("edge_softmax", a, heads, source, target);
  local::require_row_values("edge_softmax", a, heads, "log_sum", log_sum);
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 8 * std::int64_t{heads}, [&](local_index begin, local_index end) {
      run_with<instructions>(edge_detail::softmax<instructions, T>(), scores, log_sum, values, begin, end);
    });
  });
}

/// Gradient of edge_softmax with respect to its score arguments z = source + target. In place: edges[e, h]
/// holds the gradient of the values on entry and g(e, h) = exp(leaky(z) - log_sum) (edges[e, h] - row_dot)
/// leaky'(z) on return. dtarget(i, h) = beta dtarget(i, h) + sum_e g(e, h) over the entries of row i,
/// dsource(c, h) = beta dsource(c, h) + sum_e g(e, h) over those of column c; beta = 0 overwrites. source and
/// dsource are (a.cols, heads), the others (a.rows, heads); `inverse` is that of a. Throws shape_error if the
/// shapes do not match.
template <class T>
inline void edge_softmax_gradient(const device_queue<host>& q, local::input_csr<T> a,
                                  const local::csr_inverse<host>& inverse, local_index heads,
                                  local::scalar<T> slope, local::input_view<T> source,
                                  local::input_view<T> target, local::input_view<T> log_sum,
                                  local::input_view<T> row_dot, local::scalar<T> beta,
                                  local::scalar<T>* edges, matrix_view<T> dsource, matrix_view<T> dtarget) {
  constexpr const char* name = "edge_softmax_gradient";
  const edge_detail::attention<T> scores{a, heads, slope, source, target};
  local::require_scores(name, a, heads, source, target);
  local::require_equal(name, "inverse", local::shape_of(inverse), "the pattern", local::shape_of(a));
  local::require_row_values(name, a, heads, "log_sum", log_sum);
  local::require_row_values(name, a, heads, "row_dot", row_dot);
  local::require_equal(name, "dsource", local::shape_of(dsource), "source", local::shape_of(source));
  local::require_equal(name, "dtarget", local::shape_of(dtarget), "target", local::shape_of(target));
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, 16 * std::int64_t{heads}, [&](local_index begin, local_index end) {
      run_with<instructions>(edge_detail::softmax_gradient<instructions, T>(), scores, log_sum, row_dot, beta,
                             edges, dtarget, begin, end);
    });
  });
  const local::csr_view<T> columns = inverse.template transposed<T>();
  const local_index* const numbers = inverse.entry_numbers.data();
  run_entry_rows(q.threads(), columns, heads, [=](local_index begin, local_index end) {
    for (local_index c = begin; c < end; ++c) {
      edge_detail::scale_row(beta, dsource, c);
      for (local_index t = columns.offsets[c]; t < columns.offsets[c + 1]; ++t)
        for (local_index h = 0; h < heads; ++h) dsource(c, h) += edge_values(edges, numbers[t], heads)[h];
    }
  });
}

/// out(i, h) = sum_e u[e, h] v[e, h] over the entries of row i, accumulated in double. out is (a.rows,
/// heads). Throws shape_error if it is not.
template <class T>
inline void edge_row_dot(const device_queue<host>& q, local::input_csr<T> a, local_index heads,
                         const local::scalar<T>* u, const local::scalar<T>* v, matrix_view<T> out) {
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
  local::require_row_values("edge_row_fold", a, heads, "out", out);
  edge_detail::for_rows(q, a, heads, 1,
                        [=](local_index i, local_index begin, local_index end, local_index h) {
                          for (local_index e = begin; e < end; ++e)
                            out(i, h) = f(out(i, h), edge_values(values, e, heads)[h]);
                        });
}

}  // namespace partita::on_host
