// SPDX-License-Identifier: Apache-2.0
#include "partita/comm/cuda_memory.hpp"
#include "partita/compiled/cuda.hpp"
#include "partita/local/cuda/kernels.hpp"

namespace partita {

PARTITA_CUDA_INSTANCES(, float)

}  // namespace partita
