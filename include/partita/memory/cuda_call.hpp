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

/// Throws device_error unless a runtime, as cudaRuntimeGetVersion names it, has the major version that this
/// was compiled with: structures and kernels of others differ.
inline void require_runtime(int loaded) {
  if (loaded / 1000 != CUDART_VERSION / 1000)
    base::throw_error<device_error>({"this program was compiled for CUDA ", CUDART_VERSION / 1000,
                                     ", and the runtime that was loaded is ", loaded / 1000, ".",
                                     loaded % 1000 / 10, "; put libcudart of the former into the path"});
}
inline void require_runtime() {
  int loaded = 0;
  check_cuda(cudaRuntimeGetVersion(&loaded), "cudaRuntimeGetVersion");
  require_runtime(loaded);
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
