#pragma once
/// What becomes of the entries of a row in kernels of edges: folds for fold_rows, whose packs of columns are
/// the heads.

#include <cmath>
#include <cstdint>
#include <limits>

#include "partita/local/cuda/row_fold.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// The scores of edges: leaky(source(col(e), h) + target(row(e), h)).
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

/// largest + log(total), the total of exp(score - largest) over scores that come one after another.
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
  constexpr void join(const log_total& later) {
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

/// log_sum(i, h) = log sum_e exp(score(e, h)), in one pass over the scores.
template <class T>
struct log_sums_of_scores : column_lead {
  static constexpr int blocks_together = sizeof(T) == sizeof(float) ? 4 : 3;

  using sum = log_total<T>;
  using item = T;

  attention<T> scores;
  matrix_view<T> log_sum;

  constexpr sum zero() const { return {}; }
  constexpr item get(local_index e, local_index h) const { return scores.source(columns[e], h); }
  constexpr void get(const lead& four, local_index, local_index h, item (&items)[4]) const {
    for (int k = 0; k < 4; ++k) items[k] = scores.source(four.at[k], h);
  }
  constexpr void add(sum& total, item source, local_index row, local_index h) const {
    total.add(scores.leaky(source + scores.target(row, h)));
  }
  constexpr void join(sum& total, const sum& later) const { total.join(later); }
  constexpr void store(const sum& total, local_index row, local_index h) const {
    log_sum(row, h) = total.total == 0 ? T{0} : static_cast<T>(total.largest + std::log(total.total));
  }
};

/// f of the values of a row and head, and of what out has.
template <class F, class T>
struct fold_of_values : no_lead {
  struct sum {
    T value;
    bool some;
  };
  using item = T;

  F f;
  const T* values;
  local_index heads;
  matrix_view<T> out;

  constexpr sum zero() const { return {}; }
  constexpr item get(local_index e, local_index h) const { return values[edge_at(e, heads, h)]; }
  constexpr void get(const lead&, local_index e, local_index h, item (&items)[4]) const {
    for (int k = 0; k < 4; ++k) items[k] = get(e + k, h);
  }
  constexpr void add(sum& total, item next, local_index, local_index) const { join(total, {next, true}); }
  constexpr void join(sum& total, const sum& later) const {
    if (later.some) total = {total.some ? f(total.value, later.value) : later.value, true};
  }
  constexpr void store(const sum& total, local_index row, local_index h) const {
    if (total.some) out(row, h) = f(out(row, h), total.value);
  }
};

/// out(row, h) = sum_e u[e, h] v[e, h], in double.
template <class T, class To>
struct dots_of_values : no_lead {
  using sum = double;
  using item = double;

  const T* u;
  const T* v;
  local_index heads;
  matrix_view<To> out;

  constexpr sum zero() const { return 0; }
  constexpr item get(local_index e, local_index h) const {
    return double{u[edge_at(e, heads, h)]} * v[edge_at(e, heads, h)];
  }
  constexpr void get(lead, local_index e, local_index h, item (&items)[4]) const {
    for (int k = 0; k < 4; ++k) items[k] = get(e + k, h);
  }
  constexpr void add(sum& total, item product, local_index, local_index) const { total += product; }
  constexpr void join(sum& total, sum later) const { total += later; }
  constexpr void store(sum total, local_index row, local_index h) const {
    out(row, h) = static_cast<To>(total);
  }
};

/// What the gradient of a softmax over rows is made of.
template <class T>
struct softmax_gradient {
  attention<T> scores;
  matrix_view<const T> log_sum;
  const T* dvalues;
  matrix_view<const T> row_dot;
  T beta;

  /// g of entry e and head h, where z is the sum of its source and target.
  constexpr T at(T z, T row_log_sum, T dvalue, T dot) const {
    const T alpha = std::exp(scores.leaky(z) - row_log_sum);
    return alpha * (dvalue - dot) * (z > 0 ? T{1} : scores.slope);
  }
  constexpr void store(T total, T& to) const { to = beta == 0 ? total : total + beta * to; }
};

/// dtarget(i, h) = beta dtarget(i, h) + sum_e g(e, h) over the entries of row i.
template <class T>
struct target_gradient : column_lead {
  static constexpr int blocks_together = sizeof(T) == sizeof(float) ? 4 : 2;

  using sum = T;
  struct item {
    T source, dvalue;
  };

  softmax_gradient<T> g;
  matrix_view<T> dtarget;

  constexpr sum zero() const { return 0; }
  constexpr item get(local_index e, local_index h) const { return of(columns[e], e, h); }
  constexpr void get(const lead& four, local_index e, local_index h, item (&items)[4]) const {
    for (int k = 0; k < 4; ++k) items[k] = of(four.at[k], e + k, h);
  }
  constexpr void add(sum& total, const item& next, local_index row, local_index h) const {
    total += g.at(next.source + g.scores.target(row, h), g.log_sum(row, h), next.dvalue, g.row_dot(row, h));
  }
  constexpr void join(sum& total, sum later) const { total += later; }
  constexpr void store(sum total, local_index row, local_index h) const { g.store(total, dtarget(row, h)); }

 private:
  constexpr item of(local_index column, local_index e, local_index h) const {
    return {g.scores.source(column, h), g.dvalues[edge_at(e, g.scores.heads, h)]};
  }
};

/// dsource(c, h) = beta dsource(c, h) + sum_e g(e, h) over the entries of column c: a fold over the columns,
/// whose t-th entry in the order of columns is entry order[t] and in row rows[t].
template <class T>
struct source_gradient : no_lead {
  static constexpr int blocks_together = sizeof(T) == sizeof(float) ? 4 : 2;

  using sum = T;
  struct item {
    T target, log_sum, dvalue, row_dot;
  };

  softmax_gradient<T> g;
  const local_index* rows;
  const local_index* order;
  matrix_view<T> dsource;

  constexpr sum zero() const { return 0; }
  constexpr item get(local_index t, local_index h) const {
    const local_index row = rows[t];
    return {g.scores.target(row, h), g.log_sum(row, h), g.dvalues[edge_at(order[t], g.scores.heads, h)],
            g.row_dot(row, h)};
  }
  constexpr void get(lead, local_index t, local_index h, item (&items)[4]) const {
    for (int k = 0; k < 4; ++k) items[k] = get(t + k, h);
  }
  constexpr void add(sum& total, const item& next, local_index column, local_index h) const {
    total += g.at(g.scores.source(column, h) + next.target, next.log_sum, next.dvalue, next.row_dot);
  }
  constexpr void join(sum& total, sum later) const { total += later; }
  constexpr void store(sum total, local_index column, local_index h) const {
    g.store(total, dsource(column, h));
  }
};

}  // namespace partita::on_cuda
