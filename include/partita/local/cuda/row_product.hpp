// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Folds that sum rows of a dense block weighted by entry values.

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/local/cuda/row_fold.hpp"
#include "partita/local/cuda/vector.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

/// Values stored with the entries, of which four can be loaded along with their columns.
template <class T>
struct stored_values {
  const T* values;

  constexpr T of(local_index e) const { return values[e]; }
  constexpr void of_four(local_index e, T (&four)[4]) const {
    for (int k = 0; k < 4; k += widest<T>) {
      const pack_of<T, widest<T>> part = load<widest<T>>(values + e + k);
      for (int c = 0; c < widest<T>; ++c) four[k + c] = part.at[c];
    }
  }
};

/// Values that are loaded one by one, that of entry e at order[e], or at e if `order` is null.
template <class T>
struct single_values {
  const T* values;
  const local_index* order = nullptr;

  constexpr T of(local_index e) const { return values[order == nullptr ? e : order[e]]; }
  constexpr void of_four(local_index e, T (&four)[4]) const {
    for (int k = 0; k < 4; ++k) four[k] = of(e + k);
  }
};

/// `Width` numbers of a row, stored as X, as they are loaded: two of bfloat16 in a word.
template <class X, int Width>
using stored_pack = std::conditional_t<std::is_same_v<X, base::bfloat16> && Width % 2 == 0,
                                       pack_of<std::uint32_t, (Width + 1) / 2>, pack_of<X, Width>>;

/// The numbers of such a pack, as T.
template <class T, class X, int Width>
constexpr pack_of<T, Width> widened(const pack_of<X, Width>& x) {
  pack_of<T, Width> wide{};
  for (int c = 0; c < Width; ++c) wide.at[c] = T(x.at[c]);
  return wide;
}
template <std::same_as<float> T, int Words>
constexpr pack_of<T, 2 * Words> widened(const pack_of<std::uint32_t, Words>& x) {
  pack_of<T, 2 * Words> wide{};
  for (int c = 0; c < Words; ++c) {
    wide.at[2 * c] = std::bit_cast<float>(x.at[c] << 16);
    wide.at[2 * c + 1] = std::bit_cast<float>(x.at[c] & 0xffff0000U);
  }
  return wide;
}

/// X: what x is stored as, T or base::bfloat16. `Ragged`: the last pack may go beyond the columns of y, whose
/// rows need no alignment; x has whole packs.
template <class T, int Width, class Values, bool Ragged = false, class X = T>
struct row_product : columns_ahead {
  static constexpr int registers_for_sums = sizeof(T) * Width / 4;
  static constexpr int min_blocks_per_multiprocessor = registers_for_sums > 4 ? (Ragged ? 2 : 3)
                                                       : registers_for_sums == 4 && (Ragged || sizeof(T) > 4)
                                                           ? 3
                                                           : 4;

  using sum = pack_of<T, Width>;
  struct term {
    T value;
    stored_pack<X, Width> x;
  };

  Values values;
  row_table<X> x;
  local::spmm_epilogue<T> fusion;
  matrix_view<T> y;

  constexpr sum zero() const { return {}; }
  constexpr term term_of(local_index e, local_index v) const { return {values.of(e), packed(columns[e], v)}; }
  constexpr void terms_of(const ahead& four, local_index e, local_index v, term (&terms)[4]) const {
    T of_entries[4];
    values.of_four(e, of_entries);
    for (int k = 0; k < 4; ++k) terms[k] = {of_entries[k], packed(four.at[k], v)};
  }
  constexpr void add(sum& total, const term& next, local_index, local_index) const {
    const pack_of<T, Width> numbers = widened<T>(next.x);
    for (int c = 0; c < Width; ++c) total.at[c] = std::fma(next.value, numbers.at[c], total.at[c]);
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

 private:
  constexpr stored_pack<X, Width> packed(local_index i, local_index v) const {
    return *reinterpret_cast<const stored_pack<X, Width>*>(x.at(i, v * Width));
  }
};

/// Folds a row_product in so many packs of columns; where these are wider than 16 bytes of y, in as many
/// shares as if they were not: sums then have the bits that they have for an x stored as T.
template <class T, int Width, class Values, bool Ragged, class X>
void fold_product(const device_queue<cuda_device>& q, const pattern_rows& a, local_index packs,
                  const row_product<T, Width, Values, Ragged, X>& fold) {
  const auto of_16_bytes = static_cast<local_index>(quotient_up(fold.y.cols, widest<T>));
  fold_rows(q, a, packs, skew(fold.columns, 4), fold, share_count(a, std::max({packs, of_16_bytes, 1})));
}

/// y = the epilogue of the sums over the entries of rows, in packs of X's widest load or of fewer columns.
template <class T, class X, class Values>
void sum_rows(const device_queue<cuda_device>& q, const pattern_rows& a, const local_index* columns,
              const Values& values, const matrix_view<const X>& x, const local::spmm_epilogue<T>& fusion,
              const matrix_view<T>& y) {
  with_width<widest<X>>(
      y.cols,
      [&]<int pack_width>(std::integral_constant<int, pack_width>) {
        fold_product(q, a, y.cols / pack_width,
                     row_product<T, pack_width, Values, false, X>{{columns}, values, table_of(x), fusion, y});
      },
      x, y);
}

}  // namespace partita::on_cuda
