// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Scores of the entries of a sparse pattern and their exponentials, in vectors of heads.

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/exponential.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

/// exp(leaky(source[h] + target[h]) - log_sum[h]) of row, entry and head, or of row, column and head, where
/// terms(row, entry or column) has these three, leaky(z) = z for z > 0 and slope z otherwise; then finished,
/// if finishes(). If averages() is not 0, it is the mean over that many heads, whatever h is. Where there is
/// with_constants(g), it calls g with an equal function whose members are constants as far as may be.
template <class F, class T>
concept exponential_of_scores = requires(const F& f, T alpha) {
  { f.terms(0, 0).source } -> std::convertible_to<const T*>;
  { f.terms(0, 0).target } -> std::convertible_to<const T*>;
  { f.terms(0, 0).log_sum } -> std::convertible_to<const T*>;
  { f.leaky_slope() } -> std::same_as<T>;
  { f.averages() } -> std::same_as<local_index>;
  { f.finishes() } -> std::same_as<bool>;
  { f.finished(0, 0, 0, alpha) } -> std::same_as<T>;
};

namespace score_detail {

/// Numbers whose means are taken at a time.
inline constexpr local_index averaged_at_once = 2048;

/// Numbers of several heads: a vector of `Bytes`, or one number, since compilers keep vectors of one element
/// in memory.
template <class T, int Bytes, bool One = Bytes == static_cast<int>(sizeof(T))>
struct numbers_of_heads {
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
  using vector = typename vector_of<T, Bytes>::type;
  using place = typename vector_of<T, Bytes>::place;
  using doubles = typename vector_of<double, lanes * 8>::type;
  using place_of_doubles = typename vector_of<double, lanes * 8>::place;

  static void add(const T* x, doubles& sum) { sum += __builtin_convertvector(at(x).value, doubles); }
  static void add_product(const T* x, const T* y, doubles& sum) {
    sum += __builtin_convertvector(at(x).value, doubles) * __builtin_convertvector(at(y).value, doubles);
  }
  static const place& at(const T* x) { return *reinterpret_cast<const place*>(x); }
};
template <class T, int Bytes>
struct numbers_of_heads<T, Bytes, true> {
  static constexpr int lanes = 1;
  using vector = T;
  using doubles = double;
  struct [[gnu::packed, gnu::may_alias]] place {
    T value;
  };
  struct [[gnu::packed, gnu::may_alias]] place_of_doubles {
    double value;
  };

  static void add(const T* x, doubles& sum) { sum += double{*x}; }
  static void add_product(const T* x, const T* y, doubles& sum) { sum += double{*x} * double{*y}; }
  static const place& at(const T* x) { return *reinterpret_cast<const place*>(x); }
};

template <class T, int Bytes>
struct heads_at_once : numbers_of_heads<T, Bytes> {
  using numbers = numbers_of_heads<T, Bytes>;
  using typename numbers::doubles;
  using typename numbers::place;
  using typename numbers::place_of_doubles;

