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
  /// Of `Width` heads from h on.
  template <int Width = 1>
  __device__ pack_of<T, Width> source(local_index e, local_index h) const {
    return load<Width>(at_row(sources.data + h, columns[e], sources.stride));
  }
  template <int Width = 1>
  __device__ pack_of<T, Width> target(local_index row, local_index h) const {
    return load<Width>(targets.at(row, h));
  }
};

/// Online log-sum-exp: largest + log(total), where total is the sum of exp(score - largest).
template <class T>
struct log_total {
  T largest = -std::numeric_limits<T>::infinity();
  double total = 0;

  constexpr void add(T score) {
    const bool larger = score > largest;
    const T factor = std::exp(larger ? largest - score : score - largest);
    total = larger ? total * factor + 1 : total + factor;
    largest = larger ? score : largest;
  }
  constexpr void merge(const log_total& later) {
    if (later.total == 0) return;
    const bool larger = later.largest > largest;
    const T factor = std::exp(larger ? largest - later.largest : later.largest - largest);
    total = larger ? total * factor + later.total : total + later.total * factor;
    largest = larger ? later.largest : largest;
  }
  /// The same of all lanes of a warp whose numbers differ in the bits from `first` on.
  __device__ void join(int first) {
    T most = largest;
    for (int apart = first; apart < 32; apart *= 2) {
      const T other = __shfl_xor_sync(0xffffffffu, most, apart);
      most = other > most ? other : most;
    }
    if (total != 0) total *= std::exp(largest - most);
    for (int apart = first; apart < 32; apart *= 2) total += __shfl_xor_sync(0xffffffffu, total, apart);
    largest = most;
  }
};

/// log_sum(i, h) = log sum_e exp(score(e, h)), in a single pass over the scores.
template <class T>
struct log_sums_of_scores {
  using sum = log_total<T>;
  template <int Width>
  using term = pack_of<T, Width>;

  attention<T> scores;
  matrix_view<T> log_sum;

  constexpr sum zero() const { return {}; }
  template <int Width>
  __device__ term<Width> in_row(local_index row, local_index h) const {
    return scores.template target<Width>(row, h);
  }
  template <int Width>
  __device__ term<Width> term_of(local_index e, local_index h) const {
    return scores.template source<Width>(e, h);
  }
  template <int Width>
  __device__ void add(sum (&totals)[Width], const pack_of<T, Width>& source, const pack_of<T, Width>& target,
                      local_index) const {
    for (int c = 0; c < Width; ++c) totals[c].add(scores.leaky(source.at[c] + target.at[c]));
  }
  constexpr void merge(sum& total, const sum& later) const { total.merge(later); }
  constexpr void store(const sum& total, local_index row, local_index h) const {
    log_sum(row, h) = total.total == 0 ? T{0} : static_cast<T>(total.largest + std::log(total.total));
  }
};

/// Base of folds over heads that accumulate with +=, in numbers of type Sum, to beta out(row, h) + total.
template <class Sum, class T>
struct summing_heads {
  using sum = Sum;

  T beta;
  matrix_view<T> out;

