// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sums of rows of X over the entries of rows of a sparse pattern. A row of Y is accumulated in vector
/// registers, all of its columns in one pass if there are enough registers. The sums are bound by memory
/// access, so rows of X are prefetched some entries ahead (prefetch_distance.hpp). The entries are
/// prefetched, too, since the hardware does not follow their streams among so many random reads. Long rows
/// are summed in pieces (long_rows.hpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/host/long_rows.hpp"
#include "partita/local/host/prefetch_distance.hpp"
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
  const row_place* places = nullptr;  // of the rows of a, if they are in another order than those of y
  local_index last = a.rows == 0 ? 0 : a.offsets[a.rows];  // entries before it may be prefetched
  local_index ahead = 0;  // entries between a prefetch of a row of x and its use

  /// Columns [begin, end) of x and y.
  operands columns(local_index begin, local_index end) const {
    operands part = *this;
    part.x = x.block(0, begin, x.rows, end - begin);
    part.y = y.block(0, begin, y.rows, end - begin);
    if (fusion.bias != nullptr) part.fusion.bias += begin;
    return part;
  }
};

/// The factor of row col(e) of x: one value for all columns, that of the entry. Entry e was entry e + shift
/// of the block that has these values.
template <class T>
struct value_of_entry {
  const T* values;

  const T* of_entry(std::ptrdiff_t e, std::ptrdiff_t shift) const { return values + e + shift; }
  static constexpr local_index of_column(std::ptrdiff_t) { return 0; }
  /// The factor of the sum of a row.
  static constexpr T of_row(local_index) { return 1; }
  value_of_entry from(local_index) const { return *this; }
  /// The factors for pieces of a row; their sum is multiplied by of_row afterwards.
  value_of_entry of_pieces(std::ptrdiff_t shift) const { return {values + shift}; }
  /// The address from which data for entry e is read.
  const void* stream(std::ptrdiff_t e) const { return values + e; }
  /// The same value for all entries.
  static value_of_entry every(const T* value) { return {value}; }
};

/// One value for each entry, `step` values after that of the previous entry. `order` maps entries to value
/// indices; null is the identity.
template <class T>
struct one_value {
  const T* values;
  const local_index* order = nullptr;
  local_index step = 1;
  const T* row_factors = nullptr;

  const T* of_entry(std::ptrdiff_t e, std::ptrdiff_t shift) const {
    return edge_values(values, order == nullptr ? e + shift : order[e], step);
  }
  static constexpr local_index of_column(std::ptrdiff_t) { return 0; }
  T of_row(local_index i) const { return row_factors == nullptr ? T(1) : row_factors[i]; }
  one_value from(local_index) const { return *this; }
  one_value of_pieces(std::ptrdiff_t shift) const {
    return {order == nullptr ? edge_values(values, shift, step) : values, order, step};
  }
  const void* stream(std::ptrdiff_t e) const {
    return order == nullptr ? static_cast<const void*>(edge_values(values, e, step)) : order + e;
  }
  static one_value every(const T* value) { return {value}; }
};

/// The factors of a block without values.
template <class T>
inline one_value<T> factors_of(const local::csr_view<T>& a) {
  static constexpr T one = 1;
  if (a.column_factors != nullptr) return {a.column_factors, a.columns, 1, a.row_factors};
  return {&one, nullptr, 0, a.row_factors};
}

/// One value for each entry and head. Column 0 is column `first` of the first head.
template <class T>
struct value_of_head {
  const T* values;
  const local_index* order;
  local_index heads, head_width, first;

  const T* of_entry(std::ptrdiff_t e, std::ptrdiff_t) const {
    return edge_values(values, order == nullptr ? e : order[e], heads);
  }
  local_index of_column(std::ptrdiff_t column) const {
    return static_cast<local_index>(first + column) / head_width;
  }
  static constexpr T of_row(local_index) { return 1; }
  value_of_head from(local_index column) const { return {values, order, heads, head_width, first + column}; }
  value_of_head of_pieces(std::ptrdiff_t) const { return *this; }
  const void* stream(std::ptrdiff_t e) const {
    return order == nullptr ? static_cast<const void*>(edge_values(values, e, heads)) : order + e;
  }
  static value_of_head every(const T* value) {
    return {value, nullptr, 1, std::numeric_limits<local_index>::max(), 0};
  }
};

