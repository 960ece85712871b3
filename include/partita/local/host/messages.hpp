// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Messages of a user's function along the entries of a pattern, m(e, j) = f(x(col(e), j), t(row(e), j),
/// value of e), their sums over rows, and the gradients of these, in which f is called with dual numbers. f
/// is called with three arguments or, if it takes no more, with the first and the third.

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "partita/base/dual.hpp"
#include "partita/local/csr_inverse.hpp"
#include "partita/local/head_slice.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace message_detail {

template <class F, class X>
inline constexpr bool takes_targets = std::is_invocable_v<const F&, X, X, X>;

template <class F, class X>
constexpr X call(const F& f, const X& source, const X& target, const X& edge) {
  if constexpr (takes_targets<F, X>)
    return f(source, target, edge);
  else
    return f(source, edge);
}

/// `s` has no heads where entries have no values; targets and weights may have no columns. `gradients`: of
/// the sums, before weights.
template <class F, class T>
struct operands {
  F f;
  local::csr_view<T> a;  ///< rows are targets; or sources, and columns targets
  local::head_slice s;
  const T* values;
  const local_index* order;  ///< maps entries to value indices; null for the identity
  matrix_view<const T> sources, targets, weights, gradients;

  static constexpr T one = 1;
  const T* value(local_index e) const {
    if (s.heads == 0) return &one;
    return edge_values(values, order == nullptr ? e : order[e], s.heads);
  }
  T weight(local_index i) const { return weights.cols == 0 ? T(1) : weights(i, 0); }
  /// The columns of row i of targets from `begin` on, if f takes them.
  const T* target(local_index i, local_index begin) const {
    return takes_targets<F, T> ? targets.row_data(i) + begin : nullptr;
  }
  /// Asks for the columns of x that an entry needs a little later.
  void prefetch(const matrix_view<const T>& x, local_index e, local_index begin, local_index size) const {
    const local_index later = std::min(e + 8, a.offsets[a.rows] - 1);
    const T* const row = x.row_data(a.columns[later]) + begin;
    for (local_index j = 0; j < size; j += 64 / static_cast<local_index>(sizeof(T)))
      __builtin_prefetch(row + j);
  }
};

/// The most columns that are computed together. g++ 12 makes slower loops over a number that it knows than
/// over another, as most widths of layers are.
inline constexpr local_index strip = 128;

/// Calls f(size, begin, v, one value each) for strips of the columns [0, cols): those of a strip have value v
/// of an entry, or one each from v on. Sizes are constants but for the last strip of a head.
template <local_index Size, class F>
inline void for_strips(const local::head_slice& s, local_index cols, const F& f) {
  const auto cut = [&](local_index begin, local_index end, local_index v, auto each) {
    for (; end - begin >= Size; begin += Size, v += each ? Size : 0)
      f(std::integral_constant<local_index, Size>(), begin, v, each);
    if (begin < end) f(end - begin, begin, v, each);
  };
  if (s.heads == 0) return cut(0, cols, 0, std::false_type());
  if (s.head_width == 1) return cut(0, cols, s.first_col, std::true_type());
  for_heads(s, 0, cols, [&](local_index begin, local_index end, local_index h) {
    cut(begin, end, h, std::false_type());
  });
}

/// Rows [begin, end) of the weighted sums of messages.
template <instruction_set I>
struct sums {
  template <class F, class T>
  void operator()(const operands<F, T>& p, T beta, const matrix_view<T>& y, local_index begin,
                  local_index end) const {
    for (local_index i = begin; i < end; ++i)
      for_strips<strip>(p.s, y.cols, [&](auto size, local_index first, local_index v, auto each) {
        T sum[strip] = {};
        const T* const target = p.target(i, first);
        for (local_index e = p.a.offsets[i]; e < p.a.offsets[i + 1]; ++e) {
          p.prefetch(p.sources, e, first, size);
          const T* const source = p.sources.row_data(p.a.columns[e]) + first;
          const T* const value = p.value(e) + v;
          for (local_index j = 0; j < size; ++j)
            sum[j] += call(p.f, source[j], takes_targets<F, T> ? target[j] : T(0), value[each ? j : 0]);
        }
        T* const to = y.row_data(i) + first;
        const T weight = p.weight(i);
        for (local_index j = 0; j < size; ++j) to[j] = weight * sum[j] + (beta == T(0) ? T(0) : beta * to[j]);
      });
  }
};

/// Adds what rows [begin, end) give to the gradients of targets and of values.
template <instruction_set I>
struct row_gradients {
  template <class F, class T>
  void operator()(const operands<F, T>& p, const matrix_view<T>& dtargets, T* dvalues, local_index begin,
                  local_index end) const {
    for (local_index i = begin; i < end; ++i)
      for_strips<strip>(p.s, p.gradients.cols, [&](auto size, local_index first, local_index v, auto each) {
        T sum[strip] = {};
        for (local_index e = p.a.offsets[i]; e < p.a.offsets[i + 1]; ++e) {
          p.prefetch(p.sources, e, first, size);
          T of_value[strip] = {};
          slopes(p, i, e, size, first, v, each, sum, of_value);
          if (dvalues == nullptr) continue;
          T* const to = edge_values(dvalues, e, p.s.heads) + v;
          if constexpr (decltype(each)::value)
            for (local_index j = 0; j < size; ++j) to[j] += of_value[j];
          else
            *to += total(of_value);
        }
        if (dtargets.cols == 0) return;
        T* const to = dtargets.row_data(i) + first;
        for (local_index j = 0; j < size; ++j) to[j] += sum[j];
      });
  }

