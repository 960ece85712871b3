// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The Gram matrix of a matrix's columns.

#include "partita/algebra/gemm.hpp"

namespace partita {

namespace algebra::detail {

/// x(i, j) on and above the diagonal, x(j, i) below it.
template <class T>
struct mirrored_upper {
  matrix_view<const T> x;

  constexpr T operator()(local_index i, local_index j, T here) const { return j < i ? x(j, i) : here; }
};

}  // namespace algebra::detail

/// G = X^T X (f x f) of X (n x f), on every rank; symmetric bit for bit.
///
/// Collective over the mesh. What travels: X is redistributed to full-width rows if its columns are
/// partitioned; then one all-reduce of f^2 elements over the ranks that own different rows.
template <class T, layout L, class Device>
dense<T, replicated, Device> gram(const dense<T, L, Device>& x,
                                  std::source_location where = std::source_location::current()) {
  const comm::call_site scope(where);
  if (!x.layout().cols.empty()) return gram(redistribute(x, partition::full_width(x.layout())), where);
  const matrix_shape square{x.shape().cols, x.shape().cols};
  dense<T, replicated, Device> sum(x.mesh(), square), result(x.mesh(), square);  // (f, f)
  gemm(T(1), transposed(x), x, T(0), sum, {partition::gemm_schedule{{}, {}, x.layout().used()}});
  transform_indexed(x.mesh().queue(), algebra::detail::mirrored_upper<T>{sum.local()}, sum.local(),
                    result.local());
  return result;
}

}  // namespace partita