/// Rows of y of more than Count / 2 and at most Count vectors. The vectors of the second half end at the last
/// column, and may overlap the others. The columns of a vector share one value. Entries are added to Sums
/// accumulators in turn, so that additions to a narrow row need not wait for each other. Packed: rows of x
/// fill the vectors and are contiguous, and rows of a are in their natural order. Returns the first long row
/// in [begin, end), which it does not compute, or end.
template <class T, int Bytes, int Count, int Sums, bool Packed>
struct strip {
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(T)), half = Count / 2;
  static constexpr int group = Count <= 4 ? 4 : 1;  // entries at a time
  using vector = typename vector_of<T, Bytes>::type;
  using place = typename vector_of<T, Bytes>::place;

  template <class X, class Values>
  local_index operator()(const operands<T, X>& p, const Values& given, local_index begin,
                         local_index end) const {
    const local::csr_view<T> a = p.a;
    const Values values = given;
    const X* const x = p.x.data;
    const local_index* const columns = a.columns;
    const std::ptrdiff_t stride = Packed ? lanes * Count : p.x.row_stride,
                         second = p.y.cols - (Count - half) * lanes;
    const bool ends = p.fusion.beta != 0 || p.fusion.bias != nullptr || p.fusion.relu;
    const local_index far_end = p.last - p.ahead, stream_end = p.last - stream;
    local_index of_vector[Count];
    for (int n = 0; n < Count; ++n) of_vector[n] = values.of_column(start(n, second));
    for (local_index i = begin; i < end; ++i) {
      std::ptrdiff_t e = a.offsets[i];
      const std::ptrdiff_t row_end = a.offsets[i + 1];
      if (is_long(row_end - e)) return i;
      const local_index* const later = columns + (row_end <= far_end ? p.ahead : 0);
      const bool few = row_end - e < 8;
      const std::ptrdiff_t next = !few && row_end <= stream_end ? stream : 0,
                           groups_end = few ? e - 1 : row_end - group;
      vector sums[Sums][Count] = {};
      const row_place here = Packed ? row_place{i, 0} : place_of(p, values, i);
      const auto add_entry = [&](std::ptrdiff_t entry, vector* to) {
        const X* const from = x + columns[entry] * stride;
        const T* const value = values.of_entry(entry, here.shift);
        for (int n = 0; n < Count; n += pace<X>) add(value[of_vector[n]], from + start(n, second), to + n);
      };
      for (; e <= groups_end; e += group) {
        __builtin_prefetch(columns + e + next);
        __builtin_prefetch(values.stream(e + next));
        for (int k = 0; k < group; ++k) prefetch_row(x + later[e + k] * stride);
        for (int k = 0; k < group; ++k) add_entry(e + k, sums[k % Sums]);
      }
      for (; e < row_end; ++e) {
        prefetch_row(x + later[e] * stride);
        add_entry(e, sums[0]);
      }
      for (int k = 1; k < Sums; ++k)
        for (int n = 0; n < Count; ++n) sums[0][n] += sums[k][n];
      for (int n = 0; pace<X> == 2 && n < Count; n += 2) interleave(sums[0] + n);
      store(sums[0], p.fusion, p.fusion.alpha * values.of_row(here.row), ends, second,
            p.y.row_data(here.row));
    }
    return end;
  }

 private:
  template <class X>
  static constexpr int pace = sizeof(X)<sizeof(T) && Count> 2 ? 2 : 1;
  static constexpr std::ptrdiff_t stream = 512;  // entries between a prefetch of entries and their use

  /// The place of row i of a; also prefetches the data of a later row.
  template <class X, class Values>
  static row_place place_of(const operands<T, X>& p, const Values& values, local_index i) {
    constexpr local_index rows_ahead = 4;
    if (p.places == nullptr) return {i, 0};
    const local_index k = std::min(i + rows_ahead, p.a.rows - 1);
    const row_place later = p.places[k];
    for (int line = 0; line < Bytes * Count; line += 64)
      __builtin_prefetch(p.y.row_data(later.row) + line / static_cast<int>(sizeof(T)), 1);
    __builtin_prefetch(values.of_entry(p.a.offsets[k], later.shift));
    return p.places[i];
  }
  template <class X>
  static void prefetch_row(const X* row) {
    for (int j = 0; j < lanes * Count; j += 64 / static_cast<int>(sizeof(X))) __builtin_prefetch(row + j);
  }
  /// Where vector n of a row begins, if the second half begins at `second`.
  static std::ptrdiff_t start(int n, std::ptrdiff_t second) {
    return n < half ? std::ptrdiff_t{n} * lanes : second + (n - half) * lanes;
  }
  /// sums[n] += factor x, for the `pace` vectors that begin at x. For bfloat16 these are two, with sums of
  /// even and of odd columns: widening a vector then takes two instructions instead of five.
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
  /// Turns the sums of even and of odd columns into the first and the second vector.
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
  /// Stores a row of y from its sum, with `scale` for fusion.alpha. `ends`: the rest of the epilogue follows.
  static void store(vector (&sum)[Count], const local::spmm_epilogue<T>& fusion, T scale, bool ends,
                    std::ptrdiff_t second, T* y) {
    if (scale != 1)
      for (vector& s : sum) s *= scale;
    if (ends) finish(sum, fusion, second, y);
    for (int n = 0; n < Count; ++n) at(y, n, second).value = sum[n];
  }
  static void finish(vector (&sum)[Count], const local::spmm_epilogue<T>& fusion, std::ptrdiff_t second,
                     const T* y) {
    if (fusion.beta != 0)
      for (int n = 0; n < Count; ++n) sum[n] += fusion.beta * at(y, n, second).value;
    if (fusion.bias != nullptr)
      for (int n = 0; n < Count; ++n) sum[n] += at(fusion.bias, n, second).value;
    if (fusion.relu)
      for (vector& s : sum) s = s > vector{} ? s : vector{};
  }
};

