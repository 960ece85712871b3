// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Counts CUDA runtime calls that a steady state must not make, or only rarely: cuda_calls.cpp interposes
/// them on the runtime's shared library and forwards them. Calls from libraries that link the runtime
/// statically are not counted.

#include <cstdint>

namespace bench {

struct cuda_calls {
  std::int64_t allocations = 0;     ///< cudaMallocFromPoolAsync, cudaMallocAsync, cudaMalloc, cudaMallocHost
  std::int64_t device_waits = 0;    ///< cudaDeviceSynchronize
  std::int64_t stream_waits = 0;    ///< cudaStreamSynchronize, cudaEventSynchronize
  std::int64_t copies_to_host = 0;  ///< cudaMemcpyAsync from the device's memory to the host's
  std::int64_t copies_on_device = 0;  ///< from one device's memory to that one's or another's

  cuda_calls operator-(const cuda_calls& before) const {
    return {allocations - before.allocations, device_waits - before.device_waits,
            stream_waits - before.stream_waits, copies_to_host - before.copies_to_host,
            copies_on_device - before.copies_on_device};
  }
};

/// Calls of all threads since program start.
cuda_calls count_cuda_calls();

}  // namespace bench
