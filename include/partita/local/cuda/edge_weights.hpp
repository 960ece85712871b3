// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Weights of entries and heads for warp_product.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/base/random.hpp"
#include "partita/local/cuda/entries.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// i times n, for an address: one instruction with the sum, of which compilers make four when they take the
/// conversion of n out of a loop.
inline __device__ std::int64_t times(local_index i, std::int32_t n) {
  std::int64_t product;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(product) : "r"(i), "r"(n));
  return product;
}

/// x, computed once: compilers otherwise compute cheap numbers in a loop from what they were made of.
template <class T>
__device__ T computed(T x) {
  if constexpr (sizeof(T) == sizeof(std::int64_t))
    asm volatile("" : "+l"(x));
  else
    asm volatile("" : "+r"(x));
  return x;
}

/// Row i of a table, from an address in row 0.
template <class T>
__device__ const T* at_row(const T* in_row_0, local_index i, std::int32_t stride) {
  return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(in_row_0) + times(i, stride));
}

/// exp(x), in absolute terms as good as x is.
inline __device__ double exponential(double x) { return std::exp(x); }
inline __device__ float exponential(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x * 1.4426950408889634F));
  return power;
}

/// What a row or an entry has of its own, if there is nothing.
struct nothing_of_entry {};

/// Weights of any function f(row, e, h).
template <class F>
struct function_weights {
  static constexpr bool in_many_registers = true, bent = false, transposed = false;

  F f;

  constexpr local_index column(local_index, local_index of_x) const { return of_x; }
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
  static constexpr bool in_many_registers = false, bent = false, transposed = false;

  const T* values;
  const local_index* order;
  local_index heads;

  constexpr local_index column(local_index, local_index of_x) const { return of_x; }
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
  f.source, f.target, f.log_sum, f.slope, f.keep, f.drops, f.transposed, f.first_source, f.first_target,
      f.read_later;
};

/// Softmax coefficients of scores, exp(leaky(source(u, h) + target(v, h)) - log_sum(v, h)), after dropout.
/// Rows are targets v, which have their terms in registers, or sources u if transposed.
template <class T, bool Transposed>
struct score_weights {
  static constexpr bool in_many_registers = false, bent = false, transposed = Transposed;

  struct in_row_type {
    const T* of_columns;  ///< the head's, in row 0
    T score, log_sum;
    std::uint64_t word;      ///< for dropout, of the row if it is a target
    std::uint64_t position;  ///< for dropout, of the row if it is a source, or else of source 0
  };
  using of_entry_type = std::conditional_t<Transposed, std::uint64_t, nothing_of_entry>;

  row_table<T> of_rows, of_columns, log_sums;
  T slope;
  base::dropped<T> keep;
  std::uint64_t limit;  ///< random words below it drop
  bool drops;
  global_index first_source, first_target;
  local_index first_head, heads;
  const local_index* columns;  ///< of the scores, if x has those that it needs under other numbers; or null

  /// Of coefficients that are not averaged, and whose vertices have their own numbers.
  template <class F>
  score_weights(const F& f, const local_index* of_x)
      : of_rows(table_of(f.transposed ? f.source : f.target)),
        of_columns(table_of(f.transposed ? f.target : f.source)),
        log_sums(table_of(f.log_sum)),
        slope(f.slope),
        keep(f.keep),
        limit(f.keep.threshold << 11),
        drops(f.drops),
        first_source(f.first_source),
        first_target(f.first_target),
        first_head(f.first_head),
        heads(f.heads),
        columns(f.columns == of_x ? nullptr : f.columns) {}

  __device__ local_index column(local_index e, local_index of_x) const {
    return columns == nullptr ? of_x : columns[e];
  }

