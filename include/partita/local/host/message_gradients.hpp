// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The gradients of messages, in which f is called with dual numbers.

#include <utility>
#include <vector>

#include "partita/base/dual.hpp"
#include "partita/local/csr_inverse.hpp"
#include "partita/local/host/messages.hpp"

namespace partita::on_host {

namespace message_detail {

/// The gradients of the messages of entry e, in row i, for `size` columns from `first` on: *scale times the
/// result, which may be in `memory`.
template <class T>
inline const T* gradients_of(const local::message_gradient<T>& g, local_index i, local_index e,
                             local_index first, local_index size, T* memory, T* scale) {
  *scale = 1;
  const local::head_slice& s = g.of_scores;
  if (s.heads > 0) {
    const T* const scores = edge_values(g.scores, e, s.heads);
    if (s.head_width == 1) return scores + s.first_col + first;
    for_heads(s, first, first + size, [&](local_index begin, local_index end, local_index h) {
      local_index j = begin - first;
      for (; j + 8 <= end - first; j += 8)
        for (local_index k = 0; k < 8; ++k) memory[j + k] = scores[h];
      for (; j < end - first; ++j) memory[j] = scores[h];
    });
    return memory;
  }
  const T* const row = g.rows.row_data(i) + first;
  if (g.winners.cols == 0) {
    if (g.weights.cols > 0) *scale = g.weights(i, 0);
    return row;
  }
  const local_index* const winner = g.winners.row_data(i) + first;
  const local_index name = g.names[e] + g.first_name;
  for (local_index j = 0; j < size; ++j) memory[j] = winner[j] == name ? row[j] : T(0);
  return memory;
}

/// p, with inputs of derivatives from the first-th on, if there are so many.
template <class F, class Dual, class T>
inline local::parameters_of<F, Dual> inputs(const local::parameters_of<F, T>& p, std::size_t first) {
  local::parameters_of<F, Dual> all{};
  for (std::size_t k = 0; k < p.size(); ++k)
    all[k] = first + k < Dual().slope.size() ? Dual::input(p[k], static_cast<int>(first + k)) : Dual(p[k]);
  return all;
}

/// Adds what rows [begin, end) give to the gradients of targets, of values and of parameters.
template <instruction_set I>
struct row_gradients {
  template <class F, class T>
  void operator()(const operands<F, T>& p, const local::message_gradient<T>& g, local_index cols,
                  const matrix_view<T>& dtargets, T* dvalues, const matrix_view<T>& dparameters,
                  local_index begin, local_index end) const {
    for (local_index i = begin; i < end; ++i)
      for_strips(p.of.slice, cols, [&](local_index size, local_index first, local_index v, auto each) {
        T sum[strip] = {}, of_parameters[std::max<std::size_t>(operands<F, T>::parameters, 1)][strip] = {};
        for (local_index e = p.a.offsets[i]; e < p.a.offsets[i + 1]; ++e) {
          p.prefetch(p.of.sources, e, first, size);
          T of_value[strip], memory[strip], scale;
          const T* const gradient = gradients_of(g, i, e, first, size, memory, &scale);
          slopes(p, i, e, size, first, v, each, gradient, scale, sum, of_value, of_parameters);
          if (dvalues == nullptr) continue;
          T* const to = edge_values(dvalues, e, p.of.slice.heads) + v;
          if constexpr (decltype(each)::value)
            for (local_index j = 0; j < size; ++j) to[j] += of_value[j];
          else
            *to += total(of_value, size);
        }
        for (local_index k = 0; k < dparameters.rows; ++k)
          for (local_index j = 0; j < size; ++j) dparameters(k, first + j) += of_parameters[k][j];
        if (dtargets.cols == 0) return;
        T* const to = dtargets.row_data(i) + first;
        for (local_index j = 0; j < size; ++j) to[j] += sum[j];
      });
  }

