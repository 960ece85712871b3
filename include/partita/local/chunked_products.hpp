// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Products with a sparse block as passes over its entries (see pass.hpp). `passes` and `number` as in
/// entry_passes; `later_part`: whether the same X has been multiplied by a part of the block before.

#include <cstddef>
#include <type_traits>

#include "partita/base/error.hpp"
#include "partita/base/function_reference.hpp"
#include "partita/local/fusion.hpp"
#include "partita/local/host/spmm_transposed.hpp"
#include "partita/local/host/tuned_spmm.hpp"
#include "partita/local/pass.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/device.hpp"

namespace partita::local::chunked {

namespace detail {

/// A chunk of a, with values.
template <class T>
csr_view<T> with_values(csr_view<T> chunk, const csr_view<T>& a, const T* values) {
  if (a.row_factors != nullptr || a.column_factors != nullptr || (a.values == nullptr && a.entries > 0))
    throw error("far memory: a sparse block without values was distributed before use_far");
  chunk.values = values;
  return chunk;
}

}  // namespace detail

/// y = the epilogue of a x: by whole(), unless it passes in chunks. A row of y whose entries fit into one
/// chunk has the value that the kernel spmm_fused gives it, bit for bit; the others are summed chunk by
/// chunk. X: what x is stored as, T or base::bfloat16.
template <class T, class Device, class X>
void spmm_fused(const device_queue<Device>& q, entry_passes<Device>& passes, std::size_t number,
                const csr_view<T>& a, matrix_view<X> x, const std::type_identity_t<spmm_epilogue<T>>& fusion,
                matrix_view<T> y, base::function_reference<void()> whole, bool later_part = false) {
  require_product("spmm", a, x, y, "a x");
  passes(
      q, number, a, {.later_part = later_part, .what = "product", .width = y.cols},
      [&](const edge_chunk<T>& c, const T* values, auto of_columns, matrix_view<T> to) {
        if (c.is_whole) return whole();
        spmm_epilogue<T> end = c.splits_last_row ? fusion.without_activation() : fusion.from_row(c.first_row);
        end.beta = c.beta_of_rows(fusion.beta);
        spmm_fused(q, detail::with_values(c.pattern, a, values), of_columns, end, to);
      },
      reads_entries(a.values, 1), gathers(x), result(y, fusion.beta));
}

/// y = the epilogue of a x.
template <class T, class Device, class X>
void spmm_fused(const device_queue<Device>& q, entry_passes<Device>& passes, std::size_t number,
                const csr_view<T>& a, matrix_view<X> x, const std::type_identity_t<spmm_epilogue<T>>& fusion,
                matrix_view<T> y) {
  spmm_fused(q, passes, number, a, x, fusion, y, [&] { spmm_fused(q, a, x, fusion, y); });
}

/// y = a x + beta y.
template <class T, class Device>
void spmm(const device_queue<Device>& q, entry_passes<Device>& passes, std::size_t number,
          const csr_view<T>& a, input_view<T> x, scalar<T> beta, matrix_view<T> y, bool later_part = false) {
  const spmm_epilogue<T> fusion{.beta = beta};
  spmm_fused(
      q, passes, number, a, x, fusion, y, [&] { spmm(q, a, x, beta, y); }, later_part);
}

/// y = alpha a^T x + beta y. Where y passes in chunks, their partial sums are added to it, in their
/// order; else bit for bit what the kernel spmm_transposed of one thread computes. X: as above.
template <class T, class Device, class X>
void spmm_transposed(const device_queue<Device>& q, entry_passes<Device>& passes, std::size_t number,
                     const csr_view<T>& a, matrix_view<X> x, scalar<T> alpha, scalar<T> beta,
                     matrix_view<T> y, bool later_part = false) {
  require_product("spmm_transposed", matrix_shape{a.cols, a.rows}, x, y, "a^T x");
  passes(
      q, number, a, {.later_part = later_part, .what = "transposed product", .width = y.cols},
      [&](const edge_chunk<T>& c, const T* values, auto of_rows, matrix_view<T> to) {
        spmm_transposed(q, c.is_whole ? a : detail::with_values(c.pattern, a, values), of_rows, alpha,
                        c.beta_of_columns(beta), to);
      },
      reads_entries(a.values, 1), reads(x), adds(y, beta));
}

}  // namespace partita::local::chunked