 private:
  /// Adds the gradients of one entry.
  template <class F, class T, class Size, class Each, std::size_t Most>
  static void slopes(const operands<F, T>& p, local_index i, local_index e, Size size, local_index first,
                     local_index v, Each each, T (&of_target)[Most], T (&of_value)[Most]) {
    using number = base::dual<T, 2>;
    const T* const source = p.sources.row_data(p.a.columns[e]) + first;
    const T* const target = p.target(i, first);
    const T* const value = p.value(e) + v;
    const T* const gradient = p.gradients.row_data(i) + first;
    const T weight = p.weight(i);
    for (local_index j = 0; j < size; ++j) {
      const number m =
          call<F, number>(p.f, source[j], number::input(takes_targets<F, T> ? target[j] : T(0), 0),
                          number::input(value[each ? j : 0], 1));
      of_target[j] += weight * gradient[j] * m.slope[0];
      of_value[j] = weight * gradient[j] * m.slope[1];
    }
  }
  /// By halves, in vectors.
  template <class T, std::size_t Most>
  static T total(T (&x)[Most]) {
    for (std::size_t half = Most / 2; half > 0; half /= 2)
      for (std::size_t j = 0; j < half; ++j) x[j] += x[j + half];
    return x[0];
  }
};

/// Rows [begin, end) of the gradient of sources, from their out-edges.
template <instruction_set I>
struct source_gradients {
  template <class F, class T>
  void operator()(const operands<F, T>& p, T beta, const matrix_view<T>& dsources, local_index begin,
                  local_index end) const {
    using number = base::dual<T, 1>;
    for (local_index c = begin; c < end; ++c)
      for_strips<strip>(p.s, dsources.cols, [&](auto size, local_index first, local_index v, auto each) {
        T sum[strip] = {};
        const T* const source = p.sources.row_data(c) + first;
        for (local_index e = p.a.offsets[c]; e < p.a.offsets[c + 1]; ++e) {
          p.prefetch(p.gradients, e, first, size);
          const local_index i = p.a.columns[e];
          const T* const target = p.target(i, first);
          const T* const value = p.value(e) + v;
          const T* const gradient = p.gradients.row_data(i) + first;
          const T weight = p.weight(i);
          for (local_index j = 0; j < size; ++j) {
            const number m = call<F, number>(p.f, number::input(source[j], 0),
                                             takes_targets<F, T> ? target[j] : T(0), value[each ? j : 0]);
            sum[j] += weight * gradient[j] * m.slope[0];
          }
        }
        T* const to = dsources.row_data(c) + first;
        for (local_index j = 0; j < size; ++j) to[j] = sum[j] + (beta == T(0) ? T(0) : beta * to[j]);
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
  check("sources", p.sources, {pattern.cols, width});
  if (takes_targets<F, T>) check("targets", p.targets, {pattern.rows, width});
  if (p.weights.cols > 0) check("weights", p.weights, {pattern.rows, 1});
  if (p.s.heads > 0) local::require_heads(name, p.s, width);
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

/// y(i, j) = beta y(i, j) + weights(i) sum_e f(sources(col(e), j), targets(i, j), values[e, h(j)]) over the
/// entries of row i; beta = 0 overwrites y. sources is (a.cols, f), y (a.rows, f), with columns as in s; so
/// is targets if F takes it, and weights is (a.rows, 1), or has no columns and is 1. Without heads the third
/// argument is 1. Throws shape_error if the shapes do not match.
template <class F, class T>
inline void message_sums(const device_queue<host>& q, local::input_csr<T> a, local::head_slice s, F f,
                         const local::scalar<T>* values, local::input_view<T> sources,
                         local::input_view<T> targets, local::input_view<T> weights, local::scalar<T> beta,
                         matrix_view<T> y) {
  const message_detail::operands<F, T> p{f, a, s, values, nullptr, sources, targets, weights, {}};
  message_detail::require("message_sums", q, p, {a.rows, a.cols}, y.cols);
  message_detail::run<message_detail::sums, T>(q, p, y.cols, T(beta), y);
}

/// The gradients of message_sums, given `gradients` (a.rows, f) of its y: dtargets += that of targets, unless
/// it has no columns, and dvalues += that of values, unless null. Throws shape_error if the shapes do not
/// match.
template <class F, class T>
inline void message_row_gradients(const device_queue<host>& q, local::input_csr<T> a, local::head_slice s,
                                  F f, const local::scalar<T>* values, local::input_view<T> sources,
                                  local::input_view<T> targets, local::input_view<T> weights,
                                  local::input_view<T> gradients, matrix_view<T> dtargets, T* dvalues) {
  const message_detail::operands<F, T> p{f, a, s, values, nullptr, sources, targets, weights, gradients};
  message_detail::require("message_row_gradients", q, p, {a.rows, a.cols}, gradients.cols);
  message_detail::run<message_detail::row_gradients, T>(q, p, gradients.cols, dtargets, dvalues);
}

/// dsources = beta dsources + the gradient of sources, as above; beta = 0 overwrites. `a` is the inverse of
/// the pattern. Throws shape_error if the shapes do not match.
template <class F, class T>
inline void message_source_gradients(const device_queue<host>& q, const local::csr_inverse_view& a,
                                     local::head_slice s, F f, const local::scalar<T>* values,
                                     local::input_view<T> sources, local::input_view<T> targets,
                                     local::input_view<T> weights, local::input_view<T> gradients,
                                     local::scalar<T> beta, matrix_view<T> dsources) {
  const message_detail::operands<F, T> p{f,       a.transposed<T>(), s,       values,   a.entry_numbers,
                                         sources, targets,           weights, gradients};
  message_detail::require("message_source_gradients", q, p, {a.rows, a.cols}, dsources.cols);
  message_detail::run<message_detail::source_gradients, T>(q, p, dsources.cols, T(beta), dsources);
}

}  // namespace partita::on_host
