// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Losses and scores of predicted values, for regression. Rows that are not counted have targets that are not
/// numbers.

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "partita/algebra/reductions.hpp"

namespace partita::algebra {

/// d^2. An error is a function of d = z - t with its derivative, and may be user-defined.
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

/// d^2 / 2 if |d| <= delta, else delta (|d| - delta / 2). Source: Huber (Ann. Math. Statist. 35,
/// 1964).
struct huber_error {
  double delta;

  /// Throws error unless delta is positive.
  constexpr explicit huber_error(double from = 1) : delta(from) {
    if (!(delta > 0))
      base::throw_error<error>(
          {"Huber's error is quadratic up to a positive number, not ", std::to_string(delta)});
  }

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

/// 1, or 0 where t is not a number.
struct counted_target {
  template <class T>
  constexpr T operator()(T t) const {
    return t != t ? T(0) : T(1);
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

/// loss = the mean of error(z - t) over all targets that are numbers; gradient = d loss / d z (n x columns),
/// 0 elsewhere.
///
/// Collective over the mesh. What travels: an all-reduce of one element. `counted`: the number of targets
/// that are numbers, over all ranks. Throws shape_error, and error if there are none.
template <class Error, class T, class Device>
double value_loss(const dense<T, vertex_rows, Device>& z, const dense<T, vertex_rows, Device>& targets,
                  dense<T, vertex_rows, Device>& gradient, const Error& of, double counted) {
  detail::require_same_blocks("value_loss of values and targets", z, targets);
  detail::require_same_blocks("value_loss of values and their gradient", z, gradient);
  if (counted < 1)
    base::throw_error<error>(
        {"a loss averages over targets that are numbers, but those of ", z.shape(), " have none"});
  zip(z, targets, gradient, detail::error_term<Error>{of});
  const double loss = static_cast<double>(sum(gradient)) / counted;
  zip(z, targets, gradient, detail::error_slope<Error, T>{of, static_cast<T>(1 / counted)});
  return loss;
}

/// The same for an unknown number of targets. What travels: one more all-reduce of one element.
template <class Error, class T, class Device>
double value_loss(const dense<T, vertex_rows, Device>& z, const dense<T, vertex_rows, Device>& targets,
                  dense<T, vertex_rows, Device>& gradient, const Error& of) {
  detail::require_same_blocks("value_loss of values and targets", z, targets);
  detail::require_same_blocks("value_loss of values and their gradient", z, gradient);
  transform(targets, gradient, detail::counted_target{});
  return value_loss(z, targets, gradient, of, static_cast<double>(sum(gradient)));
}

/// sum_v (z - t)^2 of each column, over the targets that are numbers; on every rank.
///
/// Collective over the mesh. What travels: an all-reduce of one element for each column. Throws shape_error.
template <class T, class Device>
std::vector<double> squared_errors(const dense<T, vertex_rows, Device>& z,
                                   const dense<T, vertex_rows, Device>& targets) {
  detail::require_same_blocks("squared_errors of values and targets", z, targets);
  dense<T, vertex_rows, Device> work(z.mesh(), z.row_blocking(), z.col_blocking());  // (n, columns)
  dense<T, replicated, Device> sums(z.mesh(), {1, z.shape().cols});                  // (1, columns)
  zip(z, targets, work, detail::error_term<squared_error>{});
  column_sums(work, sums);
  std::vector<T> found(sums.values().size());
  copy(z.mesh().queue(), std::span<const T>(sums.values()), std::span<T>(found));
  return {found.begin(), found.end()};
}

/// How far predicted values are from their targets.
struct value_scores {
  double root_mean_square = 0;  ///< over all targets that are numbers
  double mean_absolute = 0;     ///< likewise
  double r_squared = 0;         ///< the mean over the columns with such targets
};

/// The scores of z (n x columns) against the targets that are numbers; not numbers if there are none. R^2 of
/// a column is 1 - sum (z - t)^2 / sum (t - mean)^2 and, if its targets are equal but for rounding, 1 if z
/// is t and 0 if not.
///
/// Collective over the mesh. What travels: an all-reduce of one element and four of one per column. Throws
/// shape_error.
template <class T, class Device>
value_scores score_values(const dense<T, vertex_rows, Device>& z,
                          const dense<T, vertex_rows, Device>& targets) {
  detail::require_same_blocks("score_values of values and targets", z, targets);
  constexpr double none = std::numeric_limits<double>::quiet_NaN(),
                   rounding = 64 * std::numeric_limits<T>::epsilon();
  const global_index columns = z.shape().cols;
  dense<T, vertex_rows, Device> work(z.mesh(), z.row_blocking(), z.col_blocking());  // (n, columns)
  dense<T, replicated, Device> sums(z.mesh(), {1, columns});                         // (1, columns)
  std::vector<T> found(sums.values().size());
  const auto sums_of_work = [&] {
    column_sums(work, sums);
    copy(z.mesh().queue(), std::span<const T>(sums.values()), std::span<T>(found));
    return std::vector<double>(found.begin(), found.end());
  };
  zip(z, targets, work, detail::error_term<absolute_error>{});
  const double all_errors = static_cast<double>(sum(work));
  zip(z, targets, work, detail::error_term<squared_error>{});
  const std::vector<double> squares = sums_of_work();
  transform(targets, work, detail::counted_target{});
  const std::vector<double> counts = sums_of_work();
  transform(targets, work, detail::counted_value{});
  std::vector<double> means = sums_of_work();
  for (std::size_t j = 0; j < means.size(); ++j)
    found[j] = static_cast<T>(means[j] /= std::max(counts[j], 1.0));
  copy(z.mesh().queue(), std::span<const T>(found), sums.values());
  transform_columns(targets, sums, work, detail::squared_deviation{});
  const std::vector<double> deviations = sums_of_work();
  double counted = 0, all_squares = 0, r_squared = 0;
  int there = 0;
  for (std::size_t j = 0; j < counts.size(); ++j) {
    if (counts[j] == 0) continue;
    counted += counts[j], all_squares += squares[j], ++there;
    const bool are_equal = deviations[j] <= counts[j] * std::pow(rounding * means[j], 2);
    r_squared += are_equal ? static_cast<double>(squares[j] == 0) : 1 - squares[j] / deviations[j];
  }
  if (there == 0) return {none, none, none};
  return {std::sqrt(all_squares / counted), all_errors / counted, r_squared / there};
}

}  // namespace partita::algebra
