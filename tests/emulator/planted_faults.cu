// SPDX-License-Identifier: Apache-2.0
// Faults of the host, each of which the emulator names on stderr: planted_faults NAME
#include <cstdio>
#include <cuda_runtime.h>
#include <string>

__global__ void fill(float* x, float value) { x[threadIdx.x] = value; }
__global__ void twice(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }
__global__ void spin(volatile float* x) {
  while (*x == 0) {
  }
}

int main(int, char** arguments) {
  const std::string name = arguments[1];
  float *x = nullptr, *y = nullptr;
  cudaMalloc(&x, 32 * sizeof(float));
  cudaMalloc(&y, 32 * sizeof(float));
  cudaMemset(x, 0, 32 * sizeof(float));
  cudaStream_t a, b;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  if (name == "touch") return static_cast<int>(x[3]);
  if (name == "order") {  // of a and b, where nobody waits for a
    fill<<<1, 32, 0, a>>>(x, 3);
    twice<<<1, 32, 0, b>>>(x, y);
    cudaStreamSynchronize(b);
  }
  if (name == "end") fill<<<1, 33, 0, a>>>(x, 3);
  if (name == "order" || name == "end" || name == "nothing") return 0;
  if (name == "launch") {
    fill<<<1, 2000>>>(x, 3);
    const cudaError_t code = cudaGetLastError();
    cudaDeviceSynchronize();
    std::puts(cudaGetErrorString(code));
  }
  if (name == "copy") cudaMemcpy(y, x, 33 * sizeof(float), cudaMemcpyDeviceToDevice);
  if (name == "spin") spin<<<1, 1>>>(x);
  return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
