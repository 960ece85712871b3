// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Sparse-dense product.

#include <atomic>
#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/base/error.hpp"
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

/// The kernels of an instruction set.
template <class T, class X, class Values>
struct row_kernels {
  template <instruction_set I>
  static constexpr row_kernels of(std::integral_constant<instruction_set, I>) {
    return {strip_detail::multiply_rows<I, T, X, Values>, strip_detail::finish_shared_row<I, Values, T, X>,
            run_with<I, elementwise_detail::dropped_rows<T>, local_index, local_index>};
  }

  void (*multiply)(const strip_detail::operands<T, X>&, const Values&, local_index, local_index, local_index);
  void (*finish)(const strip_detail::operands<T, X>&, const Values&, const T*, local_index);
  void (*drop)(const elementwise_detail::dropped_rows<T>&, local_index, local_index);
};

template <class T, class X, class Values>
inline void multiply_by(const device_queue<host>& q, const strip_detail::operands<T, X>& p,
                        const Values& values) {
  const auto kernels = with_instructions([](auto i) { return row_kernels<T, X, Values>::of(i); });
  const elementwise_detail::dropped_rows<T> dropped{p.fusion.drop, p.y, p.places};
  const auto whole_rows = [&](local_index begin, local_index end) {
    const local_index step = p.fusion.drop.drops() ? rows_in_cache : end - begin;
    for (local_index i = begin; i < end; i += step) {
      const local_index last = end - i < step ? end : i + step;
      kernels.multiply(p, values, 0, i, last);
      if (p.fusion.drop.drops()) kernels.drop(dropped, i, last);
    }
  };
  if (p.places != nullptr) return run_entry_rows(q.threads(), p.a, p.y.cols, whole_rows);
  const auto sum = [&](const local::csr_view<T>& rows, const matrix_view<T>& to, bool whole,
                       local_index begin, local_index end) {
    if (whole) return whole_rows(begin, end);
    kernels.multiply({rows, p.x, {}, to}, values.of_pieces(0), 0, begin, end);
  };
  run_row_sums<T>(q.threads(), p.a, p.y, sum, [&](local_index row, const T* total) {
    kernels.finish(p, values, total, row);
    if (p.fusion.drop.drops()) kernels.drop(dropped, row, row + 1);
  });
}

/// The product with a block without values: null until multiply_factors has been called.
template <class T>
inline std::atomic<void (*)(const device_queue<host>&, const strip_detail::operands<T>&)> by_factors =
    nullptr;

template <class T, class X>
inline void multiply(const char* name, const device_queue<host>& q, const local::csr_view<T>& a,
                     const matrix_view<const X>& x, const local::spmm_epilogue<T>& fusion,
                     const matrix_view<T>& y, const row_place* places = nullptr) {
  memory::refuse_reproducible(q, name);
  local::require_product(name, a, x, y, "a x");
  const strip_detail::operands<T, X> p{a, x, fusion, y, places};
  if (a.values != nullptr || a.nonzeros() == 0)
    return multiply_by(q, p, strip_detail::value_of_entry<T>{a.values});
  if constexpr (std::is_same_v<X, T>) {
    if (const auto product = by_factors<T>.load(std::memory_order_relaxed)) return product(q, p);
    base::throw_error<error>({name, ": a block without values needs a call of multiply_factors before"});
  } else {
    multiply_by(q, p, strip_detail::factors_of(a));
  }
}

}  // namespace spmm_detail

/// Lets spmm and spmm_fused, on any queue from now on, multiply blocks of T without values. Programs that do
/// not call it do not compile such products.
template <class T>
void multiply_factors(const device_queue<host>&, T) {
  spmm_detail::by_factors<T>.store(
      [](const device_queue<host>& q, const strip_detail::operands<T>& p) {
        spmm_detail::multiply_by(q, p, strip_detail::factors_of(p.a));
      },
      std::memory_order_relaxed);
}

/// y = a x + beta y; beta = 0 overwrites y. a is (m, k), x is (k, f), y is (m, f) and must not alias x.
/// Throws shape_error if the shapes do not match.
template <class T>
inline void spmm(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                 local::scalar<T> beta, matrix_view<T> y) {
  spmm_detail::multiply("spmm", q, a, x, local::spmm_epilogue<T>{.beta = beta}, y);
}

/// Product with fused epilogue, as defined by spmm_epilogue. a is (m, k), x is (k, f), y is (m, f) and must
/// not alias x. Throws shape_error if the shapes do not match.
template <class T>
inline void spmm_fused(const device_queue<host>& q, local::input_csr<T> a, local::input_view<T> x,
                       std::type_identity_t<local::spmm_epilogue<T>> fusion, matrix_view<T> y) {
  spmm_detail::multiply("spmm_fused", q, a, x, fusion, y);
}

/// The same for x stored as bfloat16: with the bits of spmm_fused for the floats that these are. a is (m, k),
/// x is (k, f), y is (m, f). Throws shape_error if the shapes do not match.
template <std::same_as<float> T>
inline void spmm_fused(const device_queue<host>& q, local::input_csr<T> a,
                       matrix_view<const base::bfloat16> x,
                       std::type_identity_t<local::spmm_epilogue<T>> fusion, matrix_view<T> y) {
  spmm_detail::multiply("spmm_fused", q, a, x, fusion, y);
}

}  // namespace partita::on_host
