// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Dense matrix product: the queue's backend, or register tiles.

#include <type_traits>

#include "partita/base/bfloat16.hpp"
#include "partita/local/host/elementwise.hpp"
#include "partita/local/host/gemm_backend.hpp"
#include "partita/local/host/gemm_tiles.hpp"
#include "partita/local/host/reductions.hpp"
#include "partita/local/shapes.hpp"
#include "partita/local/view.hpp"
#include "partita/memory/host.hpp"

namespace partita::on_host {

namespace gemm_detail {

/// As gemm below, and finish(begin, end) for rows of c that are complete.
template <class T, class X, class F>
inline void multiply(const device_queue<host>& q, bool ta, bool tb, T alpha, matrix_view<X> a,
                     local::input_view<T> b, T beta, matrix_view<T> c, const F& finish) {
  memory::refuse_reproducible(q, "gemm");
  const auto [m, n, k] = local::gemm_sizes("gemm", ta, tb, a, b, c);
  if (m == 0 || n == 0) return;
  using stored = std::remove_const_t<X>;
  gemm_function<T> backend = nullptr;
  if constexpr (std::is_same_v<stored, T>) backend = gemm_of<T>(q);
  if (k == 0 || alpha == 0)
    elementwise_detail::assign(
        q, c, [=](local_index i, local_index j) { return beta == 0 ? T{0} : beta * c(i, j); });
  else if (backend == nullptr)
    return multiply_tiles<T, stored>(q.threads(),
                                     {ta, tb, m, n, k, alpha, a.data, local::leading_size(a), b.data,
                                      local::leading_size(b), beta, c.data, local::leading_size(c)},
                                     finish);
  else if constexpr (std::is_same_v<stored, T>)
    backend(q.threads(), ta, tb, m, n, k, alpha, a.data, local::leading_size(a), b.data,
            local::leading_size(b), beta, c.data, local::leading_size(c));
  if constexpr (!std::is_same_v<F, leave_rows>)
    with_instructions([&](auto instructions) {
      run_rows(q.threads(), m, n, [&](int begin, int end) { run_with<instructions>(finish, begin, end); });
    });
}

}  // namespace gemm_detail

/// c = alpha op(a) op(b) + beta c, where op transposes a (b) if ta (tb) is set; beta = 0 overwrites c, alpha
/// = 0 does not read a and b. op(a) is (m, k), op(b) is (k, n), c is (m, n) and must not alias a or b. Uses
/// the queue's backend, if any. X: what a is stored as, T or base::bfloat16, which is widened as it is read:
/// with the bits of register tiles for the floats that these are, whatever the backend. Throws shape_error if
/// the shapes do not match.
template <class T, class X>
inline void gemm(const device_queue<host>& q, bool ta, bool tb, local::scalar<T> alpha, matrix_view<X> a,
                 local::input_view<T> b, local::scalar<T> beta, matrix_view<T> c) {
  gemm_detail::multiply<T>(q, ta, tb, alpha, a, b, beta, c, leave_rows());
}

/// c(i, j) = drop(act(sum_p a(i, p) b(p, j) + beta c(i, j) + bias[j])), with act a ReLU if `relu` is set.
/// bias has n elements or is null; beta = 0 overwrites c. a is (m, k), b is (k, n), c is (m, n) and must not
/// alias a or b. As gemm, also in what is thrown. X: what a is stored as.
template <class T, class X>
inline void gemm_bias_relu(const device_queue<host>& q, matrix_view<X> a, local::input_view<T> b,
                           const local::scalar<T>* bias, bool relu, local::scalar<T> beta, matrix_view<T> c,
                           const std::type_identity_t<local::block_dropout<T>>& drop = {}) {
  if (bias == nullptr && !relu && !drop.drops()) return gemm(q, false, false, T{1}, a, b, beta, c);
  gemm_detail::multiply<T>(q, false, false, T{1}, a, b, beta, c, [=](int begin, int end) {
    for (int i = begin; i < end; ++i)
      elementwise_detail::finish_row(bias, relu, drop, i, c.row_data(i), c.cols);
  });
}

/// Gradients of b and bias in c = a b + bias: db = a^T dc, dbias[j] = sum_i dc(i, j). a is (m, k), dc is (m,
/// n), db is (k, n) and must not alias a or dc, dbias has n elements. As gemm, also in what is thrown. X:
/// what a is stored as.
template <class T, class X>
inline void gemm_bias_gradient(const device_queue<host>& q, matrix_view<X> a, local::input_view<T> dc,
                               matrix_view<T> db, local::scalar<T>* dbias) {
  gemm(q, true, false, T{1}, a, dc, T{0}, db);
  column_sums(q, dc, dbias);
}

/// Gradient of z in c = a b, a = relu(z): dz(i, p) = sum_j dc(i, j) b(p, j) where a(i, p) > 0, else 0. dc is
/// (m, n), b is (k, n), a and dz are (m, k); dz must not alias dc or b. Uses the queue's backend, if any.
/// Throws shape_error if the shapes do not match. X: what a is stored as.
template <class T, class X>
inline void gemm_relu_backward(const device_queue<host>& q, local::input_view<T> dc, local::input_view<T> b,
                               matrix_view<X> a, matrix_view<T> dz) {
  local::require_equal("gemm_relu_backward", "a", local::shape_of(a), "dz", local::shape_of(dz));
  gemm_detail::multiply<T>(q, false, true, T{1}, dc, b, T{0}, dz, [=](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      T* const to = dz.row_data(i);
      for (int p = 0; p < dz.cols; ++p) to[p] = a(i, p) > 0 ? to[p] : T{0};
    }
  });
}

}  // namespace partita::on_host
