// SPDX-License-Identifier: Apache-2.0
#pragma once
/// GEMM through CBLAS. Link a CBLAS library and construct the queue as `device_queue<host>(threads,
/// blas_gemm())`.

#include <cblas.h>
#include <cstdint>
#include <limits>
#include <mutex>

#include "partita/local/host/gemm_backend.hpp"
#include "partita/local/host/gemm_parts.hpp"
#include "partita/local/host/instructions.hpp"

namespace partita {

namespace blas {

#ifdef OPENBLAS_VERSION

/// Makes OpenBLAS use the calling thread only, for the scope of this object. The setting is process-wide,
/// also that of openblas_set_num_threads_local outside OpenMP regions; the last of several scopes restores
/// it. Source: OpenBLAS, issues 2809 and 3917 (scope), pull request 4425 (_local).
class one_thread {
 public:
  one_thread() {
    setting& s = shared();
    const std::lock_guard lock(s.mutex);
    if (s.users++ == 0) s.before = openblas_get_num_threads();
    openblas_set_num_threads(1);  // by every thread: an OpenMP build keeps it per thread
  }
  one_thread(const one_thread&) = delete;
  one_thread& operator=(const one_thread&) = delete;
  ~one_thread() {
    setting& s = shared();
    const std::lock_guard lock(s.mutex);
    if (--s.users == 0) openblas_set_num_threads(s.before);
  }

 private:
  struct setting {
    std::mutex mutex;
    int users = 0, before = 0;
  };
  static setting& shared() {
    static setting s;
    return s;
  }
};

#else

/// Other libraries are configured through their own environment variables.
struct one_thread {
  one_thread() {}
};

#endif

/// The bits of the integers of a library with this dot product: it is asked for one of as many numbers as are
/// 1 in 32 bits and negative, so none, in 64.
template <class Int>
int integer_bits(double (*dot)(Int, const double*, Int, const double*, Int)) {
  using of_64_bits = double (*)(std::int64_t, const double*, std::int64_t, const double*, std::int64_t);
  const double one = 1;
  const auto whole = reinterpret_cast<of_64_bits>(reinterpret_cast<void (*)()>(dot));
  return whole(std::numeric_limits<std::int64_t>::min() + 1, &one, 1, &one, 1) == 0 ? 64 : 32;
}

/// Throws error unless a library's integers are those of the cblas.h that this was compiled with.
template <class Int>
void require_integers(double (*dot)(Int, const double*, Int, const double*, Int)) {
  const int loaded = integer_bits(dot), compiled = 8 * static_cast<int>(sizeof(Int));
  if (loaded != compiled)
    base::throw_error<error>({"this program was compiled for a BLAS with integers of ", compiled,
                              " bits, and the one that was loaded has ", loaded,
                              "; load the other one, in Debian by update-alternatives"});
}

template <class T>
void call(const on_host::gemm_call<T>& p) {
  const CBLAS_TRANSPOSE ta = p.transpose_a ? CblasTrans : CblasNoTrans,
                        tb = p.transpose_b ? CblasTrans : CblasNoTrans;
  if constexpr (sizeof(T) == sizeof(float))
    cblas_sgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
  else
    cblas_dgemm(CblasRowMajor, ta, tb, p.m, p.n, p.k, p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, p.c, p.ldc);
}

/// C = alpha op(A) op(B) + beta C, by calls on one thread each: threads of the library would spin while those
/// of the queue work.
template <class T>
void multiply(int threads, bool transpose_a, bool transpose_b, int m, int n, int k, T alpha, const T* a,
              int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  const on_host::gemm_call<T> p{transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc};
  on_host::multiply_in_parts(threads, p, [](const on_host::gemm_call<T>& part) {
    const one_thread limit;
    call(part);
  });
}

}  // namespace blas

/// GEMM of the linked CBLAS, on the queue's number of threads. Throws error if its integers are of another
/// width than those of the header that this was compiled with.
inline on_host::gemm_backend blas_gemm() {
  blas::require_integers(&cblas_ddot);
  return {blas::multiply<float>, blas::multiply<double>};
}

namespace blas {

/// blas_gemm(), or none, for the built-in kernels, where these are faster: they are with AVX-512 (see
/// bench/results/gemm.md), for which OpenBLAS of Debian 12 has no kernels on processors newer than itself.
inline on_host::gemm_backend faster_gemm() {
  return on_host::instructions() == on_host::instruction_set::avx512 ? on_host::gemm_backend{} : blas_gemm();
}

}  // namespace blas

}  // namespace partita
