#pragma once
/// Calls of the CUDA runtime as C++ sees them: failures are exceptions that name the call.

#include <cuda_runtime_api.h>
#include <string>

#include "partita/base/error.hpp"

namespace partita::detail {

/// Throws device_error naming the call when `code` is not success.
inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw device_error(std::string(call) + " failed: " + cudaGetErrorName(code) + ", " +
                     cudaGetErrorString(code));
}

}  // namespace partita::detail
