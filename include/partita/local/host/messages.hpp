// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Messages of a user's function along the entries of a pattern: their sums over rows, the largest of each
/// row, and their sums over the columns of heads. For gradients see message_gradients.hpp.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/message_operands.hpp"
#include "partita/local/shapes.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace message_detail {

template <class F, class T>
struct operands {
  using numbers = local::parameters_of<F, T>;
  static constexpr bool takes_targets = local::reads_targets<F, T>;
  static constexpr std::size_t parameters = local::parameter_count<F>();

  F f;
  local::csr_view<T> a;  ///< rows are targets; or sources, and columns targets
  local::message_operands<T> of;
  const local_index* order = nullptr;  ///< maps entries to value indices; null for the identity

  static constexpr T one = 1;
  local_index entry(local_index e) const { return order == nullptr ? e : order[e]; }
  const T* value(local_index e) const {
    return of.slice.heads == 0 ? &one : edge_values(of.values, entry(e), of.slice.heads);
  }
  /// The columns of row i of targets from `begin` on, if f takes them.
  const T* target(local_index i, local_index begin) const {
    return takes_targets ? of.targets.row_data(i) + begin : nullptr;
  }
  /// The parameters of column j, and as inputs of derivatives from the first-th on.
  numbers parameter(local_index j) const {
    numbers p{};
    for (std::size_t k = 0; k != parameters; ++k) p[k] = of.parameters(static_cast<local_index>(k), j);
    return p;
  }
  /// Asks for the columns of x that an entry needs a little later.
  void prefetch(const matrix_view<const T>& x, local_index e, local_index begin, local_index size) const {
    on_host::prefetch(x.row_data(a.columns[later(e)]) + begin, size);
  }
  /// And for `size` of its values from v on, which are not in the order of a.
  void prefetch(const T* values, local_index heads, local_index e, local_index v, local_index size) const {
    on_host::prefetch(edge_values(values, order[later(e)], heads) + v, size);
  }

 private:
  local_index later(local_index e) const { return std::min(e + 8, a.offsets[a.rows] - 1); }
};

/// The most columns that are computed together.
inline constexpr local_index strip = 128;

/// Calls f(size, begin, v, one value each) for strips of the columns [0, cols): those of a strip have value v
/// of an entry, or one each from v on. g++ 12 makes slower loops over a size that it knows.
template <class F>
inline void for_strips(const local::head_slice& s, local_index cols, const F& f) {
  const auto cut = [&](local_index begin, local_index end, local_index v, auto each) {
    for (; begin < end; begin += strip, v += each ? strip : 0)
      f(std::min(strip, end - begin), begin, v, each);
  };
  if (s.heads == 0) return cut(0, cols, 0, std::false_type());
  if (s.head_width == 1) return cut(0, cols, s.first_col, std::true_type());
  for_heads(s, 0, cols, [&](local_index begin, local_index end, local_index h) {
    cut(begin, end, h, std::false_type());
  });
}

/// m[j] = the message of entry e of row i in column first + j.
template <class F, class T, class Each>
inline void messages(const operands<F, T>& p, local_index i, local_index e, local_index size,
                     local_index first, local_index v, Each each, T* m) {
  const T* const source = p.of.sources.row_data(p.a.columns[e]) + first;
  const T* const target = p.target(i, first);
  const T* const value = p.value(e) + v;
  for (local_index j = 0; j < size; ++j)
    m[j] = local::message_of(p.f, source[j], p.takes_targets ? target[j] : T(0), value[each ? j : 0],
                             p.parameter(first + j));
}

/// The sum of x[0, size), in eight partial sums, which are folded by halves.
template <class T>
inline T total(const T* x, local_index size) {
  T part[8] = {};
  local_index j = 0;
  for (; j + 8 <= size; j += 8)
    for (local_index k = 0; k < 8; ++k) part[k] += x[j + k];
  T sum = ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
  for (; j < size; ++j) sum += x[j];
  return sum;
}

