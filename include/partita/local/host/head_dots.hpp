// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dot products of the heads of two rows, several at a time: the partial sums of as many heads as a vector
/// has elements are folded together, in the same order as those of one.

#include <algorithm>
#include <cstddef>

#include "partita/local/head_slice.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

namespace dot_detail {

template <local_index Lanes, class T>
inline T fold(const T (&partial)[Lanes]) {
  if constexpr (Lanes == 1) {
    return partial[0];
  } else {
    T halves[Lanes / 2];
    for (local_index c = 0; c < Lanes / 2; ++c) halves[c] = partial[c] + partial[c + Lanes / 2];
    return fold<Lanes / 2>(halves);
  }
}

template <local_index Lanes, class T>
inline T dot_of(const T* u, const T* v, local_index n) {
  T partial[Lanes] = {};
  local_index j = 0;
  for (; j + Lanes <= n; j += Lanes)
    for (local_index c = 0; c < Lanes; ++c) partial[c] += u[j + c] * v[j + c];
  T total = fold<Lanes>(partial);
  for (; j < n; ++j) total += u[j] * v[j];
  return total;
}

/// The number of partial sums of a dot product of n elements.
constexpr local_index partial_sums(local_index n) { return n >= 16 ? 16 : n >= 8 ? 8 : 1; }

/// Dot product in up to sixteen interleaved partial sums; the number depends on n only.
template <class T>
inline T dot(const T* u, const T* v, local_index n) {
  return n >= 16 ? dot_of<16>(u, v, n) : n >= 8 ? dot_of<8>(u, v, n) : dot_of<1>(u, v, n);
}

/// What edge_dot is given.
template <class T>
struct operands {
  local::csr_view<T> a;
  local::head_slice s;
  matrix_view<const T> y, x;
  T beta;
  T* values;

  void set(T& value, T total) const { value = beta == 0 ? total : total + beta * value; }
  void prefetch_ahead(local_index e) const {
    const local_index last = a.offsets[a.rows] - 1;
    prefetch(x.row_data(a.columns[e < last - 16 ? e + 16 : last]), x.cols);
  }
};

/// `Lanes` dot products at a time, in vectors of that many elements or of `Bytes` if those are shorter.
template <class T, int Bytes, int Lanes>
struct folded_heads {
  static constexpr int size = std::min(Bytes, Lanes* static_cast<int>(sizeof(T)));
  static constexpr int width =
      size / static_cast<int>(sizeof(T));  ///< elements of a vector, and dot products
  using vector = typename vector_of<T, size>::type;
  using place = typename vector_of<T, size>::place;

  /// Rows [begin, end), for whole heads of at least Lanes columns.
  void operator()(const operands<T>& p, local_index begin, local_index end) const {
    if (p.s.head_width == Lanes)
      rows<true>(p, begin, end);
    else
      rows<false>(p, begin, end);
  }

 private:
  static const place& at(const T* x) { return *reinterpret_cast<const place*>(x); }

  /// The sums that dot_of<Lanes> folds from its first `width` partial sums on.
  static void sum_of(const T* u, const T* v, local_index n, vector& sum) {
    constexpr int parts = Lanes / width;
    vector part[parts] = {};
    for (local_index j = 0; j + Lanes <= n; j += Lanes)
      for (int c = 0; c < parts; ++c) part[c] += at(u + j + c * width).value * at(v + j + c * width).value;
    for (int half = parts / 2; half > 0; half /= 2)
      for (int c = 0; c < half; ++c) part[c] += part[c + half];
    sum = part[0];
  }
  /// Where element j of the runs of Block elements at even and at odd places of two vectors is.
  template <int Block>
  static constexpr int even(int j) {
    return j / Block * 2 * Block + j % Block;
  }
  template <int Block>
  static constexpr int odd(int j) {
    return even<Block>(j) + Block;
  }
  /// to = these runs of x and y, those at even places plus those at odd ones.
  template <int Block>
  static void fold_two(const vector& x, const vector& y, vector& to) {
    if constexpr (width == 2)
      to = __builtin_shufflevector(x, y, even<Block>(0), even<Block>(1)) +
           __builtin_shufflevector(x, y, odd<Block>(0), odd<Block>(1));
    else if constexpr (width == 4)
      to = __builtin_shufflevector(x, y, even<Block>(0), even<Block>(1), even<Block>(2), even<Block>(3)) +
           __builtin_shufflevector(x, y, odd<Block>(0), odd<Block>(1), odd<Block>(2), odd<Block>(3));
    else if constexpr (width == 8)
      to = __builtin_shufflevector(x, y, even<Block>(0), even<Block>(1), even<Block>(2), even<Block>(3),
                                   even<Block>(4), even<Block>(5), even<Block>(6), even<Block>(7)) +
           __builtin_shufflevector(x, y, odd<Block>(0), odd<Block>(1), odd<Block>(2), odd<Block>(3),
                                   odd<Block>(4), odd<Block>(5), odd<Block>(6), odd<Block>(7));
    else
      to = __builtin_shufflevector(x, y, even<Block>(0), even<Block>(1), even<Block>(2), even<Block>(3),
                                   even<Block>(4), even<Block>(5), even<Block>(6), even<Block>(7),
                                   even<Block>(8), even<Block>(9), even<Block>(10), even<Block>(11),
                                   even<Block>(12), even<Block>(13), even<Block>(14), even<Block>(15)) +
           __builtin_shufflevector(x, y, odd<Block>(0), odd<Block>(1), odd<Block>(2), odd<Block>(3),
                                   odd<Block>(4), odd<Block>(5), odd<Block>(6), odd<Block>(7), odd<Block>(8),
                                   odd<Block>(9), odd<Block>(10), odd<Block>(11), odd<Block>(12),
                                   odd<Block>(13), odd<Block>(14), odd<Block>(15));
  }
  /// sums[0] = the folded sums of 2 Block vectors, of which each has runs of 2 Block elements.
  template <int Block>
  static void fold_together(vector* sums) {
    if constexpr (Block > 0) {
      for (int k = 0; k < Block; ++k) fold_two<Block>(sums[2 * k], sums[2 * k + 1], sums[k]);
      fold_together<Block / 2>(sums);
    }
  }

