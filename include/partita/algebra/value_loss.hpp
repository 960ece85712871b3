// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Losses and scores of predicted values, for regression. Rows that are not counted have targets that are not
/// numbers.

#include <cmath>
#include <limits>
#include <vector>

#include "partita/algebra/reductions.hpp"

namespace partita::algebra {

/// d^2. An error is a function of d = z - t with its derivative; one of your own serves as well.
struct squared_error {
  template <class T>
  constexpr T operator()(T d) const {
    return d * d;
  }
  template <class T>
  constexpr T slope(T d) const {
    return 2 * d;
  }
};

/// |d|, with the derivative 0 at 0.
struct absolute_error {
  template <class T>
  constexpr T operator()(T d) const {
    return d < T(0) ? -d : d;
  }
  template <class T>
  constexpr T slope(T d) const {
    return static_cast<T>((d > T(0)) - (d < T(0)));
  }
};

/// d^2 / 2 where |d| <= delta, delta (|d| - delta / 2) elsewhere. Source: Huber (Ann. Math. Statist. 35,
/// 1964).
struct huber_error {
  double delta = 1;

  template <class T>
  constexpr T operator()(T d) const {
    const T most = static_cast<T>(delta), size = d < T(0) ? -d : d;
    return size <= most ? d * d / 2 : most * (size - most / 2);
  }
  template <class T>
  constexpr T slope(T d) const {
    const T most = static_cast<T>(delta);
    return d < -most ? -most : d > most ? most : d;
  }
};

namespace detail {

/// error(z - t), or 0 where t is not a number.
template <class Error>
struct error_term {
  Error error;
  template <class T>
  constexpr T operator()(T z, T t) const {
    return t != t ? T(0) : error(z - t);
  }
};

/// scale d error / d z, or 0 where t is not a number.
template <class Error, class T>
struct error_slope {
  Error error;
  T scale;
  constexpr T operator()(T z, T t) const { return t != t ? T(0) : scale * error.slope(z - t); }
};

/// t, or 0 where t is not a number.
struct counted_value {
  template <class T>
  constexpr T operator()(T t) const {
    return t != t ? T(0) : t;
  }
};

/// (t - mean)^2, or 0 where t is not a number.
struct squared_deviation {
  template <class T>
  constexpr T operator()(T t, T mean) const {
    return t != t ? T(0) : (t - mean) * (t - mean);
  }
};

}  // namespace detail

/// loss = mean over counted vertices and all columns of error(z - t); gradient = d loss / d z (n x columns).
///
/// Collective over the mesh. What travels: an all-reduce of one element. Throws shape_error, and error when
/// no vertex is counted.
template <class Error, class T, class Device>
double value_loss(const dense<T, vertex_rows, Device>& z, const dense<T, vertex_rows, Device>& targets,
                  global_index counted, dense<T, vertex_rows, Device>& gradient, const Error& of = {}) {
  if (counted < 1)
    base::throw_error<error>(
        {"a loss averages over counted vertices, but values of ", z.shape(), " have none"});
  const double terms = static_cast<double>(counted) * static_cast<double>(z.shape().cols);
  zip(z, targets, gradient, detail::error_term<Error>{of});
  const double loss = static_cast<double>(sum(gradient)) / terms;
  zip(z, targets, gradient, detail::error_slope<Error, T>{of, static_cast<T>(1 / terms)});
  return loss;
}

/// How far predicted values are from their targets.
struct value_scores {
  double root_mean_square = 0;  ///< over counted vertices and columns
  double mean_absolute = 0;     ///< likewise
  double r_squared = 0;         ///< the mean over the columns
};

/// The scores of z (n x columns) beside the targets of counted vertices; not numbers where none is counted.
/// R^2 of a column is 1 - sum (z - t)^2 / sum (t - mean)^2, and for equal targets 1 if z is t and 0 if not.
///
/// Collective over the mesh. What travels: an all-reduce of one element and three of one per column. Throws
/// shape_error.
template <class T, class Device>
value_scores score_values(const dense<T, vertex_rows, Device>& z,
                          const dense<T, vertex_rows, Device>& targets, global_index counted) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const global_index columns = z.shape().cols;
  if (counted < 1 || columns < 1) return {none, none, none};
  dense<T, vertex_rows, Device> work(z.mesh(), z.row_blocking(), z.col_blocking());  // (n, columns)
  dense<T, replicated, Device> sums(z.mesh(), {1, columns});                         // (1, columns)
  const auto column_sums_of_work = [&] {
    column_sums(work, sums);
    std::vector<T> found(sums.values().size());
    copy(z.mesh().queue(), std::span<const T>(sums.values()), std::span<T>(found));
    return found;
  };
  zip(z, targets, work, detail::error_term<absolute_error>{});
  const double all_errors = static_cast<double>(sum(work));
  zip(z, targets, work, detail::error_term<squared_error>{});
  const std::vector<T> squares = column_sums_of_work();
  transform(targets, work, detail::counted_value{});
  column_sums_of_work();
  transform(sums, sums, base::scaled<T>{T(1) / static_cast<T>(counted)});
  transform_columns(targets, sums, work, detail::squared_deviation{});
  const std::vector<T> deviations = column_sums_of_work();
  double all_squares = 0, r_squared = 0;
  for (std::size_t j = 0; j < squares.size(); ++j) {
    all_squares += static_cast<double>(squares[j]);
    r_squared += deviations[j] == T(0)
                     ? static_cast<double>(squares[j] == T(0))
                     : 1 - static_cast<double>(squares[j]) / static_cast<double>(deviations[j]);
  }
  const double terms = static_cast<double>(counted) * static_cast<double>(columns);
  return {std::sqrt(all_squares / terms), all_errors / terms, r_squared / static_cast<double>(columns)};
}

}  // namespace partita::algebra
