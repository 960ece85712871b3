// SPDX-License-Identifier: Apache-2.0
#include "partita/local/blas/gemm.hpp"
#include "run.hpp"

partita::on_host::gemm_backend dense_products() { return partita::blas::faster_gemm(); }
