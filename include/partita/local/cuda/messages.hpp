// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Messages of a user's function along the entries of a pattern, and their gradients. f has a named type and
/// a constexpr call operator.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/base/dual.hpp"
#include "partita/local/csr_inverse.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/local/cuda/partial_sums.hpp"
#include "partita/local/cuda/row_fold.hpp"
#include "partita/local/message_operands.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

namespace message_detail {

/// f of column j of entry e, whose source has the value x and whose row of the pattern is i.
template <class F, class T>
struct reader {
  static constexpr std::size_t parameters = local::parameter_count<F>();

  F f;
  local::message_operands<T> of;

  constexpr T message(local_index i, local_index e, local_index j, T x) const {
    local::parameters_of<F, T> p{};
    for (std::size_t k = 0; k != parameters; ++k) p[k] = of.parameters(static_cast<local_index>(k), j);
    return local::message_of<F, T>(f, x, target(i, j), value(e, j), p);
  }
  /// With slopes by the source.
  constexpr base::dual<T, 1> of_source(local_index i, local_index e, local_index j, T x) const {
    using number = base::dual<T, 1>;
    local::parameters_of<F, number> p{};
    for (std::size_t k = 0; k != parameters; ++k)
      p[k] = number(of.parameters(static_cast<local_index>(k), j));
    return local::message_of<F, number>(f, number::input(x, 0), number(target(i, j)), number(value(e, j)), p);
  }
  /// With slopes by the target, by the value and by the parameters.
  constexpr auto of_row(local_index i, local_index e, local_index j, T x) const {
    using number = base::dual<T, 2 + static_cast<int>(parameters)>;
    local::parameters_of<F, number> p{};
    for (std::size_t k = 0; k != parameters; ++k)
      p[k] = number::input(of.parameters(static_cast<local_index>(k), j), 2 + static_cast<int>(k));
    return local::message_of<F, number>(f, number(x), number::input(target(i, j), 0),
                                        number::input(value(e, j), 1), p);
  }

 private:
  constexpr T target(local_index i, local_index j) const {
    if constexpr (local::reads_targets<F, T>)
      return of.targets(i, j);
    else
      return T(0);
  }
  constexpr T value(local_index e, local_index j) const {
    return of.slice.heads == 0 ? T(1) : of.values[edge_at(e, of.slice.heads, of.slice.head_of(j))];
  }
};

/// Base of folds of what comes of the source of each entry.
template <class T, int Width>
struct source_ahead : columns_ahead {
  struct term {
    local_index entry, column;
    pack_of<T, Width> x;
  };
  row_table<T> sources;

  constexpr term term_of(local_index e, local_index v) const { return of_entry(e, this->columns[e], v); }
  constexpr void terms_of(const ahead& four, local_index e, local_index v, term (&terms)[4]) const {
    for (int k = 0; k < 4; ++k) terms[k] = of_entry(e + k, four.at[k], v);
  }

 private:
  constexpr term of_entry(local_index e, local_index column, local_index v) const {
    return {e, column, load<Width>(sources.at(column, v * Width))};
  }
};

/// total + beta y, in y.
template <class T, int Width>
constexpr void store_sum(const pack_of<T, Width>& total, T scale, T beta, T* y) {
  pack_of<T, Width> result{};
  for (int c = 0; c < Width; ++c) result.at[c] = scale * total.at[c] + (beta == 0 ? T(0) : beta * y[c]);
  on_cuda::store(result, y);
}

template <class F, class T, int Width>
struct sums : summing<source_ahead<T, Width>, pack_of<T, Width>> {
  static constexpr int min_blocks_per_multiprocessor = 2;
  using typename source_ahead<T, Width>::term;

  reader<F, T> read;
  matrix_view<const T> weights;
  T beta;
  matrix_view<T> y;

  constexpr void add(pack_of<T, Width>& total, const term& next, local_index row, local_index v) const {
    for (int c = 0; c < Width; ++c) total.at[c] += read.message(row, next.entry, v * Width + c, next.x.at[c]);
  }
  constexpr void store(const pack_of<T, Width>& total, local_index row, local_index v) const {
    store_sum(total, weights.cols == 0 ? T(1) : weights(row, 0), beta, y.row_data(row) + v * Width);
  }
};

template <class F, class T>
struct largest : source_ahead<T, 1> {
  using typename source_ahead<T, 1>::term;
  struct sum {
    T best;
    local_index name;
  };

  reader<F, T> read;
  T sign;
  const local_index* names;
  local_index first_name;
  matrix_view<T> y;
  matrix_view<local_index> winners;

  constexpr sum zero() const { return {0, -1}; }
  constexpr void add(sum& best, const term& next, local_index row, local_index v) const {
    take(best, {sign * read.message(row, next.entry, v, next.x.at[0]), names[next.entry] + first_name});
  }
  constexpr void merge(sum& best, const sum& later) const {
    if (later.name >= 0) take(best, later);
  }
  constexpr void store(const sum& found, local_index row, local_index v) const {
    sum best{y(row, v), winners(row, v)};
    merge(best, found);
    y(row, v) = best.best;
    winners(row, v) = best.name;
  }

