// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of rows of X over the entries of rows of a sparse pattern. A row of Y is accumulated in vector
/// registers, all of its columns in one pass, as far as registers go; rows of X are prefetched some entries
/// ahead, since the sums are bound by memory access to X.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

namespace strip_detail {

/// X: what x is stored as, T or base::bfloat16.
template <class T, class X = T>
struct operands {
  local::csr_view<T> a;
  matrix_view<const X> x;
  local::spmm_epilogue<T> fusion;
  matrix_view<T> y;

  /// Columns [begin, end) of x and y.
  operands columns(local_index begin, local_index end) const {
    operands part = *this;
    part.x = x.block(0, begin, x.rows, end - begin);
    part.y = y.block(0, begin, y.rows, end - begin);
    if (fusion.bias != nullptr) part.fusion.bias += begin;
    return part;
  }
};

/// What row col(e) of x is multiplied by: one value for all columns, `step` values behind that of the entry
/// before. `order` maps entries to value indices, and is null for the identity.
template <class T>
struct one_value {
  const T* values;
  const local_index* order = nullptr;
  local_index step = 1;

  const T* of_entry(local_index e) const {
    return edge_values(values, order == nullptr ? e : order[e], step);
  }
  static constexpr local_index of_column(std::ptrdiff_t) { return 0; }
  one_value from(local_index) const { return *this; }
};

/// Or one value for each head. Column 0 is column `first` of the first head.
template <class T>
struct value_of_head {
  const T* values;
  const local_index* order;
  local_index heads, head_width, first;

  const T* of_entry(local_index e) const {
    return edge_values(values, order == nullptr ? e : order[e], heads);
  }
  local_index of_column(std::ptrdiff_t column) const {
    return static_cast<local_index>(first + column) / head_width;
  }
  value_of_head from(local_index column) const { return {values, order, heads, head_width, first + column}; }
};

/// Rows of y of more than Count / 2 and at most Count vectors. Those of the second half end with the last
/// column, and may overlap the others. The columns of a vector have one value.
template <class T, int Bytes, int Count>
struct strip {
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(T)), half = Count / 2;
  static constexpr local_index ahead = Bytes * Count <= 512 ? 32 : 16;
  using vector = typename vector_of<T, Bytes>::type;
  using place = typename vector_of<T, Bytes>::place;

  template <class X, class Values>
  void operator()(const operands<T, X>& p, const Values& given, local_index begin, local_index end) const {
    const local::csr_view<T> a = p.a;
    const Values values = given;
    const X* const x = p.x.data;
    const std::ptrdiff_t stride = p.x.row_stride, second = p.y.cols - (Count - half) * lanes;
    const local_index last = a.offsets[a.rows] - 1;
    local_index of_vector[Count];
    for (int n = 0; n < Count; ++n) of_vector[n] = values.of_column(start(n, second));
    for (local_index i = begin; i < end; ++i) {
      vector sum[Count] = {};
      const local_index row_end = a.offsets[i + 1];
      for (local_index e = a.offsets[i]; e < row_end; ++e) {
        const X* const later = x + a.columns[e < last - ahead ? e + ahead : last] * stride;
        for (int j = 0; j < lanes * Count; j += 64 / static_cast<int>(sizeof(X)))
          __builtin_prefetch(later + j);
        const X* const from = x + a.columns[e] * stride;
        const T* const value = values.of_entry(e);
        for (int n = 0; n < Count; n += pace<X>) add(value[of_vector[n]], from + start(n, second), sum + n);
      }
      for (int n = 0; pace<X> == 2 && n < Count; n += 2) interleave(sum + n);
      store(sum, p.fusion, second, p.y.row_data(i));
    }
  }

 private:
  template <class X>
  static constexpr int pace = sizeof(X)<sizeof(T) && Count> 2 ? 2 : 1;

