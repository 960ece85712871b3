#pragma once
/// Products of this rank's rows with a replicated weight, for dense and for sparse inputs. Nothing travels.

#include <type_traits>

#include "partita/nn/sparse_features.hpp"

namespace partita {

/// y = h W + beta y (n/P x f_out = n/P x f_in times f_in x f_out).
template <class T, class Place>
void multiply_weight(const dense<T, vertex_rows, Place>& h, std::type_identity_t<matrix_view<const T>> w,
                     dense<T, vertex_rows, Place>& y, T beta = T(0)) {
  kernels<Place>::gemm(y.mesh().queue(), false, false, T(1), h.local(), w, beta, y.local());
}
template <class T, class Place>
void multiply_weight(const sparse_features<T, Place>& h, std::type_identity_t<matrix_view<const T>> w,
                     dense<T, vertex_rows, Place>& y, T beta = T(0)) {
  kernels<Place>::spmm(y.mesh().queue(), h.local(), w, beta, y.local());
}

/// y = g W^T + beta y (n/P x f_in = n/P x f_out times f_out x f_in).
template <class T, class Place>
void multiply_transposed_weight(const dense<T, vertex_rows, Place>& g,
                                std::type_identity_t<matrix_view<const T>> w, dense<T, vertex_rows, Place>& y,
                                T beta = T(0)) {
  kernels<Place>::gemm(y.mesh().queue(), false, true, T(1), g.local(), w, beta, y.local());
}

/// dw = h^T g, this rank's part of a weight gradient (f_in x f_out = f_in x n/P times n/P x f_out).
template <class T, class Place>
void local_weight_gradient(const dense<T, vertex_rows, Place>& h, const dense<T, vertex_rows, Place>& g,
                           matrix_view<T> dw) {
  kernels<Place>::gemm(g.mesh().queue(), true, false, T(1), h.local(), g.local(), T(0), dw);
}
template <class T, class Place>
void local_weight_gradient(const sparse_features<T, Place>& h, const dense<T, vertex_rows, Place>& g,
                           matrix_view<T> dw) {
  kernels<Place>::spmm(g.mesh().queue(), h.local_transposed(), g.local(), T(0), dw);
}

}  // namespace partita