 private:
  static constexpr void take(sum& best, const sum& next) {
    if (local::beats(next.best, next.name, best.best, best.name)) best = next;
  }
};

template <class F, class T>
struct scores {
  reader<F, T> read;
  const local_index* columns;
  local::head_slice to;
  T* values;

  constexpr void operator()(local_index row, local_index e) const {
    for (local_index h = 0; h < to.heads; ++h) values[edge_at(e, to.heads, h)] = 0;
    for (local_index j = 0; j < read.of.sources.cols; ++j)
      values[edge_at(e, to.heads, to.head_of(j))] += read.message(row, e, j, read.of.sources(columns[e], j));
  }
};

template <class F, class T, int Width>
struct target_gradients : summing<source_ahead<T, Width>, pack_of<T, Width>> {
  static constexpr int min_blocks_per_multiprocessor = 2;
  using typename source_ahead<T, Width>::term;

  reader<F, T> read;
  local::message_gradient<T> g;
  matrix_view<T> dtargets;

  constexpr void add(pack_of<T, Width>& total, const term& next, local_index row, local_index v) const {
    for (int c = 0; c < Width; ++c) {
      const local_index j = v * Width + c;
      total.at[c] += g(row, next.entry, j) * read.of_row(row, next.entry, j, next.x.at[c]).slope[0];
    }
  }
  constexpr void store(const pack_of<T, Width>& total, local_index row, local_index v) const {
    store_sum(total, T(1), T(1), dtargets.row_data(row) + v * Width);
  }
};

template <class F, class T>
struct value_gradients {
  reader<F, T> read;
  local::message_gradient<T> g;
  const local_index* columns;
  T* dvalues;

  constexpr void operator()(local_index row, local_index e) const {
    const local::head_slice& s = read.of.slice;
    for (local_index j = 0; j < read.of.sources.cols; ++j)
      dvalues[edge_at(e, s.heads, s.head_of(j))] +=
          g(row, e, j) * read.of_row(row, e, j, read.of.sources(columns[e], j)).slope[1];
  }
};

/// Of a block of rows, in one column: a row of `parts` for each parameter.
template <class F, class T>
struct parameter_gradients {
  reader<F, T> read;
  local::message_gradient<T> g;
  local::csr_view<T> a;
  local_index blocks;
  T* parts;

  constexpr void operator()(std::int64_t thread) const {
    constexpr std::size_t count = reader<F, T>::parameters;
    const local_index cols = read.of.sources.cols;
    const cell at = cell_of(thread, cols);
    const auto row = [&](local_index block) {
      return static_cast<local_index>(std::int64_t{a.rows} * block / blocks);
    };
    T sum[count == 0 ? 1 : count] = {};
    for (local_index i = row(at.row); i < row(at.row + 1); ++i)
      for (local_index e = a.offsets[i]; e < a.offsets[i + 1]; ++e) {
        const auto m = read.of_row(i, e, at.col, read.of.sources(a.columns[e], at.col));
        const T of_message = g(i, e, at.col);
        for (std::size_t k = 0; k != count; ++k) sum[k] += of_message * m.slope[2 + k];
      }
    for (std::size_t k = 0; k != count; ++k)
      parts[(std::int64_t{at.row} * static_cast<std::int64_t>(count) + static_cast<std::int64_t>(k)) * cols +
            at.col] = sum[k];
  }
};

template <class F, class T, int Width>
struct source_gradients : summing<columns_ahead, pack_of<T, Width>> {
  static constexpr int min_blocks_per_multiprocessor = 2;
  struct term {
    local_index entry, row;
  };

  reader<F, T> read;
  local::message_gradient<T> g;
  const local_index* entries;
  T beta;
  matrix_view<T> dsources;

  constexpr term term_of(local_index t, local_index) const { return {entries[t], this->columns[t]}; }
  constexpr void add(pack_of<T, Width>& total, const term& next, local_index column, local_index v) const {
    const T* const source = read.of.sources.row_data(column);
    for (int c = 0; c < Width; ++c) {
      const local_index j = v * Width + c;
      total.at[c] += g(next.row, next.entry, j) * read.of_source(next.row, next.entry, j, source[j]).slope[0];
    }
  }
  constexpr void store(const pack_of<T, Width>& total, local_index row, local_index v) const {
    store_sum(total, T(1), beta, dsources.row_data(row) + v * Width);
  }
};

/// Throws shape_error unless the operands match the pattern (rows x cols) and `width`.
template <class F, class T>
void require(const char* name, const local::message_operands<T>& of, matrix_shape pattern,
             local_index width) {
  const auto check = [&](const char* what, const matrix_view<const T>& x, matrix_shape expected) {
    local::require_equal(name, what, local::shape_of(x), "what the pattern needs", expected);
  };
  check("sources", of.sources, {pattern.cols, width});
  if (local::reads_targets<F, T>) check("targets", of.targets, {pattern.rows, width});
  constexpr auto count = static_cast<global_index>(local::parameter_count<F>());
  if (count > 0) check("parameters", of.parameters, {count, width});
  if (of.slice.heads > 0) local::require_heads(name, of.slice, width);
}

/// f(width of packs) for the columns of sources and y.
template <class T, class Call>
void with_packs(const local::message_operands<T>& of, const matrix_view<T>& y, const Call& f) {
  with_width<widest<T>>(of.sources.cols, f, of.sources, y);
}

}  // namespace message_detail

