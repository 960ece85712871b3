// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse-dense product. A row of y is accumulated in vector registers over the entries of the row, all of
/// its columns in one pass, as far as registers go; rows of x are prefetched some entries ahead, since the
/// product is bound by memory access to x.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "partita/local/fusion.hpp"
#include "partita/local/host/edge_parts.hpp"
#include "partita/local/host/instructions.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace spmm_detail {

template <class T>
struct product {
  local::csr_view<T> a;
  matrix_view<const T> x;
  local::spmm_epilogue<T> fusion;
  matrix_view<T> y;

  /// Columns [begin, end) of x and y.
  product columns(local_index begin, local_index end) const {
    product part = *this;
    part.x = x.block(0, begin, x.rows, end - begin);
    part.y = y.block(0, begin, y.rows, end - begin);
    if (fusion.bias != nullptr) part.fusion.bias += begin;
    return part;
  }
};

/// Rows of y of more than Count / 2 and at most Count vectors. Those of the second half end with the last
/// column, and may overlap the others.
template <class T, int Bytes, int Count>
struct strip {
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(T));
  static constexpr local_index ahead = Bytes * Count <= 512 ? 32 : 16;
  using vector = typename vector_of<T, Bytes>::type;

  void operator()(const product<T>& p, local_index begin, local_index end) const {
    const local::csr_view<T> a = p.a;
    const T* const x = p.x.data;
    const std::ptrdiff_t stride = p.x.row_stride, second = p.y.cols - (Count - half) * lanes;
    const local_index last = a.offsets[a.rows] - 1;
    for (local_index i = begin; i < end; ++i) {
      vector sum[Count] = {};
      const local_index row_end = a.offsets[i + 1];
      for (local_index e = a.offsets[i]; e < row_end; ++e) {
        const T* const later = x + a.columns[e < last - ahead ? e + ahead : last] * stride;
        for (int line = 0; line < Bytes * Count; line += 64)
          __builtin_prefetch(later + line / static_cast<int>(sizeof(T)));
        const T* const from = x + a.columns[e] * stride;
        const T value = a.values[e];
        for (int n = 0; n < Count; ++n) sum[n] += value * at(from, n, second);
      }
      store(sum, p.fusion, second, p.y.row_data(i));
    }
  }

 private:
  static constexpr int half = Count / 2;

  /// Vector n of a row, whose second half begins `second` behind it.
  static const vector& at(const T* row, int n, std::ptrdiff_t second) {
    return *reinterpret_cast<const vector*>(n < half ? row + n * lanes : row + second + (n - half) * lanes);
  }
  static vector& at(T* row, int n, std::ptrdiff_t second) {
    return *reinterpret_cast<vector*>(n < half ? row + n * lanes : row + second + (n - half) * lanes);
  }
  static void store(vector (&sum)[Count], const local::spmm_epilogue<T>& fusion, std::ptrdiff_t second,
                    T* y) {
    if (fusion.alpha != 1)
      for (vector& s : sum) s *= fusion.alpha;
    if (fusion.beta != 0)
      for (int n = 0; n < Count; ++n) sum[n] += fusion.beta * at(y, n, second);
    if (fusion.bias != nullptr)
      for (int n = 0; n < Count; ++n) sum[n] += at(fusion.bias, n, second);
    if (fusion.relu)
      for (vector& s : sum) s = s > vector{} ? s : vector{};
    for (int n = 0; n < Count; ++n) at(y, n, second) = sum[n];
  }
};

template <class T>
using kernel = void (*)(const product<T>&, local_index, local_index);

/// The kernel of `cols` columns, which Most vectors of Bytes hold and one fills.
template <instruction_set I, class T, int Bytes, int Most>
inline kernel<T> kernel_of(local_index cols) {
  if constexpr (Most > 1 && (Most > 2 || Bytes == register_bytes(I)))
    if (cols * sizeof(T) <= Most / 2 * Bytes) return kernel_of<I, T, Bytes, Most / 2>(cols);
  return [](const product<T>& p, local_index begin, local_index end) {
    run_with<I>(strip<T, Bytes, Most>(), p, begin, end);
  };
}

/// The kernel of `cols` columns, at most kept_registers(I) vectors.
template <instruction_set I, class T, int Bytes = register_bytes(I)>
inline kernel<T> kernel_of(local_index cols) {
  if constexpr (Bytes > sizeof(T))
    if (cols * sizeof(T) < Bytes) return kernel_of<I, T, Bytes / 2>(cols);
  return kernel_of < I, T, Bytes, Bytes == register_bytes(I) ? kept_registers(I) : 2 > (cols);
}

/// Rows [begin, end) of y.
template <instruction_set I, class T>
inline void multiply_rows(const product<T>& p, local_index begin, local_index end) {
  constexpr local_index lanes = register_bytes(I) / sizeof(T), widest = kept_registers(I) * lanes,
                        row_block = 16;
  if (p.y.cols <= widest) return kernel_of<I, T>(p.y.cols)(p, begin, end);
  const local_index vectors = (p.y.cols + lanes - 1) / lanes, strips = (p.y.cols + widest - 1) / widest;
  for (local_index i = begin; i < end; i += row_block)
    for (local_index s = 0; s < strips; ++s) {
      const product<T> part =
          p.columns(vectors * s / strips * lanes, std::min(vectors * (s + 1) / strips * lanes, p.y.cols));
      kernel_of<I, T>(part.y.cols)(part, i, std::min(i + row_block, end));
    }
}

template <class T>
inline void multiply(const char* name, const device_queue<host>& q, const local::csr_view<T>& a,
                     const matrix_view<const T>& x, const local::spmm_epilogue<T>& fusion,
                     const matrix_view<T>& y) {
  local::require_product(name, a, x, y, "a x");
  if (y.cols == 0) return;
  const product<T> p{a, x, fusion, y};
  with_instructions([&](auto instructions) {
    run_entry_rows(q.threads(), a, y.cols,
                   [&](local_index begin, local_index end) { multiply_rows<instructions>(p, begin, end); });
  });
}

}  // namespace spmm_detail

/// y = a x + beta y; beta = 0 overwrites y. a is (m, k) with values, x is (k, f), y is (m, f) and must not
/// alias x. Throws shape_error if the shapes do not match.
template <class T>
inline void spmm(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                 local::scalar<T> beta, matrix_view<T> y) {
  spmm_detail::multiply<T>("spmm", q, a, x, {.beta = beta}, y);
}

/// Product with fused epilogue, as defined by spmm_epilogue. a is (m, k) with values, x is (k, f), y is (m,
/// f) and must not alias x. Throws shape_error if the shapes do not match.
template <class T>
inline void spmm_fused(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                       std::type_identity_t<local::spmm_epilogue<T>> fusion, matrix_view<T> y) {
  spmm_detail::multiply<T>("spmm_fused", q, a, x, fusion, y);
}

}  // namespace partita::on_host
