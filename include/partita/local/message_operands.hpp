// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What messages along the entries of a pattern are made of, m(e, j) = f(x(col(e), j), t(row(e), j), value of
/// e, p(., j)), on any device. f is called with numbers or dual numbers: with all of these, without t if it
/// takes no more, and with p, an array, if it says how many parameters it has.

#include <array>
#include <cstddef>
#include <type_traits>

#include "partita/local/head_slice.hpp"
#include "partita/local/view.hpp"

namespace partita::local {

/// F with K parameters for each column.
template <int K, class F>
struct parametrised : F {
  static constexpr int parameters = K;
  constexpr explicit parametrised(F f) : F(std::move(f)) {}
  using F::operator();
};

/// How many parameters f takes for each column.
template <class F>
constexpr std::size_t parameter_count() {
  if constexpr (requires { F::parameters; })
    return static_cast<std::size_t>(F::parameters);
  else
    return 0;
}

namespace detail {

template <class F, class X, std::size_t K = parameter_count<F>()>
struct message_arguments {
  using array = std::array<X, K>;
  static constexpr bool targets = std::is_invocable_v<const F&, X, X, X, array>;
};
template <class F, class X>
struct message_arguments<F, X, 0> {
  using array = std::array<X, 0>;
  static constexpr bool targets = std::is_invocable_v<const F&, X, X, X>;
};

}  // namespace detail

/// Whether f reads the rows of the targets, and what it takes for its parameters.
template <class F, class X>
inline constexpr bool reads_targets = detail::message_arguments<F, X>::targets;
template <class F, class X>
using parameters_of = typename detail::message_arguments<F, X>::array;

/// f of one column of one entry.
template <class F, class X>
constexpr X message_of(const F& f, const X& source, [[maybe_unused]] const X& target, const X& edge,
                       [[maybe_unused]] const parameters_of<F, X>& p) {
  if constexpr (parameter_count<F>() > 0) {
    if constexpr (reads_targets<F, X>)
      return f(source, target, edge, p);
    else
      return f(source, edge, p);
  } else {
    if constexpr (reads_targets<F, X>)
      return f(source, target, edge);
    else
      return f(source, edge);
  }
}

/// Values of entries, rows of the pattern's columns and of its rows, and a row for each parameter. What is
/// not there has no heads, or no columns; values that are not there are 1.
template <class T>
struct message_operands {
  head_slice slice{0, 1, 0};
  const T* values = nullptr;
  matrix_view<const T> sources{}, targets{}, parameters{};

  /// The same of some of the entries and rows.
  constexpr message_operands at(const T* of_entries, matrix_view<const T> of_columns,
                                matrix_view<const T> of_rows) const {
    return {slice, of_entries, of_columns, of_rows, parameters};
  }
  /// The place of the value of column j among those of an entry.
  constexpr local_index value_of(local_index j) const { return slice.head_of(j); }
};

/// The gradients of messages: those of sums over rows, times the rows' weights, unless these have no columns;
/// those of the entries that won in their row, which `winners` names; or, where `scores` are, those of sums
/// over the columns of a head. The name of entry e is names[e] + first_name.
template <class T>
struct message_gradient {
  matrix_view<const T> rows{}, weights{};
  matrix_view<const local_index> winners{};
  const local_index* names = nullptr;
  local_index first_name = 0;
  const T* scores = nullptr;
  head_slice of_scores{0, 1, 0};

  constexpr message_gradient at(matrix_view<const T> of_rows, matrix_view<const T> weights_of_rows,
                                matrix_view<const local_index> winners_of_rows, const T* of_entries,
                                local_index first_entry) const {
    return {of_rows,    weights_of_rows, winners_of_rows, names == nullptr ? names : names + first_entry,
            first_name, of_entries,      of_scores};
  }
  /// Of column j of entry e, in row i.
  constexpr T operator()(local_index i, local_index e, local_index j) const {
    if (of_scores.heads > 0) return scores[std::ptrdiff_t{e} * of_scores.heads + of_scores.head_of(j)];
    if (winners.cols > 0) return winners(i, j) == names[e] + first_name ? rows(i, j) : T(0);
    return weights.cols > 0 ? weights(i, 0) * rows(i, j) : rows(i, j);
  }
};

/// Whether a message wins against the best one of its row so far, of an entry with a smaller name unless
/// `name` says otherwise: the largest does, the first of equals, and NaN against any number; `best_name` < 0:
/// there is none so far.
template <class T>
constexpr bool beats(T message, local_index name, T best, local_index best_name) {
  const bool same = message == best || (message != message && best != best);
  const bool larger = message > best || (message != message && best == best);
  return best_name < 0 || larger || (same && name < best_name);
}

}  // namespace partita::local