  static place& at(T* x) { return *reinterpret_cast<place*>(x); }
  static const place& at(const T* x) { return numbers::at(x); }
  static place_of_doubles& of_doubles(double* x) { return *reinterpret_cast<place_of_doubles*>(x); }
};

/// Calls f(integral_constant<int, Bytes>) with the longest vectors that no more than `heads` numbers fill,
/// or, if `divide`, of which a whole number has `heads` numbers.
template <instruction_set I, class T, int Bytes = register_bytes(I), class F>
inline void with_vectors(local_index heads, bool divide, const F& f) {
  constexpr local_index lanes = Bytes / static_cast<int>(sizeof(T));
  if constexpr (lanes > 1)
    if (heads < lanes || (divide && heads % lanes != 0))
      return with_vectors<I, T, Bytes / 2>(heads, divide, f);
  f(std::integral_constant<int, Bytes>());
}

/// Calls f(h) for vectors of `lanes` that cover `heads` numbers, at least as many; the last two may overlap.
template <class F>
inline void for_vectors(local_index lanes, local_index heads, const F& f) {
  for (local_index h = 0; h < heads; h += lanes) f(std::min(h, heads - lanes));
}

/// How many entries ahead of their use scores are prefetched.
inline constexpr local_index ahead = 24;

/// to[k, h] = leaky(source[h] + target[h]) - log_sum[h] for the entries e = first + k < last of row i.
template <class T, int Bytes, class Terms>
inline void exponents(const Terms& terms, T slope, local_index i, local_index first, local_index last,
                      local_index end, local_index heads, T* to) {
  using v = heads_at_once<T, Bytes>;
  for (local_index e = first; e < last; ++e, to += heads) {
    const auto later = terms(i, std::min(e + ahead, end - 1));
    __builtin_prefetch(later.source);
    __builtin_prefetch(later.target);
    __builtin_prefetch(later.log_sum);
    const auto now = terms(i, e);
    for_vectors(v::lanes, heads, [&](local_index h) {
      const typename v::vector z = v::at(now.source + h).value + v::at(now.target + h).value;
      v::at(to + h).value = (z > typename v::vector{} ? z : slope * z) - v::at(now.log_sum + h).value;
    });
  }
}

/// The same of one head, in vectors of entries: numbers are on the stack, where they alias nothing.
template <class T, class Terms>
inline void exponents_of_one_head(const Terms& terms, T slope, local_index i, local_index first,
                                  local_index last, T* to) {
  constexpr local_index most = 256;
  T numbers[most];
  for (; first < last; first += most, to += most) {
    const local_index count = std::min(most, last - first);
    for (local_index k = 0; k < count; ++k) {
      const auto now = terms(i, first + k);
      const T z = *now.source + *now.target;
      numbers[k] = (z > T{0} ? z : slope * z) - *now.log_sum;
    }
    std::copy_n(numbers, count, to);
  }
}

/// to[k, h] = f.finished(i, place(first + k), h, to[k, h]) for the entries first + k < last of row i and a
/// number of heads that is a power of two, in vectors of these numbers.
template <class F, class Place, class T>
inline void finish_in_vectors(const F& given, const Place& place, local_index i, local_index first,
                              local_index last, local_index heads, T* to) {
  constexpr local_index most = 256;
  const local_index count = (last - first) * heads, in_entry = heads - 1;
  const int shift = std::countr_zero(static_cast<unsigned>(heads));
  const auto finish = [&](const auto& f) {
    T numbers[most];
    for (local_index done = 0; done < count; done += most) {
      const local_index now = std::min(most, count - done);
      for (local_index k = 0; k < now; ++k) {
        const local_index n = done + k;
        numbers[k] = f.finished(i, place(first + (n >> shift)), n & in_entry, to[n]);
      }
      std::copy_n(numbers, now, to + done);
    }
  };
  if constexpr (requires { given.with_constants(finish); })
    given.with_constants(finish);
  else
    finish(given);
}

}  // namespace score_detail

/// Whether entry_exponentials computes f.
template <class F>
inline bool takes_exponentials(const F& f) {
  return f.averages() <= score_detail::averaged_at_once;
}

/// values[e, h] = f at (i, place(e), h), for the entries e of rows i in [begin, end) and all heads h.
template <instruction_set I, class F, class Place, class T>
inline void entry_exponentials(const local::csr_view<T>& a, local_index heads, const F& f, const Place& place,
                               T* values, local_index begin, local_index end) {
  const auto terms = [&](local_index i, local_index e) { return f.terms(i, place(e)); };
  const local_index all = a.offsets[a.rows], averaged = f.averages(), each = averaged == 0 ? heads : averaged;
  const T slope = f.leaky_slope();
  const auto fill = [&](local_index i, local_index first, local_index last, T* to) {
    if (each == 1) return score_detail::exponents_of_one_head(terms, slope, i, first, last, to);
    score_detail::with_vectors<I, T>(each, false, [&](auto bytes) {
      score_detail::exponents<T, bytes>(terms, slope, i, first, last, all, each, to);
    });
  };
  const auto finish = [&](local_index i, local_index first, local_index last, T* to) {
    if (std::has_single_bit(static_cast<unsigned>(each)))
      return score_detail::finish_in_vectors(f, place, i, first, last, each, to);
    for (local_index e = first; e < last; ++e)
      for (local_index h = 0; h < each; ++h, ++to) *to = f.finished(i, place(e), h, *to);
  };
  if (averaged == 0) {
    T* const to = edge_values(values, a.offsets[begin], heads);
    for (local_index i = begin; i < end; ++i)
      fill(i, a.offsets[i], a.offsets[i + 1], edge_values(values, a.offsets[i], heads));
    exponentials<I>(to, static_cast<std::size_t>(edge_values(values, a.offsets[end], heads) - to));
    if (!f.finishes()) return;
    for (local_index i = begin; i < end; ++i)
      finish(i, a.offsets[i], a.offsets[i + 1], edge_values(values, a.offsets[i], heads));
    return;
  }
  T of_heads[score_detail::averaged_at_once];
  const local_index most = score_detail::averaged_at_once / each;
  for (local_index i = begin; i < end; ++i)
    for (local_index first = a.offsets[i]; first < a.offsets[i + 1]; first += most) {
      const local_index last = std::min(first + most, a.offsets[i + 1]), count = (last - first) * each;
      fill(i, first, last, of_heads);
      exponentials<I>(of_heads, static_cast<std::size_t>(count));
      if (f.finishes()) finish(i, first, last, of_heads);
      const T* from = of_heads;
      for (local_index e = first; e < last; ++e) {
        T sum = 0;
        for (local_index h = 0; h < each; ++h) sum += *from++;
        std::fill_n(edge_values(values, e, heads), heads, sum / static_cast<T>(each));
      }
    }
}

}  // namespace partita::on_host
