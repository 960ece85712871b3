#pragma once
// Stands in for the header of the CUDA runtime in tests, so that the whole place `cuda` runs on a machine
// without a card: the calls that partita uses, on streams of machine.hpp and memory of device_arena.hpp,
// which say what these cannot show. It shadows the real header by the order of include directories.
//
// Beside what the real runtime does: the default stream is an error, as the library never uses it; a copy
// that names memory outside of a live block is an error; copies from or to pageable memory wait for their
// stream both ways, though real ones from the host may return earlier.
#include "machine.hpp"

inline const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError:
      return "cudaErrorInitializationError";
    case cudaErrorInvalidDevicePointer:
      return "cudaErrorInvalidDevicePointer";
    case cudaErrorInvalidMemcpyDirection:
      return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorLaunchTimeout:
      return "cudaErrorLaunchTimeout";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorUnknown:
      return "cudaErrorUnknown";
  }
  return "unrecognized error code";
}
inline const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaSuccess ? "no error" : "an error of the stand-in";
}
inline cudaError_t cudaGetLastError() { return std::exchange(stand_in::last_error(), cudaSuccess); }
inline cudaError_t cudaPeekAtLastError() { return stand_in::last_error(); }

#include "cuda_devices.hpp"
#include "cuda_memory.hpp"
#include "cuda_streams.hpp"