  __device__ in_row_type in_row(local_index row, local_index h) const {
    const auto position = static_cast<std::uint64_t>(first_source * heads + first_head + h);
    const T* const scores = computed(of_columns.data + h);
    const T score = *of_rows.at(row, h);
    if constexpr (Transposed)
      return {scores, score, T{0}, 0, position + times(row, heads)};
    else
      return {scores, score, *log_sums.at(row, h), word_of(row), computed(position)};
  }
  __device__ of_entry_type of_entry(local_index, local_index column) const {
    if constexpr (Transposed)
      return drops ? word_of(column) : 0;
    else
      return {};
  }
  __device__ T at(const in_row_type& of_row, const of_entry_type& of_entry, local_index, local_index,
                  local_index column, local_index h) const {
    const T score = of_row.score + __ldg(at_row(of_row.of_columns, column, of_columns.stride));
    T log_sum = of_row.log_sum;
    if constexpr (Transposed) log_sum = *at_row(log_sums.data + h, column, log_sums.stride);
    const T alpha = exponential((score > T(0) ? score : slope * score) - log_sum);
    return after_dropout(of_row, of_entry, alpha, [&] { return times(column, heads); });
  }

 protected:
  /// `of_column()`: what the position of the entry's source adds to that of the row, if rows are targets.
  template <class F>
  __device__ T after_dropout(const in_row_type& of_row, const of_entry_type& of_entry, T alpha,
                             const F& of_column) const {
    if (!drops) return alpha;
    std::uint64_t random;
    if constexpr (Transposed)
      random = base::mixed_bits(of_entry ^ of_row.position);
    else
      random = base::mixed_bits(of_row.word ^ (of_row.position + of_column()));
    return random < limit ? T(0) : alpha * keep.scale;
  }

 private:
  __device__ std::uint64_t word_of(local_index target) const { return keep.row(first_target + target).word; }
};

/// What targets have for gradients, four numbers for each head: score, log_sum and row dot.
inline constexpr int numbers_of_target = 4;

/// The coefficients of score_weights, these times leaky' of their scores, and a term of a sum over the row:
/// the coefficient before dropout times leaky', and times the row dot of the target if rows are sources.
/// Vertices may have other numbers for dropout.
template <class T, bool Transposed>
struct bent_weights : score_weights<T, Transposed> {
  using scores = score_weights<T, Transposed>;
  using typename scores::in_row_type;
  using typename scores::of_entry_type;
  static constexpr bool in_many_registers = true, bent = true;

  struct weight {
    T plain, bent, term;
  };

  const T* of_targets;  ///< the numbers of all targets, if rows are sources
  std::int32_t stride;  ///< between those of two, in bytes

  template <class F>
  bent_weights(const F& f, const local_index* of_x, const T* numbers)
      : scores(f, of_x),
        of_targets(numbers),
        stride(numbers_of_target * f.source.cols * static_cast<std::int32_t>(sizeof(T))) {}

  __device__ in_row_type in_row(local_index row, local_index h) const {
    in_row_type mine = scores::in_row(row, h);
    if constexpr (Transposed) {
      mine.of_columns = computed(of_targets + numbers_of_target * h);
      mine.position += moved(row);
    }
    return mine;
  }
  __device__ weight at(const in_row_type& of_row, const of_entry_type& of_entry, local_index, local_index,
                       local_index column, local_index h) const {
    T of_column, log_sum = of_row.log_sum, dot = T(1);
    if constexpr (Transposed) {
      const auto numbers = numbers_of(at_row(of_row.of_columns, column, stride));
      of_column = numbers.at[0], log_sum = numbers.at[1], dot = numbers.at[2];
    } else {
      of_column = __ldg(at_row(of_row.of_columns, column, this->of_columns.stride));
    }
    const T score = of_row.score + of_column, leaky = score > T(0) ? T(1) : this->slope;
    const T alpha = exponential(leaky * score - log_sum);
    const T kept = this->after_dropout(of_row, of_entry, alpha,
                                       [&] { return times(column, this->heads) + moved(column); });
    return {kept, kept * leaky, alpha * leaky * dot};
  }

 private:
  struct numbers {
    T at[numbers_of_target];
  };
  /// By loads of 16 bytes.
  static __device__ numbers numbers_of(const T* from) {
    constexpr int width = widest<T>;
    numbers all;
    for (int k = 0; k < numbers_of_target; k += width) {
      const auto some = load<width>(from + k);
      for (int c = 0; c < width; ++c) all.at[k + c] = some.at[c];
    }
    return all;
  }
  /// How far names of sources move their positions.
  __device__ std::int64_t moved(local_index source) const {
    if (this->keep.vertices == nullptr) return 0;
    const global_index number = this->first_source + source;
    return (this->keep.vertices[number] - number) * this->heads;
  }
};

}  // namespace partita::on_cuda
