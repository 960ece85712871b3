// SPDX-License-Identifier: Apache-2.0
#pragma once
/// GEMM through CBLAS. Link a CBLAS library and construct the queue as `device_queue<host>(threads,
/// blas_gemm())`.

#include <algorithm>
#include <cblas.h>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>

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

/// Whether small products, of at most 10^6 multiplications, take their operands from where they are instead
/// of copying them first: OpenBLAS has such kernels for AVX-512. Source: OpenBLAS, pull request 3335.
inline bool multiplies_in_place() {
  static const bool it_does = [] {
    std::string core = openblas_get_corename();
    for (char& c : core)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return core == "skylakex" || core == "cooperlake" || core == "sapphirerapids";
  }();
  return it_does;
}

#else

/// Other libraries are configured through their own environment variables.
struct thread_limit {
  explicit thread_limit(int) {}
};
inline bool multiplies_in_place() { return false; }

#endif

template <class T>
void call(bool transpose_a, bool transpose_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b,
          int ldb, T beta, T* c, int ldc) {
  const CBLAS_TRANSPOSE ta = transpose_a ? CblasTrans : CblasNoTrans,
                        tb = transpose_b ? CblasTrans : CblasNoTrans;
  if constexpr (sizeof(T) == sizeof(float))
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/// Rows of a panel of a product with two short dimensions: about `multiplications` each. 0 if the dimension
/// of `rows` is not much longer than these, or if the matrix of both exceeds `most` elements.
inline int panel_rows(int rows, int one, int other, int multiplications, int most) {
  const std::ptrdiff_t both = static_cast<std::ptrdiff_t>(one) * other;
  if (rows / 8 < std::max(one, other) || both > most) return 0;
  return std::max(8, static_cast<int>(multiplications / both));
}

/// Fetches rows that are too long for the processor to have fetched them: into the second-level cache, or to
/// be written into the first. Inline, because gcc removes calls of functions that only prefetch.
template <bool ToBeWritten = false, class T>
[[gnu::always_inline]] inline void prefetch_long_rows(const T* block, int rows, int cols, int leading) {
  constexpr int line = 64 / sizeof(T);
  if (cols < 8 * line) return;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; j += line)
      __builtin_prefetch(block + static_cast<std::ptrdiff_t>(i) * leading + j, ToBeWritten ? 1 : 0,
                         ToBeWritten ? 3 : 2);
}

/// C = alpha A B + beta C (m x n = m x k times k x n) in panels of rows of A and C.
template <class T>
void multiply_panels(int panel, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb,
                     T beta, T* c, int ldc) {
  for (int i = 0; i < m; i += panel) {
    const int rows = std::min(panel, m - i);
    const T* const from = a + static_cast<std::ptrdiff_t>(i) * lda;
    T* const to = c + static_cast<std::ptrdiff_t>(i) * ldc;
    prefetch_long_rows(from, rows, k, lda);
    prefetch_long_rows<true>(to, rows, n, ldc);
    call(false, false, rows, n, k, alpha, from, lda, b, ldb, beta, to, ldc);
  }
}

/// C = alpha A^T B + beta C (m x n = (k x m)^T times k x n) in panels of rows of A and B.
template <class T>
void multiply_transposed_panels(int panel, int m, int n, int k, T alpha, const T* a, int lda, const T* b,
                                int ldb, T beta, T* c, int ldc) {
  for (int p = 0; p < k; p += panel) {
    const int rows = std::min(panel, k - p);
    const T* const left = a + static_cast<std::ptrdiff_t>(p) * lda;
    const T* const right = b + static_cast<std::ptrdiff_t>(p) * ldb;
    prefetch_long_rows(left, rows, m, lda);
    prefetch_long_rows(right, rows, n, ldb);
    call(true, false, m, n, rows, alpha, left, lda, right, ldb, p == 0 ? beta : T(1), c, ldc);
  }
}

/// C = alpha op(A) op(B) + beta C. On one thread, products of tall and skinny matrices are computed in panels
/// that stay in the nearest caches, where the library multiplies such panels in place.
template <class T>
void multiply(int threads, bool transpose_a, bool transpose_b, int m, int n, int k, T alpha, const T* a,
              int lda, const T* b, int ldb, T beta, T* c, int ldc) {
  const thread_limit limit(threads);
  const bool tall = threads == 1 && !transpose_b && multiplies_in_place();
  if (const int panel = tall && !transpose_a ? panel_rows(m, n, k, 1 << 15, 1 << 16) : 0)
    multiply_panels(panel, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else if (const int other = tall && transpose_a ? panel_rows(k, m, n, 1 << 16, 1 << 15) : 0)
    multiply_transposed_panels(other, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
  else
    call(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace blas

/// GEMM of the linked CBLAS; with OpenBLAS, on the queue's number of threads.
inline on_host::gemm_backend blas_gemm() { return {blas::multiply<float>, blas::multiply<double>}; }

}  // namespace partita
