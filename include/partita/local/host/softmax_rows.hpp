// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The softmax of the scores of a row of entries and its gradient, in vectors of heads. A row's scores stay
/// in the first-level cache between the passes over them; of a longer row they are computed again.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/entry_scores.hpp"
#include "partita/local/host/exponential.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

namespace edge_detail {

/// score(e, h) = leaky(source(col(e), h) + target(row(e), h)), and log_sum, of rows, if given.
template <class T>
struct attention {
  local::csr_view<T> a;
  local_index heads;
  T slope;
  matrix_view<const T> source, target;
  matrix_view<const T> log_sum{};

  struct terms_of_entry {
    const T *source, *target, *log_sum;
  };
  terms_of_entry terms(local_index i, local_index c) const {
    return {source.row_data(c), target.row_data(i), log_sum.row_data(i)};
  }
  T leaky_slope() const { return slope; }
  static local_index averages() { return 0; }
  static bool finishes() { return false; }
  static T finished(local_index, local_index, local_index, T alpha) { return alpha; }

  void prefetch_ahead(local_index e) const {
    const local_index last = a.offsets[a.rows] - 1;
    __builtin_prefetch(source.row_data(a.columns[std::min(e + score_detail::ahead, last)]));
  }
};

inline constexpr local_index buffered = 2048;  ///< numbers

inline constexpr int running_sums = 4;  ///< of every fourth entry each

/// The logarithm of the sum of exponentials, of which `totals` has the running sums after division by that of
/// `largest`.
template <class T>
inline T log_of_sums(T largest, const double* totals, int step) {
  const double sum = (totals[0] + totals[step]) + (totals[2 * step] + totals[3 * step]);
  return static_cast<T>(double{largest} + std::log(sum));
}

/// One row of edge_log_sum: the heads from h on that a vector has. After every `at_once` entries, whose
/// scores fit the buffer, the sum so far is scaled to the largest score so far.
template <instruction_set I, class T, int Bytes>
inline void log_sums_of_row(const attention<T>& scores, local_index i, local_index h, local_index at_once,
                            T* buffer, T* log_sum) {
  using v = score_detail::heads_at_once<T, Bytes>;
  using vector = typename v::vector;
  const local_index begin = scores.a.offsets[i], end = scores.a.offsets[i + 1];
  const vector target = v::at(scores.target.row_data(i) + h).value;
  vector largest{};
  largest += std::numeric_limits<T>::lowest();
  typename v::doubles total[running_sums]{};
  for (local_index first = begin; first < end; first += at_once) {
    const local_index last = std::min(end, first + at_once);
    const vector before = largest;
    T* to = buffer;
    for (local_index e = first; e < last; ++e, to += v::lanes) {
      scores.prefetch_ahead(e);
      const vector z = v::at(scores.source.row_data(scores.a.columns[e]) + h).value + target;
      const vector score = z > vector{} ? z : scores.slope * z;
      v::at(to).value = score;
      largest = score > largest ? vector(score) : largest;
    }
    if (first != begin) {
      T factor[v::lanes];
      v::at(factor).value = before - largest;
      exponentials<I>(factor, v::lanes);
      typename v::doubles scale{};
      v::add(factor, scale);
      for (auto& sum : total) sum *= scale;
    }
    for (T* from = buffer; from < to; from += v::lanes) v::at(from).value -= largest;
    exponentials<I>(buffer, static_cast<std::size_t>(to - buffer));
    const T* from = buffer;
    for (; to - from >= running_sums * v::lanes; from += running_sums * v::lanes)
      for (int k = 0; k < running_sums; ++k) v::add(from + k * v::lanes, total[k]);
    for (int k = 0; from < to; ++k, from += v::lanes) v::add(from, total[k]);
  }
  T tops[v::lanes];
  double totals[running_sums * v::lanes];
  v::at(tops).value = largest;
  for (int k = 0; k < running_sums; ++k) v::of_doubles(totals + k * v::lanes).value = total[k];
  for (int lane = 0; lane < v::lanes; ++lane)
    log_sum[h + lane] = log_of_sums(tops[lane], totals + lane, v::lanes);
}

/// The same of one head, in vectors of entries, with the same bits.
template <instruction_set I, class T>
inline T log_sum_of_row(const attention<T>& scores, local_index i, local_index at_once) {
  constexpr int lanes = std::max(register_bytes(I) / static_cast<int>(sizeof(T)), running_sums);
  using v = score_detail::heads_at_once<T, lanes* static_cast<int>(sizeof(T))>;
  using sums = score_detail::heads_at_once<T, running_sums* static_cast<int>(sizeof(T))>;
  using vector = typename v::vector;
  const local_index begin = scores.a.offsets[i], end = scores.a.offsets[i + 1];
  const T target = *scores.target.row_data(i), slope = scores.slope;
  const matrix_view<const T> source = scores.source;
  const local_index* const columns = scores.a.columns;
  T top = std::numeric_limits<T>::lowest();
  typename sums::doubles total{};
  T numbers[buffered];
  for (local_index first = begin; first < end; first += at_once) {
    const local_index count = std::min(end - first, at_once), padded = (count + lanes - 1) / lanes * lanes;
    for (local_index k = 0; k < count; ++k) {
      const T z = *source.row_data(columns[first + k]) + target;
      numbers[k] = z > T{0} ? z : slope * z;
    }
    std::fill(numbers + count, numbers + padded, std::numeric_limits<T>::lowest());
    vector largest{};
    largest += top;
    for (const T* from = numbers; from < numbers + padded; from += lanes) {
      const vector score = v::at(from).value;
      largest = score > largest ? vector(score) : largest;
    }
    const T before = top;
    for (int lane = 0; lane < lanes; ++lane) top = largest[lane] > top ? largest[lane] : top;
    if (first != begin) {
      T factor[1] = {before - top};
      exponentials<I>(factor, 1);
      total *= double{factor[0]};
    }
    for (T* from = numbers; from < numbers + padded; from += lanes) v::at(from).value -= top;
    exponentials<I>(numbers, static_cast<std::size_t>(padded));
    std::fill(numbers + count, numbers + padded, T{0});
    for (const T* from = numbers; from < numbers + count; from += running_sums) sums::add(from, total);
  }
  double totals[running_sums];
  sums::of_doubles(totals).value = total;
  return log_of_sums(top, totals, 1);
}

/// Of some rows, with as many entries at once as for `all_heads`.
template <instruction_set I, class T>
struct log_sums {
  void operator()(const attention<T>& scores, local_index all_heads, const matrix_view<T>& log_sum,
                  local_index begin, local_index end) const {
    T buffer[buffered];
    local_index at_once = 0;
    score_detail::with_vectors<I, T>(all_heads, false, [&](auto bytes) {
      at_once = buffered / (static_cast<local_index>(bytes) / static_cast<local_index>(sizeof(T)));
    });
    if (scores.heads == 1) {
      for (local_index i = begin; i < end; ++i)
        *log_sum.row_data(i) =
            scores.a.offsets[i] == scores.a.offsets[i + 1] ? T{0} : log_sum_of_row<I, T>(scores, i, at_once);
      return;
    }
    score_detail::with_vectors<I, T>(scores.heads, false, [&](auto bytes) {
      constexpr local_index lanes = bytes / static_cast<int>(sizeof(T));
      for (local_index i = begin; i < end; ++i)
        if (scores.a.offsets[i] == scores.a.offsets[i + 1])
          std::fill_n(log_sum.row_data(i), scores.heads, T{0});
        else
          score_detail::for_vectors(lanes, scores.heads, [&](local_index h) {
            log_sums_of_row<I, T, bytes>(scores, i, h, at_once, buffer, log_sum.row_data(i));
          });
    });
  }
};

/// The gradient of the softmax of one row: of `heads` heads from `first_head` on, which vectors divide.
template <instruction_set I, class T, int Bytes>
struct row_gradient {
  using v = score_detail::heads_at_once<T, Bytes>;
  using vector = typename v::vector;
  const attention<T>& scores;
  local_index i, first_head, heads;
  T* edges;   ///< of all entries
  T* buffer;  ///< buffered numbers

