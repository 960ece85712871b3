// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Folds that sum rows of a dense block weighted by entry values.

#include <cstddef>

#include "partita/local/cuda/row_fold.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// Weights stored with the entries; `together` if four of them can be loaded along with their columns.
template <class T>
struct stored_values {
  struct ahead {
    T at[4];
  };

  const T* values;
  bool together;

  constexpr T of(local_index e, local_index) const { return values[e]; }
  constexpr T of(const ahead& four, int k, local_index, local_index) const { return four.at[k]; }
  constexpr ahead load_ahead(local_index e) const {
    ahead four{};
    if (together) {
      for (int k = 0; k < 4; k += widest<T>) {
        const pack_of<T, widest<T>> part = load<widest<T>>(values + e + k);
        for (int c = 0; c < widest<T>; ++c) four.at[k + c] = part.at[c];
      }
    } else {
      for (int k = 0; k < 4; ++k) four.at[k] = values[e + k];
    }
    return four;
  }
};

/// Per-head weights: those of entry e start at values + heads * e, or heads * order[e] if `order` is not
/// null. Each pack of columns of the slice is within one head.
template <class T>
struct values_of_heads : nothing_ahead {
  const T* values;
  const local_index* order;
  local_index heads, head_width, first_col, pack_width;

  constexpr T of(local_index e, local_index v) const {
    const std::ptrdiff_t entry = order == nullptr ? e : order[e];
    return values[entry * heads + (first_col + v * pack_width) / head_width];
  }
  constexpr T of(ahead, int, local_index e, local_index v) const { return of(e, v); }
};

/// `Ragged`: the last pack may go beyond the columns of y, whose rows need no alignment; x has whole packs.
template <class T, int Width, class Weights, bool Ragged = false>
struct row_product {
  static constexpr int min_blocks_per_multiprocessor = sizeof(T) * Width > 8 ? 3 : 4;

  using sum = pack_of<T, Width>;
  struct term {
    T weight;
    pack_of<T, Width> x;
  };
  struct ahead {
    pack_of<local_index, 4> columns;
    typename Weights::ahead weights;
  };

  const local_index* columns;
  Weights weights;
  row_table<T> x;
  local::spmm_epilogue<T> fusion;
  matrix_view<T> y;

  constexpr sum zero() const { return {}; }
  constexpr ahead load_ahead(local_index e) const { return {load<4>(columns + e), weights.load_ahead(e)}; }
  constexpr term term_of(local_index e, local_index v) const {
    return {weights.of(e, v), load<Width>(x.at(columns[e], v * Width))};
  }
  constexpr void terms_of(const ahead& four, local_index e, local_index v, term (&terms)[4]) const {
    for (int k = 0; k < 4; ++k) {
      terms[k] = {weights.of(four.weights, k, e + k, v), load<Width>(x.at(four.columns.at[k], v * Width))};
    }
  }
  constexpr void add(sum& total, const term& next, local_index, local_index) const {
    for (int c = 0; c < Width; ++c) total.at[c] += next.weight * next.x.at[c];
  }
  constexpr void merge(sum& total, const sum& later) const { total += later; }
  constexpr void store(const sum& total, local_index row, local_index v) const {
    const local_index j = v * Width;
    T* const to = y.row_data(row) + j;
    if constexpr (Ragged) {
      for (int c = 0; c < Width; ++c)
        if (j + c < y.cols) to[c] = fusion.finished(total.at[c], row, j + c, to[c]);
      return;
    }
    pack_of<T, Width> result = fusion.beta == 0 ? pack_of<T, Width>{} : load<Width>(to);
    for (int c = 0; c < Width; ++c) result.at[c] = fusion.finished(total.at[c], row, j + c, result.at[c]);
    on_cuda::store(result, to);
  }
};

}  // namespace partita::on_cuda
