// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Folds over the entries of a row for edge kernels, for use with fold_rows; each pack of columns is one
/// head.

#include <cmath>
#include <cstdint>
#include <limits>

#include "partita/local/cuda/row_fold.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// Attention scores: leaky(source(col(e), h) + target(row(e), h)).
template <class T>
struct attention {
  const local_index* columns;
  local_index heads;
  T slope;
  matrix_view<const T> source, target;

  constexpr T leaky(T z) const { return z > 0 ? z : slope * z; }
  constexpr T score(local_index row, local_index e, local_index h) const {
    return leaky(source(columns[e], h) + target(row, h));
  }
};

/// Online log-sum-exp: largest + log(total), where total is the sum of exp(score - largest).
template <class T>
struct log_total {
  T largest = -std::numeric_limits<T>::infinity();
  double total = 0;

  constexpr void add(T score) {
    if (score > largest) {
      total = total * std::exp(largest - score) + 1;
      largest = score;
    } else {
      total += std::exp(score - largest);
    }
  }
  constexpr void merge(const log_total& later) {
    if (total == 0) {
      *this = later;
    } else if (later.largest > largest) {
      total = total * std::exp(largest - later.largest) + later.total;
      largest = later.largest;
    } else if (later.total != 0) {
      total += later.total * std::exp(later.largest - largest);
    }
  }
};

/// log_sum(i, h) = log sum_e exp(score(e, h)), in a single pass over the scores.
template <class T>
struct log_sums_of_scores : columns_ahead {
  static constexpr int min_blocks_per_multiprocessor = sizeof(T) == sizeof(float) ? 4 : 3;

  using sum = log_total<T>;
  using term = T;

  attention<T> scores;
  matrix_view<T> log_sum;

  constexpr sum zero() const { return {}; }
  constexpr term term_of(local_index e, local_index h) const { return scores.source(columns[e], h); }
  constexpr void terms_of(const ahead& four, local_index, local_index h, term (&terms)[4]) const {
    for (int k = 0; k < 4; ++k) terms[k] = scores.source(four.at[k], h);
  }
  constexpr void add(sum& total, term source, local_index row, local_index h) const {
    total.add(scores.leaky(source + scores.target(row, h)));
  }
  constexpr void merge(sum& total, const sum& later) const { total.merge(later); }
  constexpr void store(const sum& total, local_index row, local_index h) const {
    log_sum(row, h) = total.total == 0 ? T{0} : static_cast<T>(total.largest + std::log(total.total));
  }
};

/// out(i, h) = f(out(i, h), f(... f(values[e, h], values[e', h]) ...)) over the entries of row i.
template <class F, class T>
struct fold_of_values : nothing_ahead {
  struct sum {
    T value;
    bool some;
  };
  using term = T;

  F f;
  const T* values;
  local_index heads;
  matrix_view<T> out;

  constexpr sum zero() const { return {}; }
  constexpr term term_of(local_index e, local_index h) const { return values[edge_at(e, heads, h)]; }
  constexpr void add(sum& total, term next, local_index, local_index) const { merge(total, {next, true}); }
  constexpr void merge(sum& total, const sum& later) const {
    if (later.some) total = {total.some ? f(total.value, later.value) : later.value, true};
  }
  constexpr void store(const sum& total, local_index row, local_index h) const {
    if (total.some) out(row, h) = f(out(row, h), total.value);
  }
};

/// out(row, h) = sum_e u[e, h] v[e, h], accumulated in double.
template <class T, class To>
struct dots_of_values : summing<nothing_ahead, double> {
  using term = double;

  const T* u;
  const T* v;
  local_index heads;
  matrix_view<To> out;

  constexpr term term_of(local_index e, local_index h) const {
    return double{u[edge_at(e, heads, h)]} * v[edge_at(e, heads, h)];
  }
  constexpr void add(double& total, term product, local_index, local_index) const { total += product; }
  constexpr void store(double total, local_index row, local_index h) const {
    out(row, h) = static_cast<To>(total);
  }
};

/// dtarget(i, h) = beta dtarget(i, h) + sum_e g(e, h) over the entries of row i. In place: edges[e, h] holds
/// the gradient of the softmax values on entry and g(e, h), that of the score arguments, on return.
template <class T>
struct target_gradient : summing<columns_ahead, T> {
  static constexpr int min_blocks_per_multiprocessor = sizeof(T) == sizeof(float) ? 4 : 2;

  using typename columns_ahead::ahead;
  struct term {
    local_index entry;
    T source, dvalue;
  };

  attention<T> scores;
  matrix_view<const T> log_sum, row_dot;
  T beta;
  T* edges;
  matrix_view<T> dtarget;

  constexpr term term_of(local_index e, local_index h) const { return of(this->columns[e], e, h); }
  constexpr void terms_of(const ahead& four, local_index e, local_index h, term (&terms)[4]) const {
    for (int k = 0; k < 4; ++k) terms[k] = of(four.at[k], e + k, h);
  }
  constexpr void add(T& total, const term& next, local_index row, local_index h) const {
    const T z = next.source + scores.target(row, h);
    const T alpha = std::exp(scores.leaky(z) - log_sum(row, h));
    const T g = alpha * (next.dvalue - row_dot(row, h)) * (z > 0 ? T{1} : scores.slope);
    edges[edge_at(next.entry, scores.heads, h)] = g;
    total += g;
  }
  constexpr void store(T total, local_index row, local_index h) const {
    dtarget(row, h) = beta == 0 ? total : total + beta * dtarget(row, h);
  }

 private:
  constexpr term of(local_index column, local_index e, local_index h) const {
    return {e, scores.source(column, h), edges[edge_at(e, scores.heads, h)]};
  }
};

/// dsource(c, h) = beta dsource(c, h) + sum_e g[e, h] over the entries of column c; a fold over the
/// transposed pattern, whose t-th entry is entry numbers[t].
template <class T>
struct source_gradient : summing<nothing_ahead, T> {
  using term = T;

  const T* g;
  const local_index* numbers;
  local_index heads;
  T beta;
  matrix_view<T> dsource;

  constexpr term term_of(local_index t, local_index h) const { return g[edge_at(numbers[t], heads, h)]; }
  constexpr void add(T& total, term next, local_index, local_index) const { total += next; }
  constexpr void store(T total, local_index column, local_index h) const {
    dsource(column, h) = beta == 0 ? total : total + beta * dsource(column, h);
  }
};

}  // namespace partita::on_cuda