/// As on_host::message_sums.
template <class F, class T>
void message_sums(const device_queue<cuda_device>& q, local::input_csr<T> a, F f,
                  const local::message_operands<T>& of, local::input_view<T> weights, local::scalar<T> beta,
                  matrix_view<T> y) {
  message_detail::require<F, T>("message_sums", of, {a.rows, a.cols}, y.cols);
  message_detail::with_packs(of, y, [&]<int width>(std::integral_constant<int, width>) {
    fold_rows(
        q, rows_of(a), y.cols / width, skew(a.columns, 4),
        message_detail::sums<F, T, width>{{{{a.columns}, table_of(of.sources)}}, {f, of}, weights, beta, y});
  });
}

/// As on_host::message_largest.
template <class F, class T>
void message_largest(const device_queue<cuda_device>& q, local::input_csr<T> a, F f,
                     const local::message_operands<T>& of, local::scalar<T> sign, const local_index* names,
                     local_index first_name, matrix_view<T> y, matrix_view<local_index> winners) {
  message_detail::require<F, T>("message_largest", of, {a.rows, a.cols}, y.cols);
  fold_rows(q, rows_of(a), y.cols, skew(a.columns, 4),
            message_detail::largest<F, T>{
                {{a.columns}, table_of(of.sources)}, {f, of}, sign, names, first_name, y, winners});
}

/// As on_host::message_scores.
template <class F, class T>
void message_scores(const device_queue<cuda_device>& q, local::input_csr<T> a, F f,
                    const local::message_operands<T>& of, local::head_slice to, T* values) {
  message_detail::require<F, T>("message_scores", of, {a.rows, a.cols}, of.sources.cols);
  local::require_heads("message_scores", to, of.sources.cols);
  for_entries(q, rows_of(a), message_detail::scores<F, T>{{f, of}, a.columns, to, values});
}

/// As on_host::message_row_gradients.
template <class F, class T>
void message_row_gradients(const device_queue<cuda_device>& q, local::input_csr<T> a, F f,
                           const local::message_operands<T>& of, const local::message_gradient<T>& gradient,
                           matrix_view<T> dtargets, T* dvalues, matrix_view<T> dparameters) {
  message_detail::require<F, T>("message_row_gradients", of, {a.rows, a.cols}, of.sources.cols);
  const message_detail::reader<F, T> read{f, of};
  if (dtargets.cols > 0)
    message_detail::with_packs(of, dtargets, [&]<int width>(std::integral_constant<int, width>) {
      fold_rows(q, rows_of(a), dtargets.cols / width, skew(a.columns, 4),
                message_detail::target_gradients<F, T, width>{
                    {{{a.columns}, table_of(of.sources)}}, read, gradient, dtargets});
    });
  if (dvalues != nullptr)
    for_entries(q, rows_of(a), message_detail::value_gradients<F, T>{read, gradient, a.columns, dvalues});
  if constexpr (local::parameter_count<F>() > 0) {
    if (a.rows == 0) return;
    constexpr local_index most = 2048;
    const local_index blocks = std::min(a.rows, most);
    auto& parts = q.resource<block_memory<T>>().parts;
    parts.reset(q, static_cast<std::size_t>(blocks) * static_cast<std::size_t>(dparameters.rows) *
                       static_cast<std::size_t>(dparameters.cols));
    on_cuda::launch(q, std::int64_t{blocks} * dparameters.cols,
                    message_detail::parameter_gradients<F, T>{read, gradient, a, blocks, parts.data()});
    on_cuda::launch(q, std::int64_t{dparameters.rows} * dparameters.cols,
                    add_blocks<true, T>{parts.data(), blocks, dparameters});
  }
}

/// As on_host::message_source_gradients.
template <class F, class T>
void message_source_gradients(const device_queue<cuda_device>& q, const local::csr_inverse_view& a, F f,
                              const local::message_operands<T>& of,
                              const local::message_gradient<T>& gradient, local::scalar<T> beta,
                              matrix_view<T> dsources) {
  message_detail::require<F, T>("message_source_gradients", of, {a.rows, a.cols}, dsources.cols);
  message_detail::with_packs(of, dsources, [&]<int width>(std::integral_constant<int, width>) {
    fold_rows(q, rows_of(a.transposed<T>()), dsources.cols / width, skew(a.entry_rows, 4),
              message_detail::source_gradients<F, T, width>{
                  {{a.entry_rows}}, {f, of}, gradient, a.entry_numbers, beta, dsources});
  });
}

}  // namespace partita::on_cuda
