// SPDX-License-Identifier: Apache-2.0
#pragma once
/// GEMM backends attached to a host queue; the built-in kernel is used where there is none.

#include "partita/memory/host.hpp"

namespace partita::on_host {

/// C = alpha op(A) op(B) + beta C on row-major blocks, with the conventions of CBLAS.
template <class T>
using gemm_function = void (*)(int threads, bool transpose_a, bool transpose_b, int m, int n, int k, T alpha,
                               const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc);

/// GEMM functions for `device_queue<host>(threads, gemm_backend{...})`; null entries select the built-in
/// kernel.
struct gemm_backend {
  gemm_function<float> f32 = nullptr;
  gemm_function<double> f64 = nullptr;

  template <class T>
  gemm_function<T> get() const {
    if constexpr (sizeof(T) == sizeof(float))
      return f32;
    else
      return f64;
  }
};

/// The queue's GEMM function; null if it has none.
template <class T>
inline gemm_function<T> gemm_of(const device_queue<host>& q) {
  const gemm_backend* const backend = q.find<gemm_backend>();
  return backend == nullptr ? nullptr : backend->get<T>();
}

}  // namespace partita::on_host
