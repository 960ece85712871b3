// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse-dense product. Each thread accumulates 16 bytes of columns in registers over a share of entries;
/// neighbouring threads handle neighbouring columns of the same share, so that loads of rows of x are
/// coalesced. Where x is larger than the cache and some of its columns are not, these are multiplied by
/// themselves, one pass after the other. Columns whose rows are not a whole number of 16 bytes, or do not
/// begin there, are copied to scratch memory where they do, if they are read often enough to be worth it.

#include <cstdint>
#include <limits>
#include <type_traits>

#include "partita/local/cuda/assign.hpp"
#include "partita/local/cuda/column_passes.hpp"
#include "partita/local/cuda/row_product.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"

namespace partita::on_cuda {

namespace spmm_detail {

/// Whether a copy of x with padded rows is worth its pass over x. It is no option where memory is bounded: it
/// would take what the products' operands need.
template <class T>
bool pads(const device_queue<cuda_device>& q, const local::csr_view<T>& a, const matrix_view<const T>& x) {
  constexpr std::int64_t entries_of_row = 2;
  const bool fits = x.cols % widest<T> == 0 && aligned(x, widest<T>);
  return x.cols > widest<T> && !fits && a.entries >= entries_of_row * x.rows &&
         q.meter()->limit() == std::numeric_limits<std::size_t>::max() && !q.owner()->far();
}

template <class T>
void pass(const device_queue<cuda_device>& q, const local::csr_view<T>& a, const matrix_view<const T>& x,
          const local::spmm_epilogue<T>& fusion, const matrix_view<T>& y) {
  using weights = stored_values<T>;
  const weights values{a.values, (skew(a.values, 4) - skew(a.columns, 4)) % widest<T> == 0};
  if (pads(q, a, x)) {
    const auto packs = static_cast<local_index>(quotient_up(x.cols, widest<T>));
    const local_index cols = packs * widest<T>;
    const std::int64_t area = std::int64_t{x.rows} * cols;
    const matrix_view<T> wide{scratch<T>(q, static_cast<std::size_t>(area)), x.rows, cols, cols};
    on_cuda::launch_warps(q, x.rows, pad_row<T>{x, wide});
    const row_table<T> table = table_of(matrix_view<const T>(wide));
    return fold_rows(q, rows_of(a), packs, skew(a.columns, 4),
                     row_product<T, widest<T>, weights, true>{a.columns, values, table, fusion, y});
  }
  with_width<widest<T>>(
      y.cols,
      [&]<int pack_width>(std::integral_constant<int, pack_width>) {
        fold_rows(q, rows_of(a), y.cols / pack_width, skew(a.columns, 4),
                  row_product<T, pack_width, weights>{a.columns, values, table_of(x), fusion, y});
      },
      x, y);
}

template <class T>
void multiply(const char* name, const device_queue<cuda_device>& q, const local::csr_view<T>& a,
              const matrix_view<const T>& x, const local::spmm_epilogue<T>& fusion, const matrix_view<T>& y) {
  local::require_product(name, a, x, y, "a x");
  for_columns(q, x, [&](local_index first, local_index count) {
    pass(q, a, x.block(0, first, x.rows, count), fusion.from_column(first), y.block(0, first, y.rows, count));
  });
}

}  // namespace spmm_detail

/// As on_host::spmm.
template <class T>
void spmm(const device_queue<cuda_device>& q, local::input_csr<T> a, local::input_view<T> x,
          local::scalar<T> beta, matrix_view<T> y) {
  spmm_detail::multiply("spmm", q, a, x, local::spmm_epilogue<T>{.beta = beta}, y);
}

/// As on_host::spmm_fused.
template <class T>
void spmm_fused(const device_queue<cuda_device>& q, local::input_csr<T> a, local::input_view<T> x,
                std::type_identity_t<local::spmm_epilogue<T>> fusion, matrix_view<T> y) {
  spmm_detail::multiply("spmm_fused", q, a, x, fusion, y);
}

}  // namespace partita::on_cuda