template <class T, class X, class Values>
using kernel = local_index (*)(const operands<T, X>&, const Values&, local_index, local_index);

template <instruction_set I, class T, class X, class Values, class Strip>
inline local_index compiled(const operands<T, X>& p, const Values& values, local_index begin,
                            local_index end) {
  return run_with<I>(Strip(), p, values, begin, end);
}

/// Whether columns may have different values.
template <class T, class Values>
inline constexpr bool by_head = std::is_same_v<Values, value_of_head<T>>;

/// The bytes of the shortest vectors: one column, or the fewest columns that share a head's value.
template <class T, class Values>
inline constexpr int shortest = by_head<T, Values> ? 16 : static_cast<int>(sizeof(T));

/// The kernel for `cols` columns, which fill at least one vector of Bytes and at most Most. `packed`: rows of
/// x have no gaps, and rows of a are in their natural order.
template <instruction_set I, class T, class X, class Values, int Bytes, int Most,
          int Sums = Most == 1 ? 4 : 1>
inline kernel<T, X, Values> kernel_of(local_index cols, bool packed) {
  if constexpr (Most > 1)
    if (cols * static_cast<int>(sizeof(T)) <= Most / 2 * Bytes)
      return kernel_of<I, T, X, Values, Bytes, Most / 2>(cols, packed);
  if constexpr (sizeof(X) < sizeof(T) && Most <= 2 && Bytes > 16)
    return kernel_of<I, T, X, Values, Bytes / 2, Most * 2, Sums>(cols, packed);
  if constexpr (sizeof(X) == sizeof(T) && Most <= (Bytes < register_bytes(I) ? 1 : 2) && Bytes > 16 &&
                !by_head<T, Values>)
    if (packed && cols * static_cast<int>(sizeof(T)) == Most * Bytes)
      return compiled<I, T, X, Values, strip<T, Bytes, Most, Sums, true>>;
  return compiled<I, T, X, Values, strip<T, Bytes, Most, Sums, false>>;
}

/// Row i of y from the sum of its pieces, times `factor`, as a product with one entry.
template <class T, class X, class F>
inline void finish_row(const operands<T, X>& p, const T* total, local_index i, T factor, const F& multiply) {
  constexpr local_index offsets[] = {0, 1}, column = 0;
  const T one = 1;
  local::spmm_epilogue<T> fusion = p.fusion;
  fusion.alpha *= factor;
  multiply(operands<T>{{1, 1, offsets, &column, nullptr},
                       {total, 1, p.y.cols},
                       fusion,
                       {p.y.row_data(i), 1, p.y.cols, p.y.row_stride}},
           &one);
}

