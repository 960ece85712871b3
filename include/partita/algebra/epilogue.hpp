// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What follows a product, in the pass that multiplies or in one pass after it.

#include "partita/algebra/dropout.hpp"
#include "partita/local/chunked.hpp"
#include "partita/local/fusion.hpp"

namespace partita {

/// The epilogue of a product: y = drop(clamp(product + beta y + bias)), clamp(z) = max(z, 0) if relu is set,
/// else z; no bias if null (1 x f_out).
template <class T, class Device>
struct epilogue {
  T beta = 0;
  const dense<T, replicated, Device>* bias = nullptr;
  bool relu = false;
  dropout_mask drop = {};
};

namespace algebra::detail {

/// The epilogue on this rank's block of Y, with the product times alpha. Throws shape_error for a bias of
/// another width.
template <class T, layout L, class Device>
local::spmm_epilogue<T> epilogue_of_block(T alpha, const epilogue<T, Device>& e,
                                          const dense<T, L, Device>& y) {
  local::spmm_epilogue<T> block{.alpha = alpha, .beta = e.beta, .relu = e.relu};
  if (e.bias != nullptr) {
    if (e.bias->shape() != matrix_shape{1, y.shape().cols})
      base::throw_error<shape_error>(
          {"a row of ", e.bias->shape(), " cannot be added to every row of ", y.shape()});
    block.bias = e.bias->local().data + y.col_range().begin;
  }
  if (e.drop.probability > 0)
    block.drop = {e.drop.template function<T>(), y.row_range().begin, y.col_range().begin};
  return block;
}

/// y = the epilogue of sums, which may be y if beta is 0, in one pass.
template <class T, class Device>
void finish(const device_queue<Device>& q, local::input_view<T> sums, const local::spmm_epilogue<T>& e,
            matrix_view<T> y) {
  local::by_rows(
      q, "rows: finish",
      [&](local_index first, matrix_view<const T> from, matrix_view<T> to) {
        finish_rows(q, from, e.from_row(first), to);
      },
      local::reads(sums), e.beta == 0 ? local::writes(y) : local::updates(y));
}

}  // namespace algebra::detail

namespace algebra {

/// y = drop(clamp(y + bias)), in one pass. Local; no communication. Throws shape_error.
template <class T, layout L, class Device>
void finish(dense<T, L, Device>& y, std::type_identity_t<epilogue<T, Device>> e) {
  e.beta = 0;
  const auto block = partita::algebra::detail::epilogue_of_block(T(1), e, y);
  if (block.has_activation())
    partita::algebra::detail::finish<T>(y.mesh().queue(), y.local(), block, y.local());
}

}  // namespace algebra

}  // namespace partita
