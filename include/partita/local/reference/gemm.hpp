#pragma once
/// Dense times dense, as the definition has it.

#include <type_traits>

#include "partita/local/view.hpp"

namespace partita::reference {

/// c = alpha op(a) op(b) + beta c, op(z) = z^T where ta (tb) is set; beta = 0 overwrites c, alpha = 0 does
/// not read a and b. op(a) is (m, k), op(b) is (k, n), c is (m, n); shapes must fit. Throws nothing.
template <class T>
void gemm(bool ta, bool tb, std::type_identity_t<T> alpha, std::type_identity_t<matrix_view<const T>> a,
          std::type_identity_t<matrix_view<const T>> b, std::type_identity_t<T> beta, matrix_view<T> c) {
  const local_index k = ta ? a.rows : a.cols;
  for (local_index i = 0; i < c.rows; ++i)
    for (local_index j = 0; j < c.cols; ++j) {
      T total = 0;
      for (local_index p = 0; p < k && alpha != 0; ++p)
        total += (ta ? a(p, i) : a(i, p)) * (tb ? b(j, p) : b(p, j));
      c(i, j) = alpha * total + (beta == 0 ? T{0} : beta * c(i, j));
    }
}

/// c(i, j) = sum_p a(i, p) b(p, j) + bias[j], cut at 0 where relu is set. a is (m, k), b is (k, n), c is (m,
/// n), bias has n elements; shapes must fit. Throws nothing.
template <class T>
void affine(std::type_identity_t<matrix_view<const T>> a, std::type_identity_t<matrix_view<const T>> b,
            const std::type_identity_t<T>* bias, bool relu, matrix_view<T> c) {
  for (local_index i = 0; i < c.rows; ++i)
    for (local_index j = 0; j < c.cols; ++j) {
      T total = bias[j];
      for (local_index p = 0; p < a.cols; ++p) total += a(i, p) * b(p, j);
      c(i, j) = relu && !(total > 0) ? T{0} : total;
    }
}

}  // namespace partita::reference
