// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Calls of the CUDA runtime as C++ sees them: failures are exceptions that name the call.

#include <cuda_runtime_api.h>
#include <string>

#include "partita/base/error.hpp"

namespace partita::on_cuda {

/// Throws device_error naming the call when `code` is not success. The runtime forgets the error: it would be
/// taken for that of the next kernel's launch.
inline void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw device_error(std::string(call) + " failed: " + cudaGetErrorName(code) + ", " +
                     cudaGetErrorString(code));
}

/// Whether a call that asks how far work is says that it is done; check_cuda for all other answers.
inline bool is_done(cudaError_t code, const char* call) {
  if (code != cudaErrorNotReady) {
    check_cuda(code, call);
    return true;
  }
  static_cast<void>(cudaGetLastError());
  return false;
}

}  // namespace partita::on_cuda
