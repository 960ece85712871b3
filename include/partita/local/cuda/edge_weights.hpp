// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Weights of entries and heads for warp_product.

#include <cmath>
#include <cstdint>

#include "partita/base/random.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// What a row or an entry has of its own, if there is nothing.
struct nothing_of_entry {};

/// Weights of any function f(row, e, h).
template <class F>
struct function_weights {
  F f;

  constexpr nothing_of_entry in_row(local_index, local_index) const { return {}; }
  constexpr nothing_of_entry of_entry(local_index, local_index) const { return {}; }
  constexpr auto at(nothing_of_entry, nothing_of_entry, local_index row, local_index e, local_index,
                    local_index h) const {
    return f(row, e, h);
  }
};

/// Stored weights: those of entry e start at values + heads * e, or heads * order[e] if `order` is not null.
template <class T>
struct stored_weights {
  const T* values;
  const local_index* order;
  local_index heads;

  constexpr nothing_of_entry in_row(local_index, local_index) const { return {}; }
  constexpr local_index of_entry(local_index e, local_index) const { return order == nullptr ? e : order[e]; }
  constexpr T at(nothing_of_entry, local_index number, local_index, local_index, local_index,
                 local_index h) const {
    return values[edge_at(number, heads, h)];
  }
};

/// A function that is the softmax coefficients of scores, as algebra/edge_scores.hpp has them.
template <class F>
concept coefficients_of_scores = requires(const F f) {
  f.source, f.target, f.log_sum, f.slope, f.keep, f.drops, f.transposed, f.first_source, f.first_target;
};

/// Softmax coefficients of scores, exp(leaky(source(u, h) + target(v, h)) - log_sum(v, h)), after dropout.
/// Rows are targets v, which have their terms in registers, or sources u if transposed.
template <class T, bool Transposed>
struct score_weights {
  struct in_row_type {
    T score, log_sum;
    std::uint64_t word;  ///< of dropout; of the row's coefficients, or the position of the first of them
  };
  using of_entry_type = std::conditional_t<Transposed, std::uint64_t, nothing_of_entry>;

  row_table<T> of_rows, of_columns, log_sums;
  T slope;
  base::dropped<T> keep;
  bool drops;
  global_index first_source, first_target;
  local_index first_head, heads;

  /// Of coefficients that are not averaged, and whose vertices have their own numbers.
  template <class F>
  explicit score_weights(const F& f)
      : of_rows(table_of(f.transposed ? f.source : f.target)),
        of_columns(table_of(f.transposed ? f.target : f.source)),
        log_sums(table_of(f.log_sum)),
        slope(f.slope),
        keep(f.keep),
        drops(f.drops),
        first_source(f.first_source),
        first_target(f.first_target),
        first_head(f.first_head),
        heads(f.heads) {}

  constexpr in_row_type in_row(local_index row, local_index h) const {
    if constexpr (Transposed)
      return {*of_rows.at(row, h), T{0}, static_cast<std::uint64_t>(position(row, h))};
    else
      return {*of_rows.at(row, h), *log_sums.at(row, h), word_of(row)};
  }
  constexpr of_entry_type of_entry(local_index, local_index column) const {
    if constexpr (Transposed)
      return drops ? word_of(column) : 0;
    else
      return {};
  }
  constexpr T at(const in_row_type& of_row, const of_entry_type& of_entry, local_index, local_index,
                 local_index column, local_index h) const {
    const T score = of_row.score + *of_columns.at(column, h), scaled = slope * score;
    T log_sum = of_row.log_sum;
    if constexpr (Transposed) log_sum = *log_sums.at(column, h);
    const T alpha = std::exp((score > T(0) ? score : scaled) - log_sum);
    if (!drops) return alpha;
    if constexpr (Transposed)
      return finished(of_entry, static_cast<global_index>(of_row.word), alpha);
    else
      return finished(of_row.word, position(column, h), alpha);
  }

 private:
  constexpr std::uint64_t word_of(local_index target) const { return keep.row(first_target + target).word; }
  constexpr global_index position(local_index source, local_index h) const {
    return (first_source + source) * heads + first_head + h;
  }
  constexpr T finished(std::uint64_t word, global_index position, T alpha) const {
    return typename base::dropped<T>::in_row{word, keep.threshold, keep.scale}(position, alpha);
  }
};

}  // namespace partita::on_cuda