  constexpr sum zero() const { return 0; }
  constexpr void merge(sum& total, const sum& later) const { total += later; }
  constexpr void store(sum total, local_index row, local_index h) const {
    const auto result = static_cast<T>(total);
    out(row, h) = beta == 0 ? result : result + beta * out(row, h);
  }
};
/// For folds that need nothing of rows.
struct nothing_of_row {
  template <int Width>
  constexpr nothing_of_entry in_row(local_index, local_index) const {
    return {};
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
template <class T>
struct dots_of_values : summing_heads<double, T>, nothing_of_row {
  template <int Width>
  struct term {
    pack_of<T, Width> u, v;
  };

  const T* u;
  const T* v;
  local_index heads;

  template <int Width>
  constexpr term<Width> term_of(local_index e, local_index h) const {
    return {load<Width>(u + edge_at(e, heads, h)), load<Width>(v + edge_at(e, heads, h))};
  }
  template <int Width>
  constexpr void add(double (&totals)[Width], const term<Width>& next, nothing_of_entry, local_index) const {
    for (int c = 0; c < Width; ++c) totals[c] += double{next.u.at[c]} * next.v.at[c];
  }
};

/// Softmax values of scores with their gradients: what folds over these have in common.
template <class T>
struct softmax_terms {
  template <int Width>
  struct row_terms {
    pack_of<T, Width> target, log_sum;
  };
  template <int Width>
  struct term {
    local_index entry;
    pack_of<T, Width> source, gradient;
  };

  attention<T> scores;
  matrix_view<const T> log_sum;
  T* edges;  ///< the gradients of the softmax values

  template <int Width>
  __device__ row_terms<Width> in_row(local_index row, local_index h) const {
    return {scores.template target<Width>(row, h), load<Width>(&log_sum(row, h))};
  }
  template <int Width>
  __device__ term<Width> term_of(local_index e, local_index h) const {
    return {e, scores.template source<Width>(e, h), load<Width>(edges + edge_at(e, scores.heads, h))};
  }
  /// That of head h + c.
  template <int Width>
  __device__ T value(const term<Width>& of_entry, const row_terms<Width>& of_row, int c) const {
    return exponential(scores.leaky(of_entry.source.at[c] + of_row.target.at[c]) - of_row.log_sum.at[c]);
  }
};

/// Leaves gradients as they are.
struct unchanged {};

/// out(i, h) = sum_e alpha(e, h) edges[e, h] with the softmax values alpha, accumulated in double, and
/// edges[e, h] = first(i, column, h, edges[e, h]) before.
template <class T, class First = unchanged>
struct softmax_row_dots : summing_heads<double, T>, softmax_terms<T> {
  template <int Width>
  using term = typename softmax_terms<T>::template term<Width>;
  template <int Width>
  struct row_terms : softmax_terms<T>::template row_terms<Width> {
    local_index row;
  };

  First first;

  template <int Width>
  __device__ row_terms<Width> in_row(local_index row, local_index h) const {
    return {softmax_terms<T>::template in_row<Width>(row, h), row};
  }
  template <int Width>
  __device__ void add(double (&totals)[Width], const term<Width>& next, const row_terms<Width>& of_row,
                      local_index h) const {
    pack_of<T, Width> gradient = next.gradient;
    if constexpr (!std::is_same_v<First, unchanged>) {
      const local_index column = this->scores.columns[next.entry];
      for (int c = 0; c < Width; ++c) gradient.at[c] = first(of_row.row, column, h + c, gradient.at[c]);
      on_cuda::store(gradient, this->edges + edge_at(next.entry, this->scores.heads, h));
    }
    for (int c = 0; c < Width; ++c)
      totals[c] += double{this->template value<Width>(next, of_row, c)} * gradient.at[c];
  }
};

/// out(i, h) = beta out(i, h) + sum_e g(e, h) over the entries of row i. In place: edges[e, h] holds the
/// gradient of the softmax values on entry and g(e, h), that of the score arguments, on return.
template <class T>
struct target_gradient : summing_heads<T, T>, softmax_terms<T> {
  template <int Width>
  using term = typename softmax_terms<T>::template term<Width>;
  template <int Width>
  struct row_terms : softmax_terms<T>::template row_terms<Width> {
    pack_of<T, Width> dot;
  };

  matrix_view<const T> row_dot;

  template <int Width>
  __device__ row_terms<Width> in_row(local_index row, local_index h) const {
    return {softmax_terms<T>::template in_row<Width>(row, h), load<Width>(&row_dot(row, h))};
  }
  template <int Width>
  __device__ void add(T (&totals)[Width], const term<Width>& next, const row_terms<Width>& of_row,
                      local_index h) const {
    pack_of<T, Width> g;
    for (int c = 0; c < Width; ++c) {
      const T slope = next.source.at[c] + of_row.target.at[c] > 0 ? T{1} : this->scores.slope;
      g.at[c] =
          this->template value<Width>(next, of_row, c) * (next.gradient.at[c] - of_row.dot.at[c]) * slope;
      totals[c] += g.at[c];
    }
    on_cuda::store(g, this->edges + edge_at(next.entry, this->scores.heads, h));
  }
};

/// out(c, h) = beta out(c, h) + sum_e g[e, h] over the entries of column c; a fold over the transposed
/// pattern, whose t-th entry is entry numbers[t].
template <class T>
struct source_gradient : summing_heads<T, T>, nothing_of_row {
  template <int Width>
  using term = pack_of<T, Width>;

  const T* g;
  const local_index* numbers;
  local_index heads;

  template <int Width>
  constexpr term<Width> term_of(local_index t, local_index h) const {
    return load<Width>(g + edge_at(numbers[t], heads, h));
  }
  template <int Width>
  constexpr void add(T (&totals)[Width], const pack_of<T, Width>& next, nothing_of_entry, local_index) const {
    for (int c = 0; c < Width; ++c) totals[c] += next.at[c];
  }
};

/// Calls f(row, e, h) for every entry and head.
template <class F>
struct each_head {
  struct sum {};
  template <int Width>
  using term = local_index;

  F f;

  constexpr sum zero() const { return {}; }
  template <int Width>
  constexpr local_index in_row(local_index row, local_index) const {
    return row;
  }
  template <int Width>
  constexpr local_index term_of(local_index e, local_index) const {
    return e;
  }
  template <int Width>
  __device__ void add(sum (&)[Width], local_index e, local_index row, local_index h) const {
    f.template operator()<Width>(row, e, h);
  }
};

}  // namespace partita::on_cuda
