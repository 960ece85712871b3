// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse-dense product.

#include <type_traits>

#include "partita/local/fusion.hpp"
#include "partita/local/host/row_strips.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace spmm_detail {

template <class T>
inline void multiply(const char* name, const device_queue<host>& q, const local::csr_view<T>& a,
                     const matrix_view<const T>& x, const local::spmm_epilogue<T>& fusion,
                     const matrix_view<T>& y) {
  local::require_product(name, a, x, y, "a x");
  const strip_detail::value_of_entry<T> values{a.values};
  with_instructions([&](auto instructions) {
    const auto sum = [&](const local::csr_view<T>& rows, const matrix_view<T>& to, bool whole,
                         local_index begin, local_index end) {
      strip_detail::multiply_rows<instructions>(
          strip_detail::operands<T>{rows, x, whole ? fusion : local::spmm_epilogue<T>{}, to}, values, 0,
          begin, end);
    };
    run_row_sums(q.threads(), a, y, sum, [&](local_index row, const T* total) {
      strip_detail::finish_shared_row<instructions, strip_detail::value_of_entry<T>>({a, x, fusion, y}, total,
                                                                                     row);
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