/// store(j, the sum of the terms of column j) for `Count` vectors of columns from `first` on; of entry e of
/// [begin, end) the term of column first + j is row(e, first, number of columns)(j).
template <instruction_set I, class T, int Count, class Row, class Store>
inline void sum_vectors(local_index begin, local_index end, local_index first, const Row& row,
                        const Store& store) {
  constexpr local_index lanes = register_bytes(I) / static_cast<int>(sizeof(T));
  using of = vector_of<T, register_bytes(I)>;
  typename of::type sum[Count] = {};
  for (local_index e = begin; e < end; ++e) {
    const auto term = row(e, first, Count * lanes);
    const auto add = [&](int n) {
      T m[lanes];
#ifndef __CUDACC__
#pragma GCC unroll 1
#endif
      for (local_index j = 0; j < lanes; ++j) m[j] = term(n * lanes + j);
      sum[n] += reinterpret_cast<const typename of::place*>(m)->value;
    };
    [&]<int... N>(std::integer_sequence<int, N...>) { (add(N), ...); }
    (std::make_integer_sequence<int, Count>());
  }
  for (int n = 0; n < Count; ++n)
    for (local_index j = 0; j < lanes; ++j) store(first + n * lanes + j, sum[n][j]);
}
/// The same for the columns [first, last), of which sums stay in registers.
template <instruction_set I, class T, class Row, class Store>
inline void sum_columns(local_index begin, local_index end, local_index first, local_index last,
                        const Row& row, const Store& store) {
  constexpr local_index lanes = register_bytes(I) / static_cast<int>(sizeof(T));
  for (; last - first >= 8 * lanes; first += 8 * lanes) sum_vectors<I, T, 8>(begin, end, first, row, store);
  for (; last - first >= 4 * lanes; first += 4 * lanes) sum_vectors<I, T, 4>(begin, end, first, row, store);
  for (; last - first >= lanes; first += lanes) sum_vectors<I, T, 1>(begin, end, first, row, store);
  if (first == last) return;
  T sum[lanes] = {};
  for (local_index e = begin; e < end; ++e) {
    const auto term = row(e, first, last - first);
    for (local_index j = 0; j < last - first; ++j) sum[j] += term(j);
  }
  for (local_index j = 0; j < last - first; ++j) store(first + j, sum[j]);
}

/// The same for `size` columns, in loops that vectorise for terms with choices, too.
template <class T, class Row, class Store>
inline void sum_strip(local_index begin, local_index end, local_index first, local_index size, const Row& row,
                      const Store& store) {
  T sum[strip] = {};
  for (local_index e = begin; e < end; ++e) {
    const auto term = row(e, first, size);
    for (local_index j = 0; j < size; ++j) sum[j] += term(j);
  }
  for (local_index j = 0; j < size; ++j) store(first + j, sum[j]);
}

/// Rows [begin, end) of the weighted sums of messages.
template <instruction_set I>
struct sums {
  template <class F, class T>
  void operator()(const operands<F, T>& p, const matrix_view<const T>& weights, T beta,
                  const matrix_view<T>& y, local_index begin, local_index end) const {
    for (local_index i = begin; i < end; ++i)
      for_strips(p.of.slice, y.cols, [&](local_index size, local_index from, local_index v, auto each) {
        const auto row = [&](local_index e, local_index first, local_index count) {
          p.prefetch(p.of.sources, e, first, count);
          const T* const source = p.of.sources.row_data(p.a.columns[e]) + first;
          const T* const target = p.target(i, first);
          const T* const value = p.value(e) + v + (each ? first - from : 0);
          return [=, &p](local_index j) {
            return local::message_of(p.f, source[j], p.takes_targets ? target[j] : T(0), value[each ? j : 0],
                                     p.parameter(first + j));
          };
        };
        T* const to = y.row_data(i);
        const T weight = weights.cols == 0 ? T(1) : weights(i, 0);
        sum_columns<I, T>(
            p.a.offsets[i], p.a.offsets[i + 1], from, from + size, row,
            [&](local_index j, T sum) { to[j] = weight * sum + (beta == T(0) ? T(0) : beta * to[j]); });
      });
  }
};

/// Lets the messages of rows [begin, end), times `sign`, compete with what y and winners have.
template <instruction_set I>
struct largest {
  template <class F, class T>
  void operator()(const operands<F, T>& p, T sign, const local_index* names, local_index first_name,
                  const matrix_view<T>& y, const matrix_view<local_index>& winners, local_index begin,
                  local_index end) const {
    for (local_index i = begin; i < end; ++i)
      for_strips(p.of.slice, y.cols, [&](local_index size, local_index first, local_index v, auto each) {
        T* const best = y.row_data(i) + first;
        local_index* const winner = winners.row_data(i) + first;
        for (local_index e = p.a.offsets[i]; e < p.a.offsets[i + 1]; ++e) {
          p.prefetch(p.of.sources, e, first, size);
          T m[strip];
          messages(p, i, e, size, first, v, each, m);
          const local_index name = names[e] + first_name;
          for (local_index j = 0; j < size; ++j) {
            const bool wins = local::beats(sign * m[j], name, best[j], winner[j]);
            best[j] = wins ? sign * m[j] : best[j];
            winner[j] = wins ? name : winner[j];
          }
        }
      });
  }
};