  local_index begin() const { return scores.a.offsets[i]; }
  local_index end() const { return scores.a.offsets[i + 1]; }
  /// As many entries as have their coefficients in the buffer.
  local_index at_once() const { return std::max<local_index>(buffered / heads, 1); }
  T* gradient(local_index e, local_index h) const {
    return edge_values(edges, e, scores.heads) + first_head + h;
  }

  /// The coefficients of the entries from `first` on, to the buffer; returns their end.
  local_index coefficients(local_index first) const {
    const local_index last = std::min(end(), first + at_once());
    const auto terms = [&](local_index, local_index e) {
      auto all = scores.terms(i, scores.a.columns[e]);
      all.source += first_head, all.target += first_head, all.log_sum += first_head;
      return all;
    };
    score_detail::exponents<T, Bytes>(terms, scores.slope, i, first, last, scores.a.offsets[scores.a.rows],
                                      heads, buffer);
    exponentials<I>(buffer, static_cast<std::size_t>((last - first) * heads));
    return last;
  }
  /// dot[h] = sum_e alpha(e, h) edges[e, h], in double. Returns whether the buffer has all coefficients.
  bool dots(T* dot) const {
    double total[most_heads];
    std::fill_n(total, heads, 0.0);
    for (local_index first = begin(); first < end();) {
      const local_index last = coefficients(first);
      for (local_index h = 0; h < heads; h += v::lanes) {
        typename v::doubles sum = v::of_doubles(total + h).value;
        const T* alpha = buffer + h;
        for (local_index e = first; e < last; ++e, alpha += heads) v::add_product(alpha, gradient(e, h), sum);
        v::of_doubles(total + h).value = sum;
      }
      first = last;
    }
    for (local_index h = 0; h < heads; ++h) dot[h] = static_cast<T>(total[h]);
    return end() - begin() <= at_once();
  }
  /// edges[e, h] = alpha (edges[e, h] - dot[h]) leaky'(z), and their sums are added to dtarget.
  void finish(const T* dot, bool has_coefficients, T* dtarget) const {
    for (local_index first = begin(); first < end();) {
      const local_index last = has_coefficients ? end() : coefficients(first);
      for (local_index h = 0; h < heads; h += v::lanes) {
        const vector target = v::at(scores.target.row_data(i) + first_head + h).value;
        const vector mean = v::at(dot + h).value;
        vector sum{};
        const T* alpha = buffer + h;
        for (local_index e = first; e < last; ++e, alpha += heads) {
          const vector z = v::at(scores.source.row_data(scores.a.columns[e]) + first_head + h).value + target;
          const vector g = v::at(alpha).value * (v::at(gradient(e, h)).value - mean);
          const vector through = z > vector{} ? vector(g) : scores.slope * g;
          v::at(gradient(e, h)).value = through;
          sum += through;
        }
        v::at(dtarget + h).value += sum;
      }
      first = last;
    }
  }

