#pragma once
/// Products of this rank's rows with a replicated weight, for dense and for sparse inputs. Nothing travels.

#include <type_traits>

#include "partita/nn/sparse_features.hpp"

namespace partita {

/// y = h W + beta y + bias (n/P x f_out = n/P x f_in times f_in x f_out, 1 x f_out), cut at 0 where relu is
/// set; a null bias is none.
template <class T, class Place>
void multiply_weight(const dense<T, vertex_rows, Place>& h, std::type_identity_t<matrix_view<const T>> w,
                     dense<T, vertex_rows, Place>& y, std::type_identity_t<T> beta = 0,
                     const std::type_identity_t<T>* bias = nullptr, bool relu = false) {
  affine(y.mesh().queue(), h.local(), w, bias, relu, beta, y.local());
}
template <class T, class Place>
void multiply_weight(const sparse_features<T, Place>& h, std::type_identity_t<matrix_view<const T>> w,
                     dense<T, vertex_rows, Place>& y, std::type_identity_t<T> beta = 0,
                     const std::type_identity_t<T>* bias = nullptr, bool relu = false) {
  const spmm_fusion<T> fusion{.beta = beta, .bias = bias, .relu = relu};
  h.for_parts([&](const tile_part<T>& part) {
    spmm_fused(y.mesh().queue(), part.entries, w, fusion, part.rows_of(y.local()));
  });
}

/// y = g W^T + beta y (n/P x f_in = n/P x f_out times f_out x f_in).
template <class T, class Place>
void multiply_transposed_weight(const dense<T, vertex_rows, Place>& g,
                                std::type_identity_t<matrix_view<const T>> w, dense<T, vertex_rows, Place>& y,
                                T beta = T(0)) {
  gemm(y.mesh().queue(), false, true, T(1), g.local(), w, beta, y.local());
}

/// dw = h^T g, this rank's part of a weight gradient (f_in x f_out = f_in x n/P times n/P x f_out), and dbias
/// = the sums of g's columns (1 x f_out), that of a bias, unless it is null.
template <class T, class Place>
void local_weight_gradient(const dense<T, vertex_rows, Place>& h, const dense<T, vertex_rows, Place>& g,
                           matrix_view<T> dw, std::type_identity_t<T>* dbias = nullptr) {
  const auto& q = g.mesh().queue();
  if (dbias != nullptr)
    affine_gradient(q, h.local(), g.local(), dw, dbias);
  else
    gemm(q, true, false, T(1), h.local(), g.local(), T(0), dw);
}
template <class T, class Place>
void local_weight_gradient(const sparse_features<T, Place>& h, const dense<T, vertex_rows, Place>& g,
                           matrix_view<T> dw, std::type_identity_t<T>* dbias = nullptr) {
  const auto& q = g.mesh().queue();
  if (dbias != nullptr) column_sums(q, g.local(), dbias);
  h.for_transposed_parts(
      [&](const tile_part<T>& part) { spmm(q, part.entries, g.local(), T(0), part.rows_of(dw)); });
}

}  // namespace partita