  template <bool Exactly>
  static void rows(const operands<T>& p, local_index begin, local_index end) {
    const local_index columns = Exactly ? Lanes : p.s.head_width, heads = p.x.cols / columns;
    const bool all = heads == p.s.heads;
    for (local_index i = begin; i < end; ++i) {
      const T* const left = p.y.row_data(i);
      local_index e = p.a.offsets[i], h = 0;
      T* to = edge_values(p.values, e, p.s.heads);
      const std::ptrdiff_t dots = std::ptrdiff_t{p.a.offsets[i + 1] - e} * heads;
      for (std::ptrdiff_t done = 0; done < dots; done += width, to += width) {
        const auto now = static_cast<int>(std::min<std::ptrdiff_t>(width, dots - done));
        const local_index from_entry = e, from_head = h;
        vector sums[width];
        for (int k = 0; k < width; ++k) {
          if (h == 0) p.prefetch_ahead(e);
          sum_of(left + h * columns, p.x.row_data(p.a.columns[e]) + h * columns, columns, sums[k]);
          if (k + 1 < now || now == width)
            if (++h == heads) h = 0, ++e;
        }
        fold_together<width / 2>(sums);
        if (Exactly && all && now == width) {
          auto& value = *reinterpret_cast<place*>(to);
          if (p.beta != 0) sums[0] += p.beta * value.value;
          value.value = sums[0];
        } else {
          store(p, left, sums[0], now, from_entry, from_head);
        }
      }
      if (!all) clear_others(p, i, heads);
    }
  }
  /// `count` dot products, from entry e and head h of the slice on, with the columns that are left over.
  static void store(const operands<T>& p, const T* left, const vector& sums, int count, local_index e,
                    local_index h) {
    const local_index columns = p.s.head_width, heads = p.x.cols / columns;
    for (int k = 0; k < count; ++k) {
      const T *const u = left + h * columns, *const v = p.x.row_data(p.a.columns[e]) + h * columns;
      T total = sums[k];
      for (local_index j = columns / Lanes * Lanes; j < columns; ++j) total += u[j] * v[j];
      p.set(edge_values(p.values, e, p.s.heads)[p.s.first_col / columns + h], total);
      if (++h == heads) h = 0, ++e;
    }
  }
  static void clear_others(const operands<T>& p, local_index i, local_index heads) {
    const local_index first = p.s.first_col / p.s.head_width;
    for (local_index e = p.a.offsets[i]; e < p.a.offsets[i + 1]; ++e)
      for (local_index h = 0; h < p.s.heads; ++h)
        if (h < first || h >= first + heads) p.set(edge_values(p.values, e, p.s.heads)[h], T{0});
  }
};

/// Heads of any columns, one by one.
template <class T>
struct single_heads {
  void operator()(const operands<T>& p, local_index first, local_index last) const {
    const local_index first_head = p.x.cols == 0 ? p.s.heads : p.s.first_col / p.s.head_width;
    for (local_index i = first; i < last; ++i)
      for (local_index e = p.a.offsets[i]; e < p.a.offsets[i + 1]; ++e) {
        p.prefetch_ahead(e);
        const T* const left = p.y.row_data(i);
        const T* const right = p.x.row_data(p.a.columns[e]);
        T* const value = edge_values(p.values, e, p.s.heads);
        for (local_index h = 0; h < first_head; ++h) p.set(value[h], T{0});
        local_index done = first_head;
        for_heads(p.s, 0, p.x.cols, [&](local_index begin, local_index end, local_index h) {
          p.set(value[h], dot(left + begin, right + begin, end - begin));
          done = h + 1;
        });
        for (local_index h = done; h < p.s.heads; ++h) p.set(value[h], T{0});
      }
  }
};

/// Rows [begin, end) of edge_dot.
template <instruction_set I, class T>
inline void rows(const operands<T>& p, local_index begin, local_index end) {
  const local_index columns = p.s.head_width, sums = partial_sums(columns);
  const bool whole = p.x.cols > 0 && p.s.first_col % columns == 0 && p.x.cols % columns == 0;
  if (whole && sums == 16) return run_with<I>(folded_heads<T, register_bytes(I), 16>(), p, begin, end);
  if (whole && sums == 8) return run_with<I>(folded_heads<T, register_bytes(I), 8>(), p, begin, end);
  run_with<I>(single_heads<T>(), p, begin, end);
}

}  // namespace dot_detail

}  // namespace partita::on_host
