#pragma once
/// Dense products by a CBLAS library; link it, and hand `queue<host>(threads, blas_gemm())` to whoever
/// multiplies.

#include <cblas.h>

#include "partita/memory/host.hpp"

namespace partita {

namespace blas {

/// One thread per calling rank where the header is OpenBLAS's: its threads are global to the process, ranks
/// are not.
inline void use_one_thread() {
#ifdef OPENBLAS_VERSION
  openblas_set_num_threads(1);
#endif
}

inline CBLAS_TRANSPOSE flag(bool transpose) { return transpose ? CblasTrans : CblasNoTrans; }

inline void multiply(int, bool transpose_a, bool transpose_b, int m, int n, int k, float alpha,
                     const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), m, n, k, alpha, a, lda, b, ldb, beta, c,
              ldc);
}

inline void multiply(int, bool transpose_a, bool transpose_b, int m, int n, int k, double alpha,
                     const double* a, int lda, const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, flag(transpose_a), flag(transpose_b), m, n, k, alpha, a, lda, b, ldb, beta, c,
              ldc);
}

}  // namespace blas

/// The products of the linked CBLAS, one thread each. Throws nothing.
inline gemm_backend blas_gemm() {
  blas::use_one_thread();
  return {blas::multiply, blas::multiply};
}

}  // namespace partita
