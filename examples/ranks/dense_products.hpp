// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which dense products programs use.

#ifdef PARTITA_WITH_BLAS
#include "partita/local/blas/gemm.hpp"
#else
#include "partita/local/host/gemm_backend.hpp"
#endif

/// CBLAS where this program was built with it, otherwise the library's own products.
inline partita::on_host::gemm_backend dense_products() {
#ifdef PARTITA_WITH_BLAS
  return partita::blas::faster_gemm();
#else
  return {};
#endif
}
