// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Copies between a CUDA device and pageable memory through page-locked memory, in the order of a stream.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "partita/memory/cuda_stream.hpp"

namespace partita::on_cuda {

/// Two page-locked halves that are filled in turn. A half is filled again when the device has read it.
class staging_ring {
 public:
  static constexpr std::size_t half_bytes = std::size_t{1} << 20;

  explicit staging_ring(std::shared_ptr<const cuda_stream> stream)
      : stream_(std::move(stream)),
        halves_{half(cuda_event(*stream_), false), half(cuda_event(*stream_), false)} {
    memory_.reserve(2 * half_bytes);
  }
  staging_ring(const staging_ring&) = delete;
  staging_ring& operator=(const staging_ring&) = delete;
  /// What was staged may still be on its way.
  ~staging_ring() { cudaStreamSynchronize(stream_->get()); }

  /// Enqueues a copy to the device; `from` may change when this returns. wait(event) blocks until the event.
  template <class Wait>
  void upload(const void* from, void* to, std::size_t bytes, const Wait& wait) {
    for (std::size_t done = 0; done < bytes;) {
      if (used_ == half_bytes) turn(wait);
      const std::size_t part = std::min(bytes - done, half_bytes - used_);
      std::byte* const staged = memory() + used_;
      std::memcpy(staged, static_cast<const std::byte*>(from) + done, part);
      check_cuda(cudaMemcpyAsync(static_cast<std::byte*>(to) + done, staged, part, cudaMemcpyHostToDevice,
                                 stream_->get()),
                 "cudaMemcpyAsync");
      done += part;
      used_ = std::min(half_bytes, (used_ + part + 255) / 256 * 256);
    }
  }
  /// Copies at most `half_bytes` from the device, for which wait() blocks until the stream is done.
  template <class Wait>
  void download(const void* from, void* to, std::size_t bytes, const Wait& wait) {
    check_cuda(cudaMemcpyAsync(memory(), from, bytes, cudaMemcpyDeviceToHost, stream_->get()),
               "cudaMemcpyAsync");
    wait();
    std::memcpy(to, memory(), bytes);
  }

 private:
  struct half {
    half(cuda_event e, bool r) : read(std::move(e)), recorded(r) {}

    cuda_event read;  ///< after the last copy from it
    bool recorded;
  };

  std::byte* memory() { return static_cast<std::byte*>(memory_.reserve(0)) + now_ * half_bytes; }
  template <class Wait>
  void turn(const Wait& wait) {
    halves_[now_].read.record(*stream_);
    halves_[now_].recorded = true;
    now_ = 1 - now_;
    used_ = 0;
    if (halves_[now_].recorded) wait(halves_[now_].read);
  }

  std::shared_ptr<const cuda_stream> stream_;
  std::array<half, 2> halves_;
  pinned_memory memory_;
  std::size_t now_ = 0, used_ = 0;
};

}  // namespace partita::on_cuda