  static constexpr local_index most_heads = 64;  ///< at most
};

/// Of some rows: edges in place and dtarget; row_dot is given, or computed if it has no rows.
template <instruction_set I, class T>
struct softmax_gradient {
  void operator()(const attention<T>& scores, const matrix_view<const T>& row_dot, T beta, T* edges,
                  const matrix_view<T>& dtarget, local_index begin, local_index end) const {
    constexpr local_index most = 64;
    T buffer[buffered], dots[most];
    for (local_index first = 0; first < scores.heads; first += most) {
      const local_index heads = std::min(most, scores.heads - first);
      score_detail::with_vectors<I, T>(heads, true, [&](auto bytes) {
        for (local_index i = begin; i < end; ++i) {
          T* const to = dtarget.row_data(i) + first;
          for (local_index h = 0; h < heads; ++h) to[h] = beta == 0 ? T{0} : beta * to[h];
          const row_gradient<I, T, bytes> row{scores, i, first, heads, edges, buffer};
          const bool given = row_dot.rows != 0, kept = !given && row.dots(dots);
          row.finish(given ? row_dot.row_data(i) + first : dots, kept, to);
        }
      });
    }
  }
};

/// to(c, h) = beta to(c, h) + sum_e edges[e, h] over the entries of column c.
template <instruction_set I, class T>
struct column_sums {
  void operator()(const local::csr_view<T>& columns, const local_index* numbers, local_index heads,
                  const T* edges, T beta, const matrix_view<T>& to, local_index begin,
                  local_index end) const {
    score_detail::with_vectors<I, T>(heads, true, [&](auto bytes) {
      using v = score_detail::heads_at_once<T, bytes>;
      const local_index last = columns.offsets[columns.rows] - 1;
      for (local_index c = begin; c < end; ++c)
        for (local_index h = 0; h < heads; h += v::lanes) {
          typename v::vector sum{};
          for (local_index t = columns.offsets[c]; t < columns.offsets[c + 1]; ++t) {
            __builtin_prefetch(edge_values(edges, numbers[std::min(t + score_detail::ahead, last)], heads) +
                               h);
            sum += v::at(edge_values(edges, numbers[t], heads) + h).value;
          }
          auto& place = v::at(to.row_data(c) + h);
          if (beta != 0) sum += beta * place.value;
          place.value = sum;
        }
    });
  }
};

}  // namespace edge_detail

}  // namespace partita::on_host