/// Rows [begin, end) of y; `run` computes all but the long ones. `of_total` is the kernel for x stored as T.
template <class T, class X, class Values>
inline void sum_rows(kernel<T, X, Values> run, kernel<T, T, Values> of_total, const operands<T, X>& p,
                     const Values& values, local_index begin, local_index end) {
  constexpr int most = 1024 / sizeof(T);
  for (local_index i = begin; (i = run(p, values, i, end)) < end; ++i) {
    T total[most] = {}, part[most];
    const matrix_view<T> to{part, 1, p.y.cols};
    const row_pieces pieces(p.a.offsets[i], p.a.offsets[i + 1]);
    const row_place here = p.places == nullptr ? row_place{i, 0} : p.places[i];
    for (int k = 0; k < pieces.count; ++k) {
      const local_index offsets[] = {pieces.begin(k), pieces.begin(k + 1)};
      const local::csr_view<T> piece{1, p.a.cols, offsets, p.a.columns, p.a.values};
      sum_rows(run, of_total, {piece, p.x, {}, to, nullptr, p.last, p.ahead}, values.of_pieces(here.shift), 0,
               1);
      for (local_index j = 0; j < p.y.cols; ++j) total[j] += part[j];
    }
    finish_row(p, total, here.row, values.of_row(here.row),
               [&](const operands<T>& last, const T* one) { of_total(last, Values::every(one), 0, 1); });
  }
}

/// Rows [begin, end) of y, in vectors of Bytes, or in shorter ones if a row does not fill these or if they
/// would span columns with different values. Every `shared` columns, a power of two that divides the number
/// of columns, have the same value; 0 if all have.
template <instruction_set I, class T, class X, class Values, int Bytes = register_bytes(I)>
inline void multiply_rows(const operands<T, X>& p, const Values& values, local_index shared,
                          local_index begin, local_index end) {
  constexpr local_index lanes = Bytes / sizeof(T);
  if constexpr (Bytes > shortest<T, Values>)
    if (p.y.cols < lanes || shared % lanes != 0)
      return multiply_rows<I, T, X, Values, Bytes / 2>(p, values, shared, begin, end);
  constexpr int most = Bytes == sizeof(T)                                 ? 1
                       : Bytes < register_bytes(I) && !by_head<T, Values> ? 2
                                                                          : kept_registers(I);
  const local_index vectors = (p.y.cols + lanes - 1) / lanes, strips = (vectors + most - 1) / most;
  if (strips == 0) return;
  const bool packed = p.x.row_stride == p.y.cols && strips == 1 && p.places == nullptr;
  const auto begin_of = [&](local_index s) {
    return static_cast<local_index>(global_index{vectors} * s / strips) * lanes;
  };
  const auto rows = [&](local_index ahead, local_index from, local_index to) {
    for (local_index i = from; i < to; i += strips == 1 ? to - from : row_block)
      for (local_index s = 0; s < strips; ++s) {
        const local_index first = begin_of(s), last = std::min(begin_of(s + 1), p.y.cols);
        operands<T, X> part = p.columns(first, last);
        part.ahead = ahead;
        sum_rows(kernel_of<I, T, X, Values, Bytes, most>(last - first, packed),
                 kernel_of<I, T, T, Values, Bytes, most>(last - first, false), part, values.from(first), i,
                 strips == 1 ? to : std::min(i + row_block, to));
      }
  };
  with_prefetch_distance(static_cast<std::size_t>((p.y.cols + strips - 1) / strips) * sizeof(X),
                         p.a.nonzeros(), p.a.offsets, p.x.rows, begin, end, rows);
}

/// Row i of y from the sum of its pieces, which several threads computed.
template <instruction_set I, class Values, class T, class X>
inline void finish_shared_row(const operands<T, X>& p, const Values& values, const T* total, local_index i) {
  finish_row(p, total, i, values.of_row(i), [](const operands<T>& last, const T* one) {
    multiply_rows<I>(last, Values::every(one), 0, 0, 1);
  });
}

}  // namespace strip_detail

}  // namespace partita::on_host
