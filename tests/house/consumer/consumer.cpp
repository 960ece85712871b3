// SPDX-License-Identifier: Apache-2.0
// What a user might write first: a product, and something of every component that is asked for.
#include <cstdio>

#include "partita/partition/policies.hpp"
#ifdef USES_MPI
#include "partita/comm/mpi.hpp"
#endif
#ifdef USES_BLAS
#include "partita/local/blas/gemm.hpp"
#endif
#ifdef USES_LAPACK
#include "partita/local/lapack/small.hpp"
#endif
#ifdef USES_NPZ
#include "partita/io/npz.hpp"
#endif
#ifdef USES_JSON
#include "partita/io/safetensors.hpp"
#endif
#ifdef USES_DLPACK
#include "partita/io/dlpack.hpp"
#endif
#ifdef USES_METIS
#include "partita/partition/metis.hpp"
#endif
#ifdef USES_CUDA
#include "partita/local/cuda/vendor_products.hpp"
#endif
#ifdef USES_CUBLAS
#include "partita/local/cublas/gemm.hpp"
#endif
#ifdef USES_CUSPARSE
#include "partita/local/cusparse/spmm.hpp"
#endif
#ifdef USES_NCCL
#include <nccl.h>
#endif

using namespace partita;

bool product_is_right();

int main() {
  bool right = default_mesh(grid_2d, 4) == mesh_shape{2, 2, 1};
#ifdef USES_BLAS
  right = right && blas_gemm().f64 != nullptr;
#endif
#ifdef USES_LAPACK
  double four = 4;
  right = right && lapack::cholesky(matrix_view<double>{&four, 1, 1, 1}) && four == 2;
#endif
#ifdef USES_JSON
  const std::vector<double> ones{1, 1};
  right = right && io::tensor_of("w", {2}, ones).bytes.size() == 16;
#endif
#ifdef USES_DLPACK
  double number = 3;
  right =
      right && io::from_dlpack<double>(io::to_dlpack(matrix_view<double>{&number, 1, 1, 1})).block(0, 0) == 3;
#endif
#ifdef USES_METIS
  const std::vector<global_index> offsets{0, 1, 2}, columns{1, 0};
  right = right && partition::metis_parts(offsets, columns, 2) == std::vector<int>{0, 1};
#endif
#ifdef USES_CUDA
  right = right && on_cuda::cuda_libraries().gemm_f64 == nullptr;
#endif
#ifdef USES_CUBLAS
  right = right && cublas_gemm().gemm_f64 != nullptr;
#endif
#ifdef USES_CUSPARSE
  right = right && cusparse_spmm().spmm_f32 != nullptr;
#endif
#ifdef USES_NCCL
  int version = 0;
  right = right && ncclGetVersion(&version) == ncclSuccess && version > 0;
#endif
#ifdef WITH_PRODUCT
  right = right && product_is_right();
#endif
  std::puts(right ? "all is right" : "something is wrong");
  return right ? 0 : 1;
}
