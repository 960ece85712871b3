// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Counts calls of the CUDA runtime that a steady state must not make, or make rarely: cuda_calls.cpp defines
/// them before the runtime's shared library does and passes them on. What libraries linked with a runtime of
/// their own do is not seen.

#include <cstdint>

namespace bench {

struct cuda_calls {
  std::int64_t allocations = 0;     ///< cudaMallocFromPoolAsync, cudaMallocAsync, cudaMalloc, cudaMallocHost
  std::int64_t device_waits = 0;    ///< cudaDeviceSynchronize
  std::int64_t stream_waits = 0;    ///< cudaStreamSynchronize, cudaEventSynchronize
  std::int64_t copies_to_host = 0;  ///< cudaMemcpyAsync from the device to the host, or either way
  std::int64_t copies_on_device = 0;

  cuda_calls operator-(const cuda_calls& before) const {
    return {allocations - before.allocations, device_waits - before.device_waits,
            stream_waits - before.stream_waits, copies_to_host - before.copies_to_host,
            copies_on_device - before.copies_on_device};
  }
};

/// Calls of all threads since the program began.
cuda_calls count_cuda_calls();

}  // namespace bench
