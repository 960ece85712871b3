// SPDX-License-Identifier: Apache-2.0
#pragma once
/// GEMM through CBLAS. Link a CBLAS library and construct the queue as `device_queue<host>(threads,
/// blas_gemm())`.

#include <cblas.h>
#include <condition_variable>
#include <mutex>

#include "partita/local/host/gemm_backend.hpp"

namespace partita {

namespace blas {

#ifdef OPENBLAS_VERSION

/// Sets the number of OpenBLAS threads for the scope of this object. The setting is process-wide (even
/// openblas_set_num_threads_local, which is local only inside OpenMP regions): thread ranks that request the
/// same number run concurrently, others wait, and the last one restores the previous value. Source: OpenBLAS,
/// issues 2809 and 3917 (scope), pull request 4425 (_local).
class thread_limit {
 public:
  explicit thread_limit(int threads) {
    setting& s = shared();
    std::unique_lock lock(s.mutex);
    s.changed.wait(lock, [&] { return s.users == 0 || s.threads == threads; });
    if (s.users++ == 0) s.before = openblas_get_num_threads();
    s.threads = threads;
    openblas_set_num_threads(threads);  // on every rank: an OpenMP build keeps it per thread
  }
  thread_limit(const thread_limit&) = delete;
  thread_limit& operator=(const thread_limit&) = delete;
  ~thread_limit() {
    setting& s = shared();
    const std::lock_guard lock(s.mutex);
    if (--s.users > 0) return;
    openblas_set_num_threads(s.before);
    s.changed.notify_all();
  }

 private:
  struct setting {
    std::mutex mutex;
    std::condition_variable changed;
    int users = 0, threads = 0, before = 0;
  };
  static setting& shared() {
    static setting s;
    return s;
  }
};

#else

/// Other libraries are configured through their own environment variables.
struct thread_limit {
  explicit thread_limit(int) {}
};

#endif

template <class T>
void multiply(int threads, bool transpose_a, bool transpose_b, int m, int n, int k, T alpha, const T* a,
              int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  const thread_limit limit(threads);
  const CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans,
                        tb = transpose_b ? CblasTrans : CblasNoTrans;
  if constexpr (sizeof(T) == sizeof(float))
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace blas

/// GEMM of the linked CBLAS; with OpenBLAS, on the queue's number of threads.
inline on_host::gemm_backend blas_gemm() { return {blas::multiply<float>, blas::multiply<double>}; }

}  // namespace partita