  /// Where vector n of a row begins, whose second half begins at `second`.
  static std::ptrdiff_t start(int n, std::ptrdiff_t second) {
    return n < half ? std::ptrdiff_t{n} * lanes : second + (n - half) * lanes;
  }
  /// sums[n] += factor x, for the `pace` vectors that begin at x: two of bfloat16, whose even and odd columns
  /// are summed apart, which takes two instructions instead of five to widen each.
  template <class X>
  static void add(T factor, const X* x, vector* sums) {
    using bits = vector_of<std::uint32_t, Bytes>;
    using words = typename bits::type;
    if constexpr (sizeof(X) == sizeof(T)) {
      *sums += factor * reinterpret_cast<const place*>(x)->value;
    } else if constexpr (pace<X> == 2) {
      const words both = reinterpret_cast<const typename bits::place*>(x)->value;
      const words even = both << 16, odd = both & 0xffff0000U;
      sums[0] += factor * __builtin_bit_cast(vector, even);
      sums[1] += factor * __builtin_bit_cast(vector, odd);
    } else {
      using place_of_x = typename vector_of<std::uint16_t, Bytes / 2>::place;
      const words wide = __builtin_convertvector(reinterpret_cast<const place_of_x*>(x)->value, words) << 16;
      *sums += factor * __builtin_bit_cast(vector, wide);
    }
  }
  /// The first and the second vector, from their even and their odd columns.
  static void interleave(vector* sums) {
    const vector a = sums[0], b = sums[1];
    if constexpr (lanes == 4) {
      sums[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      sums[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    } else if constexpr (lanes == 8) {
      sums[0] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
      sums[1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    } else if constexpr (lanes == 16) {
      sums[0] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      sums[1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
  }
  static const place& at(const T* row, int n, std::ptrdiff_t second) {
    return *reinterpret_cast<const place*>(n < half ? row + n * lanes : row + second + (n - half) * lanes);
  }
  static place& at(T* row, int n, std::ptrdiff_t second) {
    return *reinterpret_cast<place*>(n < half ? row + n * lanes : row + second + (n - half) * lanes);
  }
  static void store(vector (&sum)[Count], const local::spmm_epilogue<T>& fusion, std::ptrdiff_t second,
                    T* y) {
    if (fusion.alpha != 1)
      for (vector& s : sum) s *= fusion.alpha;
    if (fusion.beta != 0)
      for (int n = 0; n < Count; ++n) sum[n] += fusion.beta * at(y, n, second).value;
    if (fusion.bias != nullptr)
      for (int n = 0; n < Count; ++n) sum[n] += at(fusion.bias, n, second).value;
    if (fusion.relu)
      for (vector& s : sum) s = s > vector{} ? s : vector{};
    for (int n = 0; n < Count; ++n) at(y, n, second).value = sum[n];
  }
};

template <class T, class X, class Values>
using kernel = void (*)(const operands<T, X>&, const Values&, local_index, local_index);

/// The bytes of the shortest vectors: one column, or as many as columns of heads share at least.
template <class T, class Values>
inline constexpr int shortest = std::is_same_v<Values, one_value<T>> ? static_cast<int>(sizeof(T)) : 16;

/// The kernel of `cols` columns, which Most vectors of Bytes hold and one fills.
template <instruction_set I, class T, class X, class Values, int Bytes, int Most>
inline kernel<T, X, Values> kernel_of(local_index cols) {
  if constexpr (Most > 1)
    if (cols * static_cast<int>(sizeof(T)) <= Most / 2 * Bytes)
      return kernel_of<I, T, X, Values, Bytes, Most / 2>(cols);
  if constexpr (sizeof(X) < sizeof(T) && Most <= 2 && Bytes > 16)
    return kernel_of<I, T, X, Values, Bytes / 2, Most * 2>(cols);
  return [](const operands<T, X>& p, const Values& values, local_index begin, local_index end) {
    run_with<I>(strip<T, Bytes, Most>(), p, values, begin, end);
  };
}

/// Rows [begin, end) of y, in vectors of Bytes, or shorter ones if a row does not fill these or they would
/// span columns with different values: those of every `shared` columns are the same, a power of two that
/// divides the number of columns, or 0 if all are.
template <instruction_set I, class T, class X, class Values, int Bytes = register_bytes(I)>
inline void multiply_rows(const operands<T, X>& p, const Values& values, local_index shared,
                          local_index begin, local_index end) {
  constexpr local_index lanes = Bytes / sizeof(T);
  if constexpr (Bytes > shortest<T, Values>)
    if (p.y.cols < lanes || shared % lanes != 0)
      return multiply_rows<I, T, X, Values, Bytes / 2>(p, values, shared, begin, end);
  constexpr bool narrow = Bytes < register_bytes(I) && std::is_same_v<Values, one_value<T>>;
  constexpr int most = narrow ? 2 : kept_registers(I);
  const local_index vectors = (p.y.cols + lanes - 1) / lanes, strips = (vectors + most - 1) / most;
  for (local_index i = begin; i < end; i += strips == 1 ? end - begin : row_block)
    for (local_index s = 0; s < strips; ++s) {
      const local_index first = vectors * s / strips * lanes,
                        last = std::min(vectors * (s + 1) / strips * lanes, p.y.cols);
      const auto run = kernel_of<I, T, X, Values, Bytes, most>(last - first);
      run(p.columns(first, last), values.from(first), i, strips == 1 ? end : std::min(i + row_block, end));
    }
}

}  // namespace strip_detail

}  // namespace partita::on_host
