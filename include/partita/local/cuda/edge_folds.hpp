// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Folds over the entries of a row for each head: for fold_heads, and fold_of_values for fold_rows.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "partita/local/cuda/edge_weights.hpp"
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
  row_table<T> sources, targets;

  constexpr T leaky(T z) const { return z > 0 ? z : slope * z; }
  __device__ T source(local_index e, local_index h) const {
    return *at_row(sources.data + h, columns[e], sources.stride);
  }
  __device__ T target(local_index row, local_index h) const { return *targets.at(row, h); }
};

/// Online log-sum-exp: largest + log(total), where total is the sum of exp(score - largest).
template <class T>
struct log_total {
  T largest = -std::numeric_limits<T>::infinity();
  double total = 0;

  constexpr void add(T score) {
    const bool larger = score > largest;
    const double factor = std::exp(larger ? largest - score : score - largest);
    total = larger ? total * factor + 1 : total + factor;
    largest = larger ? score : largest;
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
struct log_sums_of_scores {
  using sum = log_total<T>;
  using term = T;

  attention<T> scores;
  matrix_view<T> log_sum;

  constexpr sum zero() const { return {}; }
  __device__ T in_row(local_index row, local_index h) const { return scores.target(row, h); }
  __device__ term term_of(local_index e, local_index h) const { return scores.source(e, h); }
  constexpr void add(sum& total, term source, T target, local_index) const {
    total.add(scores.leaky(source + target));
  }
  constexpr void merge(sum& total, const sum& later) const { total.merge(later); }
  constexpr void store(const sum& total, local_index row, local_index h) const {
    log_sum(row, h) = total.total == 0 ? T{0} : static_cast<T>(total.largest + std::log(total.total));
  }
};

/// Base of folds over heads that accumulate with +=.
template <class Sum>
struct summing_heads {
  using sum = Sum;

  constexpr sum zero() const { return 0; }
  constexpr void merge(sum& total, const sum& later) const { total += later; }
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
struct dots_of_values : summing_heads<double> {
  using term = double;

  const T* u;
  const T* v;
  local_index heads;
  matrix_view<To> out;

  constexpr nothing_of_entry in_row(local_index, local_index) const { return {}; }
  constexpr term term_of(local_index e, local_index h) const {
    return double{u[edge_at(e, heads, h)]} * v[edge_at(e, heads, h)];
  }
  constexpr void add(double& total, term product, nothing_of_entry, local_index) const { total += product; }
  constexpr void store(double total, local_index row, local_index h) const {
    out(row, h) = static_cast<To>(total);
  }
};

/// Softmax values of scores with their gradients: what folds over these have in common.
template <class T>
struct softmax_terms {
  struct row_terms {
    T target, log_sum;
  };
  struct term {
    local_index entry;
    T source, gradient;
  };

  attention<T> scores;
  matrix_view<const T> log_sum;
  T* edges;  ///< the gradients of the softmax values

  __device__ row_terms in_row(local_index row, local_index h) const {
    return {scores.target(row, h), log_sum(row, h)};
  }
  __device__ term term_of(local_index e, local_index h) const {
    return {e, scores.source(e, h), edges[edge_at(e, scores.heads, h)]};
  }
  __device__ T value(const term& of_entry, const row_terms& of_row) const {
    return exponential(scores.leaky(of_entry.source + of_row.target) - of_row.log_sum);
  }
};

/// Leaves gradients as they are.
struct unchanged {};

/// row_dot(i, h) = sum_e alpha(e, h) edges[e, h] with the softmax values alpha, accumulated in double, and
/// edges[e, h] = first(i, column, h, edges[e, h]) before.
template <class T, class First = unchanged>
struct softmax_row_dots : summing_heads<double>, softmax_terms<T> {
  using typename softmax_terms<T>::term;
  struct row_terms : softmax_terms<T>::row_terms {
    local_index row;
  };

  First first;
  matrix_view<T> row_dot;

  __device__ row_terms in_row(local_index row, local_index h) const {
    return {softmax_terms<T>::in_row(row, h), row};
  }
  __device__ void add(double& total, const term& next, const row_terms& of_row, local_index h) const {
    T gradient = next.gradient;
    if constexpr (!std::is_same_v<First, unchanged>) {
      gradient = first(of_row.row, this->scores.columns[next.entry], h, gradient);
      this->edges[edge_at(next.entry, this->scores.heads, h)] = gradient;
    }
    total += double{this->value(next, of_row)} * gradient;
  }
  constexpr void store(double total, local_index row, local_index h) const {
    row_dot(row, h) = static_cast<T>(total);
  }
};

/// dtarget(i, h) = beta dtarget(i, h) + sum_e g(e, h) over the entries of row i. In place: edges[e, h] holds
/// the gradient of the softmax values on entry and g(e, h), that of the score arguments, on return.
template <class T>
struct target_gradient : summing_heads<T>, softmax_terms<T> {
  using typename softmax_terms<T>::term;
  struct row_terms : softmax_terms<T>::row_terms {
    T dot;
  };

  matrix_view<const T> row_dot;
  T beta;
  matrix_view<T> dtarget;

  __device__ row_terms in_row(local_index row, local_index h) const {
    return {softmax_terms<T>::in_row(row, h), row_dot(row, h)};
  }
  __device__ void add(T& total, const term& next, const row_terms& of_row, local_index h) const {
    const T slope = next.source + of_row.target > 0 ? T{1} : this->scores.slope;
    const T g = this->value(next, of_row) * (next.gradient - of_row.dot) * slope;
    this->edges[edge_at(next.entry, this->scores.heads, h)] = g;
    total += g;
  }
  constexpr void store(T total, local_index row, local_index h) const {
    dtarget(row, h) = beta == 0 ? total : total + beta * dtarget(row, h);
  }
};

/// dsource(c, h) = beta dsource(c, h) + sum_e g[e, h] over the entries of column c; a fold over the
/// transposed pattern, whose t-th entry is entry numbers[t].
template <class T>
struct source_gradient : summing_heads<T> {
  using term = T;

  const T* g;
  const local_index* numbers;
  local_index heads;
  T beta;
  matrix_view<T> dsource;

  constexpr nothing_of_entry in_row(local_index, local_index) const { return {}; }
  constexpr term term_of(local_index t, local_index h) const { return g[edge_at(numbers[t], heads, h)]; }
  constexpr void add(T& total, term next, nothing_of_entry, local_index) const { total += next; }
  constexpr void store(T total, local_index column, local_index h) const {
    dsource(column, h) = beta == 0 ? total : total + beta * dsource(column, h);
  }
};

/// Calls f(row, e, h) for every entry and head.
template <class F>
struct each_head {
  struct sum {};
  using term = local_index;

  F f;

  constexpr sum zero() const { return {}; }
  constexpr local_index in_row(local_index row, local_index) const { return row; }
  constexpr term term_of(local_index e, local_index) const { return e; }
  __device__ void add(sum&, local_index e, local_index row, local_index h) const { f(row, e, h); }
};

}  // namespace partita::on_cuda
