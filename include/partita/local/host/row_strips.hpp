// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of rows of X over the entries of rows of a sparse pattern. A row of Y is accumulated in vector
/// registers, all of its columns in one pass, as far as registers go; rows of X are prefetched some entries
/// ahead, since the sums are bound by memory access to X.

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "partita/local/fusion.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/vector.hpp"
#include "partita/local/view.hpp"

namespace partita::on_host {

namespace strip_detail {

template <class T>
struct operands {
  local::csr_view<T> a;
  matrix_view<const T> x;
  local::spmm_epilogue<T> fusion;
  matrix_view<T> y;
  const row_place* places = nullptr;  ///< of the rows of a, if they are in another order than those of y

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

  template <class Values>
  void operator()(const operands<T>& p, const Values& given, local_index begin, local_index end) const {
    const local::csr_view<T> a = p.a;
    const Values values = given;
    const T* const x = p.x.data;
    const std::ptrdiff_t stride = p.x.row_stride, second = p.y.cols - (Count - half) * lanes;
    const local_index last = a.offsets[a.rows] - 1;
    local_index of_vector[Count];
    for (int n = 0; n < Count; ++n) of_vector[n] = values.of_column(start(n, second));
    for (local_index i = begin; i < end; ++i) {
      vector sum[Count] = {};
      const row_place here = place_of(p, values, i);
      const local_index row_end = a.offsets[i + 1];
      for (local_index e = a.offsets[i]; e < row_end; ++e) {
        const T* const later = x + a.columns[e < last - ahead ? e + ahead : last] * stride;
        for (int line = 0; line < Bytes * Count; line += 64)
          __builtin_prefetch(later + line / static_cast<int>(sizeof(T)));
        const T* const from = x + a.columns[e] * stride;
        const T* const value = values.of_entry(e + here.shift);
        for (int n = 0; n < Count; ++n) sum[n] += value[of_vector[n]] * at(from, n, second).value;
      }
      store(sum, p.fusion, second, p.y.row_data(here.row));
    }
  }

 private:
  /// Where row i of a is, with what some later row needs on its way.
  template <class Values>
  static row_place place_of(const operands<T>& p, const Values& values, local_index i) {
    constexpr local_index rows_ahead = 4;
    if (p.places == nullptr) return {i, 0};
    const local_index k = std::min(i + rows_ahead, p.a.rows - 1);
    const row_place later = p.places[k];
    for (int line = 0; line < Bytes * Count; line += 64)
      __builtin_prefetch(p.y.row_data(later.row) + line / static_cast<int>(sizeof(T)), 1);
    __builtin_prefetch(values.of_entry(p.a.offsets[k] + later.shift));
    return p.places[i];
  }
  /// Where vector n of a row begins, whose second half begins at `second`.
  static std::ptrdiff_t start(int n, std::ptrdiff_t second) {
    return n < half ? std::ptrdiff_t{n} * lanes : second + (n - half) * lanes;
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

template <class T, class Values>
using kernel = void (*)(const operands<T>&, const Values&, local_index, local_index);

/// The bytes of the shortest vectors: one column, or as many as columns of heads share at least.
template <class T, class Values>
inline constexpr int shortest = std::is_same_v<Values, one_value<T>> ? static_cast<int>(sizeof(T)) : 16;

/// The kernel of `cols` columns, which Most vectors of Bytes hold and one fills.
template <instruction_set I, class T, class Values, int Bytes, int Most>
inline kernel<T, Values> kernel_of(local_index cols) {
  if constexpr (Most > 1)
    if (cols * static_cast<int>(sizeof(T)) <= Most / 2 * Bytes)
      return kernel_of<I, T, Values, Bytes, Most / 2>(cols);
  return [](const operands<T>& p, const Values& values, local_index begin, local_index end) {
    run_with<I>(strip<T, Bytes, Most>(), p, values, begin, end);
  };
}

/// Rows [begin, end) of y, in vectors of Bytes, or shorter ones if a row does not fill these or they would
/// span columns with different values: those of every `shared` columns are the same, a power of two that
/// divides the number of columns, or 0 if all are.
template <instruction_set I, class T, class Values, int Bytes = register_bytes(I)>
inline void multiply_rows(const operands<T>& p, const Values& values, local_index shared, local_index begin,
                          local_index end) {
  constexpr local_index lanes = Bytes / sizeof(T);
  if constexpr (Bytes > shortest<T, Values>)
    if (p.y.cols < lanes || shared % lanes != 0)
      return multiply_rows<I, T, Values, Bytes / 2>(p, values, shared, begin, end);
  constexpr bool narrow = Bytes < register_bytes(I) && std::is_same_v<Values, one_value<T>>;
  constexpr int most = narrow ? 2 : kept_registers(I);
  const local_index vectors = (p.y.cols + lanes - 1) / lanes, strips = (vectors + most - 1) / most;
  for (local_index i = begin; i < end; i += strips == 1 ? end - begin : row_block)
    for (local_index s = 0; s < strips; ++s) {
      const local_index first = vectors * s / strips * lanes,
                        last = std::min(vectors * (s + 1) / strips * lanes, p.y.cols);
      const auto run = kernel_of<I, T, Values, Bytes, most>(last - first);
      run(p.columns(first, last), values.from(first), i, strips == 1 ? end : std::min(i + row_block, end));
    }
}

}  // namespace strip_detail

}  // namespace partita::on_host
