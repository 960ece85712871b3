// SPDX-License-Identifier: Apache-2.0
// Devices and errors of the emulated runtime.
#include <cstdio>

#include "kernels.hpp"
#include "machine.hpp"

using emulator::call;

namespace {

constexpr std::pair<cudaDeviceAttr, int> attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 0x7fffffff},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMultiProcessorCount, 4},
    {cudaDevAttrL2CacheSize, 1 << 20},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
    {cudaDevAttrMemoryPoolsSupported, 1},
};

struct known_error {
  cudaError_t code;
  const char *name, *text;
};
constexpr known_error errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

/// Text that stays.
const char* kept(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> all;
  const std::lock_guard lock(mutex);
  return all.insert(text).first->c_str();
}

bool exists(const emulator::machine& m, int device) { return device >= 0 && device < m.devices; }

}  // namespace

extern "C" {

const char* CUDARTAPI cudaGetErrorName(cudaError_t code) {
  for (const auto& e : errors)
    if (e.code == code) return e.name;
  return "unrecognized error code";
}
/// The sentence that says what was wrong, where the emulator knows one, else CUDA's.
const char* CUDARTAPI cudaGetErrorString(cudaError_t code) {
  if (code == cudaSuccess) return "no error";
  if (const auto& last = emulator::last_explained(); last.code == code) return kept(last.text);
  emulator::machine& m = emulator::machine::instance();
  const std::lock_guard lock(m.mutex);
  if (code == m.failure && !m.failure_text.empty()) return kept(m.failure_text);
  for (const auto& e : errors)
    if (e.code == code) return e.text;
  return "unrecognized error code";
}
cudaError_t CUDARTAPI cudaGetLastError() { return std::exchange(emulator::last_error(), cudaSuccess); }
cudaError_t CUDARTAPI cudaPeekAtLastError() { return emulator::last_error(); }

cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](auto& m, auto&) {
    *count = m.devices;
    return m.devices > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}
cudaError_t CUDARTAPI cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](auto& m, auto&) {
    if (m.devices == 0) return cudaErrorNoDevice;
    if (!exists(m, device)) return cudaErrorInvalidDevice;
    emulator::current_device() = device;
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&](auto& m, auto&) {
    *device = emulator::current_device();
    return m.devices > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}
cudaError_t CUDARTAPI cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [&](auto& m, auto& lock) {
    const auto all = m.streams;
    for (const auto& [handle, s] : all)
      if (s->device == emulator::current_device())
        if (const cudaError_t code = m.wait_for(lock, *s, s->given); code != cudaSuccess) return code;
    return m.failure;
  });
}
cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&](auto& m, auto&) {
    if (!exists(m, device)) return cudaErrorInvalidDevice;
    *value = 0;
    if (attribute == cudaDevAttrComputeCapabilityMajor) *value = emulator::compute_capability() / 10;
    if (attribute == cudaDevAttrComputeCapabilityMinor) *value = emulator::compute_capability() % 10;
    for (const auto& [known, answer] : attributes)
      if (known == attribute) *value = answer;
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&](auto& m, auto&) {
    if (!exists(m, device)) return cudaErrorInvalidDevice;
    std::memset(properties, 0, sizeof(*properties));
    std::snprintf(properties->name, sizeof(properties->name), "emulated device %d", device);
    properties->totalGlobalMem = m.arena.capacity();
    properties->major = emulator::compute_capability() / 10;
    properties->minor = emulator::compute_capability() % 10;
    properties->multiProcessorCount = 4;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->sharedMemPerBlock = 48 << 10;
    properties->l2CacheSize = 1 << 20;
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t CUDARTAPI cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&](auto& m, auto&) {
    *total = m.arena.capacity();
    *free = *total - m.arena.taken(emulator::current_device());
  });
}
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

}  // extern "C"
