// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse-dense product. Each thread accumulates 16 bytes of columns of x, four of float and eight of
/// bfloat16, in registers over a share of entries; neighbouring threads handle neighbouring columns of the
/// same share, so that loads of rows of x are coalesced. Where x is larger than the cache and some of its
/// columns are not, these are multiplied by themselves, one pass after the other. Columns whose rows are not
/// a whole number of 16 bytes, do not begin there, or are a part of rows that end within cache lines are
/// copied to scratch memory without these faults, if they are read often enough to be worth it.

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/local/cuda/assign.hpp"
#include "partita/local/cuda/column_passes.hpp"
#include "partita/local/cuda/row_product.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

namespace spmm_detail {

/// Whether a copy of x with padded rows is worth its pass over x: where its rows, as they are, are loaded by
/// less than the 16 bytes that as many numbers of y have, or are a part of rows that end within cache lines,
/// and so lie in one line more than they fill. It is no option where memory is bounded: it would take what
/// the products' operands need.
template <class T, class X>
bool pads(const device_queue<cuda_device>& q, const local::csr_view<T>& a, const matrix_view<const X>& x,
          bool is_part = false) {
  constexpr std::int64_t entries_of_row = 2, line = 128 / sizeof(X);
  const bool fits =
      x.cols % widest<T> == 0 && aligned(x, widest<T>) && (!is_part || x.row_stride % line == 0);
  return x.cols > widest<T> && !fits && a.entries >= entries_of_row * x.rows &&
         q.meter()->limit() == std::numeric_limits<std::size_t>::max() && !q.owner()->far();
}

template <class T, class X>
void pass(const device_queue<cuda_device>& q, const local::csr_view<T>& a, const matrix_view<const X>& x,
          bool is_part, const local::spmm_epilogue<T>& fusion, const matrix_view<T>& y) {
  if ((skew(a.values, 4) - skew(a.columns, 4)) % widest<T> != 0)
    return sum_rows(q, rows_of(a), a.columns, single_values<T>{a.values}, x, fusion, y);
  const stored_values<T> values{a.values};
  if (!pads(q, a, x, is_part)) return sum_rows(q, rows_of(a), a.columns, values, x, fusion, y);
  const local_index cols = padded_width<X>(x.cols);
  const auto copy = padded_rows(q, x, scratch<X>(q, static_cast<std::size_t>(std::int64_t{x.rows} * cols)));
  if (cols == x.cols && aligned(y, widest<T>))
    return sum_rows(q, rows_of(a), a.columns, values, copy, fusion, y);
  fold_product(
      q, rows_of(a), cols / widest<X>,
      row_product<T, widest<X>, stored_values<T>, true, X>{{a.columns}, values, table_of(copy), fusion, y});
}

template <class T, class X>
void multiply(const char* name, const device_queue<cuda_device>& q, const local::csr_view<T>& a,
              const matrix_view<const X>& x, const local::spmm_epilogue<T>& fusion, const matrix_view<T>& y) {
  local::require_product(name, a, x, y, "a x");
  for_columns(q, x, [&](local_index first, local_index count) {
    pass(q, a, x.block(0, first, x.rows, count), count < x.cols, fusion.from_column(first),
         y.block(0, first, y.rows, count));
  });
}

}  // namespace spmm_detail

/// As on_host::spmm.
template <class T>
void spmm(const device_queue<cuda_device>& q, local::input_csr<T> a, local::input_view<T> x,
          local::scalar<T> beta, matrix_view<T> y) {
  spmm_detail::multiply<T, T>("spmm", q, a, x, local::spmm_epilogue<T>{.beta = beta}, y);
}

/// As on_host::spmm_fused.
template <class T>
void spmm_fused(const device_queue<cuda_device>& q, local::input_csr<T> a, local::input_view<T> x,
                std::type_identity_t<local::spmm_epilogue<T>> fusion, matrix_view<T> y) {
  spmm_detail::multiply<T, T>("spmm_fused", q, a, x, fusion, y);
}
/// As on_host::spmm_fused for x stored as bfloat16.
template <std::same_as<float> T>
void spmm_fused(const device_queue<cuda_device>& q, local::input_csr<T> a,
                matrix_view<const base::bfloat16> x, std::type_identity_t<local::spmm_epilogue<T>> fusion,
                matrix_view<T> y) {
  spmm_detail::multiply("spmm_fused", q, a, x, fusion, y);
}

}  // namespace partita::on_cuda
