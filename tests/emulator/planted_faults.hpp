// SPDX-License-Identifier: Apache-2.0
#pragma once
// What tests of the emulator's faults have in common.
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <initializer_list>
#include <vector>

#include "emulator/control.hpp"

namespace planted {

inline void require(cudaError_t code) { REQUIRE_MESSAGE(code == cudaSuccess, cudaGetErrorString(code)); }

/// `count` values on the current device; not written unless they are given.
template <class T>
class values {
 public:
  explicit values(std::size_t count) : count_(count) { require(cudaMalloc(&data_, count * sizeof(T))); }
  explicit values(const std::vector<T>& from) : values(from.size()) {
    require(cudaMemcpy(data_, from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  values(const values&) = delete;
  values& operator=(const values&) = delete;
  ~values() { cudaFree(data_); }

  T* data() const { return data_; }
  std::vector<T> to_host() const {
    std::vector<T> v(count_);
    require(cudaMemcpy(v.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
  }

 private:
  std::size_t count_;
  T* data_ = nullptr;
};

struct stream {
  stream() { require(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking)); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() { cudaStreamDestroy(handle); }

  cudaStream_t handle = nullptr;
};

struct race_search {
  race_search() { emulator::look_for_races(true); }
  race_search(const race_search&) = delete;
  race_search& operator=(const race_search&) = delete;
  ~race_search() { emulator::look_for_races(false); }
};

/// What the emulator says of the work that `enqueue` gives to streams; nothing if it finds no fault.
inline std::string fault_of(const std::function<void()>& enqueue) {
  enqueue();
  static_cast<void>(cudaGetLastError());
  static_cast<void>(cudaDeviceSynchronize());
  static_cast<void>(cudaGetLastError());
  return emulator::take_failure();
}

/// What the runtime answers a launch with.
inline std::string refusal_of(const std::function<void()>& launch) {
  launch();
  const cudaError_t code = cudaPeekAtLastError();
  const std::string text = cudaGetErrorString(code);
  CHECK(cudaGetLastError() != cudaSuccess);
  return text;
}

inline void check_contains(const std::string& text, std::initializer_list<const char*> parts) {
  CAPTURE(text);
  for (const char* part : parts) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace planted