 private:
  /// Adds the gradients of one entry.
  template <class F, class T, class Each>
  static void slopes(const operands<F, T>& p, local_index i, local_index e, local_index size,
                     local_index first, local_index v, Each each, const T* gradient, T scale, T* of_target,
                     T* of_value, T (*of_parameters)[strip]) {
    constexpr std::size_t count = operands<F, T>::parameters;
    using number = base::dual<T, 2 + static_cast<int>(count)>;
    const T* const source = p.of.sources.row_data(p.a.columns[e]) + first;
    const T* const target = p.target(i, first);
    const T* const value = p.value(e) + v;
    for (local_index j = 0; j < size; ++j) {
      const number m = local::message_of<F, number>(
          p.f, source[j], number::input(p.takes_targets ? target[j] : T(0), 0),
          number::input(value[each ? j : 0], 1), inputs<F, number, T>(p.parameter(first + j), 2));
      const T of_message = scale * gradient[j];
      if constexpr (operands<F, T>::takes_targets) of_target[j] += of_message * m.slope[0];
      of_value[j] = of_message * m.slope[1];
      for (std::size_t k = 0; k != count; ++k) of_parameters[k][j] += of_message * m.slope[2 + k];
    }
  }
};

/// Rows [begin, end) of the gradient of sources, from their out-edges.
template <instruction_set I>
struct source_gradients {
  template <class F, class T>
  void operator()(const operands<F, T>& p, const local::message_gradient<T>& g, T beta,
                  const matrix_view<T>& dsources, local_index begin, local_index end) const {
    using number = base::dual<T, 1>;
    for (local_index c = begin; c < end; ++c)
      for_strips(
          p.of.slice, dsources.cols, [&](local_index size, local_index from, local_index v, auto each) {
            T memory[strip];
            const auto row = [&](local_index e, local_index first, local_index count) {
              if (g.rows.cols > 0) p.prefetch(g.rows, e, first, count);
              if (p.takes_targets) p.prefetch(p.of.targets, e, first, count);
              if (p.of.slice.heads > 0) p.prefetch(p.of.values, p.of.slice.heads, e, v, each ? count : 1);
              if (g.scores != nullptr) p.prefetch(g.scores, g.of_scores.heads, e, 0, g.of_scores.heads);
              const local_index i = p.a.columns[e];
              T scale;
              const T* const gradient = gradients_of(g, i, p.entry(e), first, count, memory, &scale);
              const T* const source = p.of.sources.row_data(c) + first;
              const T* const target = p.target(i, first);
              const T* const value = p.value(e) + v + (each ? first - from : 0);
              return [=, &p](local_index j) {
                const number m = local::message_of<F, number>(
                    p.f, number::input(source[j], 0), p.takes_targets ? target[j] : T(0), value[each ? j : 0],
                    inputs<F, number, T>(p.parameter(first + j), 1));
                return scale * gradient[j] * m.slope[0];
              };
            };
            T* const to = dsources.row_data(c);
            sum_strip<T>(p.a.offsets[c], p.a.offsets[c + 1], from, size, row,
                         [&](local_index j, T sum) { to[j] = sum + (beta == T(0) ? T(0) : beta * to[j]); });
          });
  }
};

/// As run, with sums of parameters for blocks of rows, which do not depend on the number of threads.
template <class T, class F>
inline void run_with_parameters(const device_queue<host>& q, const operands<F, T>& p,
                                const local::message_gradient<T>& g, matrix_view<T> dtargets, T* dvalues,
                                matrix_view<T> dparameters) {
  constexpr int most = 64;
  const local_index rows = dparameters.rows, cols = dparameters.cols;
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  entry_ranges ranges(1, p.a.rows, p.a.offsets, 1);
  ranges.count = static_cast<int>(std::min<local_index>(most, p.a.rows));
  std::vector<T> sums(size * static_cast<std::size_t>(ranges.count));
  const auto of_range = [&](int k) {
    return matrix_view<T>{sums.data() + size * static_cast<std::size_t>(k), rows, cols, cols};
  };
  with_instructions([&](auto instructions) {
    run_tasks(q.threads(), ranges.count, [&](int k) {
      run_with<instructions>(row_gradients<instructions>(), p, g, cols, dtargets, dvalues, of_range(k),
                             ranges.begin(k), ranges.begin(k + 1));
    });
  });
  for (int k = 0; k < ranges.count; ++k)
    for (local_index i = 0; i < rows; ++i)
      for (local_index j = 0; j < cols; ++j) dparameters(i, j) += of_range(k)(i, j);
}

}  // namespace message_detail

/// The gradients of messages (see the kernels in messages.hpp), given those of their results: dtargets
/// (a.rows, f) += that of targets, unless it has no columns, dvalues += that of values, unless null, and
/// dparameters (K, f) += that of the parameters. Throws shape_error if the shapes do not match.
template <class F, class T>
inline void message_row_gradients(const device_queue<host>& q, local::input_csr<T> a, F f,
                                  const local::message_operands<T>& of,
                                  const local::message_gradient<T>& gradient, matrix_view<T> dtargets,
                                  T* dvalues, matrix_view<T> dparameters) {
  const message_detail::operands<F, T> p{f, a, of};
  const local_index width = of.sources.cols;
  message_detail::require("message_row_gradients", q, p, {a.rows, a.cols}, width);
  if constexpr (local::parameter_count<F>() > 0)
    message_detail::run_with_parameters<T>(q, p, gradient, dtargets, dvalues, dparameters);
  else
    message_detail::run<message_detail::row_gradients, T>(q, p, width, gradient, width, dtargets, dvalues,
                                                          dparameters);
}

/// dsources = beta dsources + the gradient of sources, as above; beta = 0 overwrites. `a` is the inverse of
/// the pattern. Throws shape_error if the shapes do not match.
template <class F, class T>
inline void message_source_gradients(const device_queue<host>& q, const local::csr_inverse_view& a, F f,
                                     const local::message_operands<T>& of,
                                     const local::message_gradient<T>& gradient, local::scalar<T> beta,
                                     matrix_view<T> dsources) {
  const message_detail::operands<F, T> p{f, a.transposed<T>(), of, a.entry_numbers};
  message_detail::require("message_source_gradients", q, p, {a.rows, a.cols}, dsources.cols);
  message_detail::run<message_detail::source_gradients, T>(q, p, dsources.cols, gradient, T(beta), dsources);
}

}  // namespace partita::on_host
