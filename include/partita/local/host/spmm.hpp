// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse-dense product.

#include <type_traits>

#include "partita/local/fusion.hpp"
#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/row_strips.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace spmm_detail {

/// Entries of so many rows are dropped when the rows have been computed.
inline constexpr local_index rows_in_cache = 64;

template <class T>
inline void multiply(const char* name, const device_queue<host>& q, const local::csr_view<T>& a,
                     const matrix_view<const T>& x, const local::spmm_epilogue<T>& fusion,
                     const matrix_view<T>& y) {
  local::require_product(name, a, x, y, "a x");
  const strip_detail::value_of_entry<T> values{a.values};
  with_instructions([&](auto instructions) {
    const elementwise_detail::dropped_rows<T> drop{fusion.drop, y};
    const auto sum = [&](const local::csr_view<T>& rows, const matrix_view<T>& to, bool whole,
                         local_index begin, local_index end) {
      const bool drops = whole && fusion.drop.drops();
      const strip_detail::operands<T> p{rows, x, whole ? fusion : local::spmm_epilogue<T>{}, to};
      const local_index step = drops ? rows_in_cache : end - begin;
      for (local_index i = begin; i < end; i += step) {
        const local_index last = end - i < step ? end : i + step;
        strip_detail::multiply_rows<instructions>(p, values, 0, i, last);
        if (drops) run_with<instructions>(drop, i, last);
      }
    };
    run_row_sums(q.threads(), a, y, sum, [&](local_index row, const T* total) {
      strip_detail::finish_shared_row<instructions, strip_detail::value_of_entry<T>>({a, x, fusion, y}, total,
                                                                                     row);
      if (fusion.drop.drops()) run_with<instructions>(drop, row, row + 1);
    });
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
