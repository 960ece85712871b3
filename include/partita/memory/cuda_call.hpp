// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Error checking for CUDA runtime calls.

#include <cuda_runtime_api.h>
#include <string>

#include "partita/base/error.hpp"

namespace partita::on_cuda {

/// Throws device_error naming the call on failure. Clears the runtime's last error, which would otherwise be
/// reported by the next kernel launch.
inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw device_error(std::string(call) + " failed: " + cudaGetErrorName(code) + ", " +
                     cudaGetErrorString(code));
}

/// Result of a query: true if complete, false if not ready; other codes throw as in check_cuda.
inline bool is_done(cudaError_t code, const char* call) {
  if (code != cudaErrorNotReady) {
    check_cuda(code, call);
    return true;
  }
  static_cast<void>(cudaGetLastError());
  return false;
}

}  // namespace partita::on_cuda
