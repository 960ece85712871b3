// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Local products of matrices with whole rows on each rank and a replicated weight, and each rank's
/// contribution to the corresponding gradients. Local; no communication.
///
/// On a reproducible mesh every element of a product is summed in the order of the columns of X, and the
/// contributions below are whole sums over the ranks: weight_gradient_part and column_sums_part are then
/// collective over the mesh. What travels: all-reduces of two elements and of one or, for double, two
/// doubles per element of the result.

#include "partita/algebra/epilogue.hpp"
#include "partita/algebra/gemm.hpp"
#include "partita/algebra/reproducible_verbs.hpp"
#include "partita/local/chunked_edges.hpp"
#include "partita/local/chunked_gemm.hpp"
#include "partita/local/chunked_products.hpp"
#include "partita/local/chunked_sums.hpp"
#include "partita/local/row_products.hpp"
#include "partita/matrix/sparse_rows.hpp"

namespace partita {

namespace algebra::detail {

/// Throws shape_error unless y (n x b) is x (n x a) times a x b, with the same row blocking.
template <class X, class Y>
void require_row_product(const char* what, const X& x, matrix_shape weight, const Y& y) {
  if (x.row_blocking() == y.row_blocking() && x.shape().cols == weight.rows && y.shape().cols == weight.cols)
    return;
  base::throw_error<shape_error>({what, ": X of ", x.shape(), " times ", weight, " does not fit Y of ",
                                  y.shape(), "; shapes and row blockings must match"});
}

/// Dropout of an entry of a part of X, or of X^T.
template <class T>
struct dropped_entry {
  base::dropped<T> drop;
  global_index first_row;  // of the block
  local_index part_row;    // of the part
  bool transposed;
  constexpr T operator()(local_index i, local_index j, local_index, T x) const {
    return transposed ? drop(first_row + j, part_row + i, x) : drop(first_row + part_row + i, j, x);
  }
};

}  // namespace algebra::detail

/// Y = drop(clamp(X W + beta Y + bias)), see epilogue (n x b = n x a times a x b). S: what X is stored as.
/// Throws shape_error.
template <class T, class Device, class S>
requires algebra::stored_as<S, T, Device>
void gemm(const dense<S, vertex_rows, Device>& x, const dense<T, replicated, Device>& w,
          dense<T, vertex_rows, Device>& y, const std::type_identity_t<epilogue<T, Device>>& e = {}) {
  algebra::detail::require_row_product("gemm", x, w.shape(), y);
  local::row_product(y.mesh().queue(), x.local(), w.local(), algebra::detail::epilogue_of_block(T(1), e, y),
                     y.local());
}
/// As above, for sparse X; `passes`, if not null, keeps the plan of a pass over far operands for the next
/// call.
template <class T, class Device>
void gemm(const sparse_rows<T, Device>& x, const dense<T, replicated, Device>& w,
          dense<T, vertex_rows, Device>& y, const std::type_identity_t<epilogue<T, Device>>& e = {},
          local::entry_passes<Device>* passes = nullptr) {
  local::entry_passes<Device> of_call;
  algebra::detail::require_row_product("gemm", x, w.shape(), y);
  const local::spmm_epilogue<T> end = algebra::detail::epilogue_of_block(T(1), e, y);
  for (const local::csr_slice<T>& part : x.parts())
    local::row_product(y.mesh().queue(), passes == nullptr ? of_call : *passes, part.entries, w.local(),
                       end.from_row(part.first_row), part.rows_of(y.local()));
}
/// Y = G W^T + beta Y (n x a = n x b times b x a). Throws shape_error.
template <class T, class Device>
void gemm(const dense<T, vertex_rows, Device>& g, algebra::transposed_dense<T, replicated, Device> w,
          dense<T, vertex_rows, Device>& y, std::type_identity_t<T> beta = 0) {
  const matrix_shape shape{w.matrix.shape().cols, w.matrix.shape().rows};
  algebra::detail::require_row_product("gemm", g, shape, y);
  local::transposed_row_product(y.mesh().queue(), g.local(), w.matrix.local(), beta, y.local());
}
namespace algebra {

/// Y = G W^T where H > 0, and 0 elsewhere: the gradient through H = max(Z, 0) (n x a = n x b times b x a; H n
/// x a). S: what H is stored as. Throws shape_error.
template <class T, class Device, class S>
requires stored_as<S, T, Device>
void gemm_relu_backward(const dense<T, vertex_rows, Device>& g, const dense<T, replicated, Device>& w,
                        const dense<S, vertex_rows, Device>& h, dense<T, vertex_rows, Device>& y) {
  detail::require_row_product("gemm_relu_backward", g, {w.shape().cols, w.shape().rows}, y);
  detail::require_same_blocks("gemm_relu_backward", h, y);
  local::transposed_row_product_where(y.mesh().queue(), h.local(), g.local(), w.local(), y.local());
}

/// sums = the column sums of this rank's rows (1 x f), its contribution to column_sums. Throws shape_error.
template <class T, class Device>
void column_sums_part(const dense<T, vertex_rows, Device>& x, dense<T, replicated, Device>& sums) {
  if (sums.shape() != matrix_shape{1, x.shape().cols})
    base::throw_error<shape_error>({"column sums of ", x.shape(), " cannot be stored in ", sums.shape()});
  if (const auto* const verbs = reproducible_verbs_of<T>(x.mesh()))
    return verbs->column_sums(x, sums.values());
  local::chunked::column_sums(x.mesh().queue(), x.local(), sums.local().data);
}

/// dW = X^T G over this rank's rows (a x b = a x n/P times n/P x b), its contribution to inner; dbias = the
/// column sums of the same rows of G, unless null. S: what X is stored as. Throws shape_error.
template <class T, class Device, class S>
requires stored_as<S, T, Device>
void weight_gradient_part(const dense<S, vertex_rows, Device>& x, const dense<T, vertex_rows, Device>& g,
                          dense<T, replicated, Device>& dw, dense<T, replicated, Device>* dbias = nullptr) {
  detail::require_row_product("weight_gradient_part", x, dw.shape(), g);
  const auto& q = g.mesh().queue();
  if constexpr (std::is_same_v<S, T>)
    if (const auto* const verbs = reproducible_verbs_of<T>(g.mesh())) {
      verbs->inner(x, g, dw);
      if (dbias != nullptr) column_sums_part(g, *dbias);
      return;
    }
  if (dbias != nullptr)
    local::chunked::gemm_bias_gradient(q, x.local(), g.local(), dw.local(), dbias->local().data);
  else
    local::chunked::gemm(q, true, false, T(1), x.local(), g.local(), T(0), dw.local());
}
/// As above, for sparse X.
template <class T, class Device>
void weight_gradient_part(const sparse_rows<T, Device>& x, const dense<T, vertex_rows, Device>& g,
                          dense<T, replicated, Device>& dw, dense<T, replicated, Device>* dbias = nullptr,
                          local::entry_passes<Device>* passes = nullptr) {
  local::entry_passes<Device> of_call;
  detail::require_row_product("weight_gradient_part", x, dw.shape(), g);
  if (dbias != nullptr) column_sums_part(g, *dbias);
  if (const auto* const verbs = reproducible_verbs_of<T>(g.mesh()))
    return verbs->inner(x.transposed_parts(), g, dw);
  const auto& q = g.mesh().queue();
  for (const local::csr_slice<T>& part : x.transposed_parts())
    local::chunked::spmm(q, passes == nullptr ? of_call : *passes, 0, part.entries, g.local(), T(0),
                         part.rows_of(dw.local()));
}

}  // namespace algebra

/// Y = dropout(X); Y was made by x.like().
template <class T, class Device>
void dropout(const sparse_rows<T, Device>& x, sparse_rows<T, Device>& y, const dropout_mask& mask) {
  const auto drop = [&](const local::csr_slice<T>& part, std::span<T> values, bool transposed) {
    const auto& q = x.mesh().queue();
    T* const to = part.values_in(values.data(), 1);
    const algebra::detail::dropped_entry<T> f{mask.function<T>(), x.row_range().begin, part.first_row,
                                              transposed};
    local::in_place(
        q, "entries", [&] { edge_apply(q, part.entries, 1, f, part.entries.values, to); },
        local::updates(local::one_per_row(to, part.entries.entries)));
  };
  for (const local::csr_slice<T>& part : x.parts()) drop(part, y.row_values(), false);
  for (const local::csr_slice<T>& part : x.transposed_parts()) drop(part, y.column_values(), true);
}

/// Y = X as a dense matrix (n x f). Throws shape_error.
template <class T, class Device>
void copy(const sparse_rows<T, Device>& x, dense<T, vertex_rows, Device>& y) {
  if (!(x.row_blocking() == y.row_blocking()) || x.shape() != y.shape())
    base::throw_error<shape_error>(
        {"copy needs operands of the same shape and blockings, not ", x.shape(), " and ", y.shape()});
  const auto& q = x.mesh().queue();
  for (const local::csr_slice<T>& part : x.parts()) {
    const matrix_view<T> rows = part.rows_of(y.local());
    local::in_place(
        q, "rows: write out", [&] { sparse_to_dense(q, part.entries, rows); }, local::writes(rows));
  }
}

}  // namespace partita
