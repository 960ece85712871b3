// SPDX-License-Identifier: Apache-2.0
#include "cuda_calls.hpp"

#include <atomic>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace {

std::atomic<std::int64_t> allocations, device_waits, stream_waits, copies_to_host, copies_on_device;

/// The symbol of this name in the runtime library.
template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Whether the device's engines alone reach it. Memory that the host maps, and plain memory, is the host's.
bool is_on_device(const void* memory) {
  cudaPointerAttributes about{};
  if (cudaPointerGetAttributes(&about, memory) == cudaSuccess) return about.type == cudaMemoryTypeDevice;
  static_cast<void>(cudaGetLastError());
  return false;
}

/// What a copy of cudaMemcpyDefault is: from one device's memory to another's, or a host's on one side.
cudaMemcpyKind kind_of(const void* to, const void* from) {
  if (!is_on_device(from)) return cudaMemcpyHostToDevice;
  return is_on_device(to) ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
}

}  // namespace

bench::cuda_calls bench::count_cuda_calls() {
  return {allocations, device_waits, stream_waits, copies_to_host, copies_on_device};
}

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  static const auto next = real<cudaError_t(void**, std::size_t)>("cudaMalloc");
  ++allocations;
  return next(memory, bytes);
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  static const auto next = real<cudaError_t(void**, std::size_t)>("cudaMallocHost");
  ++allocations;
  return next(memory, bytes);
}

cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  static const auto next = real<cudaError_t(void**, std::size_t, cudaStream_t)>("cudaMallocAsync");
  ++allocations;
  return next(memory, bytes, stream);
}

cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  static const auto next =
      real<cudaError_t(void**, std::size_t, cudaMemPool_t, cudaStream_t)>("cudaMallocFromPoolAsync");
  ++allocations;
  return next(memory, bytes, pool, stream);
}

cudaError_t cudaDeviceSynchronize() {
  static const auto next = real<cudaError_t()>("cudaDeviceSynchronize");
  ++device_waits;
  return next();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  static const auto next = real<cudaError_t(cudaStream_t)>("cudaStreamSynchronize");
  ++stream_waits;
  return next(stream);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  static const auto next = real<cudaError_t(cudaEvent_t)>("cudaEventSynchronize");
  ++stream_waits;
  return next(event);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  static const auto next =
      real<cudaError_t(void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t)>("cudaMemcpyAsync");
  const cudaMemcpyKind is = kind == cudaMemcpyDefault ? kind_of(to, from) : kind;
  if (is == cudaMemcpyDeviceToHost) ++copies_to_host;
  if (is == cudaMemcpyDeviceToDevice) ++copies_on_device;
  return next(to, from, bytes, kind, stream);
}

}  // extern "C"
