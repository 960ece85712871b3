#pragma once
// Devices of the stand-in's runtime; part of cuda_runtime_api.h.
#include <utility>

#include "machine.hpp"

namespace stand_in {

inline constexpr std::pair<cudaDeviceAttr, int> attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMultiProcessorCount, 4},
    {cudaDevAttrL2CacheSize, 1 << 20},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
    {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
    {cudaDevAttrMemoryPoolsSupported, 1},
};

}  // namespace stand_in

inline cudaError_t cudaGetDeviceCount(int* count) {
  return stand_in::call("cudaGetDeviceCount", [&](auto& m, auto&) {
    *count = m.devices;
    return m.devices > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}
inline cudaError_t cudaSetDevice(int device) {
  return stand_in::call("cudaSetDevice", [&](auto& m, auto&) {
    if (m.devices == 0) return cudaErrorNoDevice;
    if (device < 0 || device >= m.devices) return cudaErrorInvalidDevice;
    stand_in::current_device() = device;
    return cudaSuccess;
  });
}
inline cudaError_t cudaGetDevice(int* device) {
  return stand_in::call("cudaGetDevice", [&](auto&, auto&) {
    *device = stand_in::current_device();
    return cudaSuccess;
  });
}
inline cudaError_t cudaDeviceSynchronize() {
  return stand_in::call("cudaDeviceSynchronize", [&](auto& m, auto& lock) {
    const auto all = m.streams;
    for (const auto& [handle, s] : all)
      if (s->device == stand_in::current_device())
        if (const cudaError_t code = m.wait_for(lock, *s, s->given); code != cudaSuccess) return code;
    return m.failure;
  });
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return stand_in::call("cudaDeviceGetAttribute", [&](auto& m, auto&) {
    if (device < 0 || device >= m.devices) return cudaErrorInvalidDevice;
    for (const auto& [known, answer] : stand_in::attributes)
      if (known == attribute) {
        *value = answer;
        return cudaSuccess;
      }
    return cudaErrorInvalidValue;
  });
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return stand_in::call("cudaGetDeviceProperties", [&](auto& m, auto&) {
    if (device < 0 || device >= m.devices) return cudaErrorInvalidDevice;
    *properties = {};
    std::snprintf(properties->name, sizeof(properties->name), "stand-in %d", device);
    properties->totalGlobalMem = stand_in::device_arena::capacity;
    properties->major = 9;
    properties->multiProcessorCount = 4;
    return cudaSuccess;
  });
}
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return stand_in::call("cudaMemGetInfo", [&](auto& m, auto&) {
    *total = stand_in::device_arena::capacity;
    *free = *total - m.arena.in_use();
    return cudaSuccess;
  });
}
