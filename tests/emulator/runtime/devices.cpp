// Devices and errors of the emulated runtime.
#include <cstdio>
#include <cstring>
#include <set>

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

constexpr std::pair<cudaError_t, const char*> error_names[] = {
    {cudaSuccess, "cudaSuccess"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation"},
    {cudaErrorInitializationError, "cudaErrorInitializationError"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol"},
    {cudaErrorInvalidDevicePointer, "cudaErrorInvalidDevicePointer"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction"},
    {cudaErrorNoDevice, "cudaErrorNoDevice"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle"},
    {cudaErrorNotReady, "cudaErrorNotReady"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported"},
    {cudaErrorUnknown, "cudaErrorUnknown"},
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
  for (const auto& [known, name] : error_names)
    if (known == code) return name;
  return "unrecognized error code";
}
/// With the sentence that says what was wrong, where the emulator knows one.
const char* CUDARTAPI cudaGetErrorString(cudaError_t code) {
  if (code == cudaSuccess) return "no error";
  if (!emulator::last_error_text().empty()) return kept(emulator::last_error_text());
  emulator::machine& m = emulator::machine::instance();
  const std::lock_guard lock(m.mutex);
  return code == m.failure && !m.failure_text.empty() ? kept(m.failure_text) : "an error of the emulator";
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
    return cudaSuccess;
  });
}
cudaError_t CUDARTAPI cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }

}  // extern "C"