/// The sums of the messages of rows [begin, end) over the columns of the heads of `to`.
template <instruction_set I>
struct scores {
  template <class F, class T>
  void operator()(const operands<F, T>& p, const local::head_slice& to, local_index cols, T* values,
                  local_index begin, local_index end) const {
    for (local_index i = begin; i < end; ++i) {
      std::fill(edge_values(values, p.a.offsets[i], to.heads),
                edge_values(values, p.a.offsets[i + 1], to.heads), T(0));
      for_strips(p.of.slice, cols, [&](local_index size, local_index first, local_index v, auto each) {
        for (local_index e = p.a.offsets[i]; e < p.a.offsets[i + 1]; ++e) {
          p.prefetch(p.of.sources, e, first, size);
          T m[strip];
          messages(p, i, e, size, first, v, each, m);
          add(to, first, size, m, edge_values(values, e, to.heads));
        }
      });
    }
  }

 private:
  template <class T>
  static void add(const local::head_slice& to, local_index first, local_index size, const T* m, T* score) {
    if (to.head_width == 1)
      for (local_index j = 0; j < size; ++j) score[to.first_col + first + j] += m[j];
    else
      for_heads(to, first, first + size, [&](local_index from, local_index until, local_index h) {
        score[h] += total(m + (from - first), until - from);
      });
  }
};

/// Throws shape_error unless the operands match the pattern (rows x cols) and `width`; error on a
/// reproducible queue.
template <class F, class T>
inline void require(const char* name, const device_queue<host>& q, const operands<F, T>& p,
                    matrix_shape pattern, local_index width) {
  memory::refuse_reproducible(q, name);
  const auto check = [&](const char* what, const matrix_view<const T>& x, matrix_shape expected) {
    local::require_equal(name, what, local::shape_of(x), "what the pattern needs", expected);
  };
  check("sources", p.of.sources, {pattern.cols, width});
  if (p.takes_targets) check("targets", p.of.targets, {pattern.rows, width});
  if (p.parameters > 0)
    check("parameters", p.of.parameters, {static_cast<global_index>(p.parameters), width});
  if (p.of.slice.heads > 0) local::require_heads(name, p.of.slice, width);
}

template <template <instruction_set> class Kernel, class T, class F, class... A>
inline void run(const device_queue<host>& q, const operands<F, T>& p, local_index width, A... arguments) {
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), p.a, 4 * std::int64_t{width}, [&](local_index begin, local_index end) {
      run_with<instructions>(Kernel<instructions>(), p, arguments..., begin, end);
    });
  });
}

}  // namespace message_detail

/// y(i, j) = beta y(i, j) + weights(i) sum_e f(sources(col(e), j), targets(i, j), values[e, h(j)],
/// parameters(., j)) over the entries of row i; beta = 0 overwrites y. sources is (a.cols, f), y (a.rows, f),
/// with columns as in the slice; so is targets if F takes it, parameters is (K, f), and weights is (a.rows,
/// 1), or has no columns and is 1. Throws shape_error if the shapes do not match.
template <class F, class T>
inline void message_sums(const device_queue<host>& q, local::input_csr<T> a, F f,
                         const local::message_operands<T>& of, local::input_view<T> weights,
                         local::scalar<T> beta, matrix_view<T> y) {
  const message_detail::operands<F, T> p{f, a, of};
  message_detail::require("message_sums", q, p, {a.rows, a.cols}, y.cols);
  message_detail::run<message_detail::sums, T>(q, p, y.cols, weights, T(beta), y);
}

/// y(i, j) = the largest of itself and of sign f(...) as above; winners(i, j) = the name of its entry,
/// names[e]
/// + first_name, the smallest of equals. What winners < 0 stand for has no value yet. Throws as above.
template <class F, class T>
inline void message_largest(const device_queue<host>& q, local::input_csr<T> a, F f,
                            const local::message_operands<T>& of, local::scalar<T> sign,
                            const local_index* names, local_index first_name, matrix_view<T> y,
                            matrix_view<local_index> winners) {
  const message_detail::operands<F, T> p{f, a, of};
  message_detail::require("message_largest", q, p, {a.rows, a.cols}, y.cols);
  message_detail::run<message_detail::largest, T>(q, p, y.cols, T(sign), names, first_name, y, winners);
}

/// values[e, h] = the sum of f(...) as above over the columns of head h of `to` that sources (a.cols, f) has.
/// Throws as above.
template <class F, class T>
inline void message_scores(const device_queue<host>& q, local::input_csr<T> a, F f,
                           const local::message_operands<T>& of, local::head_slice to, T* values) {
  const message_detail::operands<F, T> p{f, a, of};
  const local_index width = of.sources.cols;
  message_detail::require("message_scores", q, p, {a.rows, a.cols}, width);
  local::require_heads("message_scores", to, width);
  message_detail::run<message_detail::scores, T>(q, p, width, to, width, values);
}

}  // namespace partita::on_host
