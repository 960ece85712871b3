// SPDX-License-Identifier: Apache-2.0
// Ends with 0 where a CUDA device can be used, with 1 elsewhere; says which, or why not.
#include <cstdio>
#include <cuda_runtime_api.h>

int main() {
  int count = 0;
  const cudaError_t asked = cudaGetDeviceCount(&count);
  if (asked != cudaSuccess) {
    std::printf("no CUDA device: %s\n", cudaGetErrorString(asked));
    return 1;
  }
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, device) == cudaSuccess)
      std::printf("%d: %s, compute capability %d.%d\n", device, properties.name, properties.major,
                  properties.minor);
  }
  return count > 0 ? 0 : 1;
}
