#include "partita/local/blas/gemm.hpp"
#include "run.hpp"

partita::gemm_backend dense_products() { return partita::blas_gemm(); }
