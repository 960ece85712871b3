// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CUDA streams with stream-ordered allocation, events, and page-locked host memory.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "partita/memory/cuda_call.hpp"
#include "partita/memory/device.hpp"
#include "partita/memory/far_store.hpp"
#include "partita/memory/kept_blocks.hpp"

namespace partita::on_cuda {

/// Sets the calling thread's current device for the scope of this object.
class device_guard {
 public:
  explicit device_guard(int device) {
    check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    changes_ = before_ != device;
    if (changes_) check_cuda(cudaSetDevice(device), "cudaSetDevice");
  }
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;
  ~device_guard() {
    if (changes_) cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool changes_ = false;
};

/// Scheduling priority of a stream: urgent work starts before other pending work.
enum class stream_priority { normal, urgent };

/// A stream of the caller's, and the allocator of its memory; both stay the caller's and must outlive the
/// queue and its buffers, and where ranks are threads, which hold on to each other's queues, those of all
/// ranks. Without an allocator, memory is from the device's default pool, in the order of the stream. With
/// one, it is from allocate(bytes, stream), ready for work on that stream and aligned to 256 bytes, and goes
/// back by release(memory, bytes, stream) while work of the stream may still use it: what PyTorch's caching
/// allocator and RMM's asynchronous resources do. allocate is called with the device current and may throw;
/// release may not.
struct foreign_stream {
  cudaStream_t stream = nullptr;
  std::function<void*(std::size_t, cudaStream_t)> allocate = nullptr;
  std::function<void(void*, std::size_t, cudaStream_t)> release = nullptr;
};

/// A CUDA stream, owned or adopted; buffers allocated on it keep this object alive.
class cuda_stream {
  auto back() const {
    return [this](void* memory, std::size_t bytes) { give_back(memory, bytes); };
  }

 public:
  /// Throws device_error if the device does not exist.
  explicit cuda_stream(int device, stream_priority priority = stream_priority::normal)
      : device_(device), meter_(std::make_shared<memory::memory_meter>()) {
    on_cuda::require_runtime();
    const on_cuda::device_guard guard(device);
    int least = 0, greatest = 0;
    on_cuda::check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                        "cudaDeviceGetStreamPriorityRange");
    on_cuda::check_cuda(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking,
                                                     priority == stream_priority::urgent ? greatest : least),
                        "cudaStreamCreateWithPriority");
    keep_freed_memory();
  }
  /// Adopts `theirs`. Throws device_error if it is a stream of another device, and error if one of allocate
  /// and release is missing.
  cuda_stream(int device, foreign_stream theirs)
      : device_(device), stream_(theirs.stream), meter_(std::make_shared<memory::memory_meter>()) {
    on_cuda::require_runtime();
    const on_cuda::device_guard guard(device);
    int its_device = device;
    on_cuda::check_cuda(cudaStreamGetDevice(stream_, &its_device), "cudaStreamGetDevice");
    if (its_device != device)
      throw device_error("a stream of device " + std::to_string(its_device) +
                         " cannot be adopted by a queue of device " + std::to_string(device));
    if (!theirs.allocate != !theirs.release)
      throw error("a foreign allocator needs both allocate and release");
    if (!theirs.allocate) keep_freed_memory();
    theirs_ = std::move(theirs);
  }
  cuda_stream(const cuda_stream&) = delete;
  cuda_stream& operator=(const cuda_stream&) = delete;
  /// Waits for the stream, and destroys it unless it was adopted.
  ~cuda_stream() {
    if (recycles_) {
      const std::lock_guard lock(keepers().guard);
      std::erase_if(keepers().streams, [this](const cuda_stream* each) { return each == this; });
    }
    give_back_free();
    cudaStreamSynchronize(stream_);
    if (!theirs_) cudaStreamDestroy(stream_);
  }

  int device() const { return device_; }
  cudaStream_t get() const { return stream_; }
  memory::memory_meter& meter() const { return *meter_; }
  const std::shared_ptr<memory::memory_meter>& shared_meter() const { return meter_; }

  /// Makes later work on `other`, a stream of this device, wait for the work enqueued here so far.
  void make_wait(cudaStream_t other) const;
  /// Makes later work here wait for the work enqueued so far on `other`, a stream of this device.
  void wait_for(cudaStream_t other) const;

  /// Stream-ordered uninitialised memory, aligned to 256 bytes, from the foreign allocator, or from the
  /// device's default memory pool, which all streams share. If the device has no more for the pool, gives
  /// back what streams keep, waits for it, gives back what the pool caches, and retries. Throws device_error,
  /// and whatever the foreign allocator throws.
  void* allocate(std::size_t bytes) const {
    if (far_ && bytes >= far_->from) return allocate_far(bytes);
    if (void* const memory = kept(bytes)) return memory;
    if (!meter_->fits(bytes)) give_back_free();
    if (far_ && !meter_->fits(bytes)) return allocate_far(bytes);
    if (theirs_ && theirs_->allocate) return allocate_foreign(bytes);
    const std::size_t rounded = memory::size_class(bytes);
    std::size_t size = recycles_ && meter_->fits(rounded) ? rounded : bytes;
    meter_->add(size);
    void* memory = nullptr;
    cudaError_t code = cudaMallocAsync(&memory, size, stream_);
    if (code == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      const on_cuda::device_guard guard(device_);
      give_back_kept_memory(device_);
      on_cuda::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      on_cuda::check_cuda(cudaMemPoolTrimTo(pool(), 0), "cudaMemPoolTrimTo");
      meter_->remove(size - bytes);
      size = bytes;
      code = cudaMallocAsync(&memory, size, stream_);
    }
    if (code != cudaSuccess) meter_->remove(size);
    on_cuda::check_cuda(code, "cudaMallocAsync");
    if (recycles_) {
      const std::lock_guard lock(guard_);
      kept_.keep(memory, size);
    }
    return memory;
  }
  /// Stream-ordered: work enqueued earlier may still use the memory.
  void release(void* memory, std::size_t bytes) const noexcept {
    if (far_ && far_->store->contains(memory)) {
      cudaStreamSynchronize(stream_);
      far_meter_->remove(bytes);
      return far_->store->release(memory, bytes);
    }
    const bool stays = [&] {
      const std::lock_guard lock(guard_);
      return kept_.put(memory);
    }();
    if (!stays) give_back(memory, bytes);
  }
  /// From now on keeps memory of the pool that is released, in sizes of size_class, for allocations that need
  /// about as much: later work of this stream gets it without a call. A foreign allocator is called as ever.
  void recycle() const {
    if ((theirs_ && theirs_->allocate) || recycles_.exchange(true)) return;
    const std::lock_guard lock(keepers().guard);
    keepers().streams.push_back(this);
  }
  bool recycles() const { return recycles_; }
  /// As host_memory::use_far.
  void use_far(const far_options& options) const { far_ = options; }
  const std::optional<far_options>& far() const { return far_; }
  /// Of the buffers in the store.
  const std::shared_ptr<memory::memory_meter>& far_meter() const { return far_meter_; }

 private:
  /// The streams of this process that recycle.
  struct keeping_streams {
    std::mutex guard;
    std::vector<const cuda_stream*> streams;
  };
  static keeping_streams& keepers() {
    static keeping_streams& all = *new keeping_streams;  // queues may end after what is static
    return all;
  }
  static void give_back_kept_memory(int device) {
    const std::lock_guard lock(keepers().guard);
    for (const cuda_stream* const each : keepers().streams)
      if (each->device_ == device) each->give_back_free();
  }

  void* kept(std::size_t bytes) const {
    if (!recycles_) return nullptr;
    const std::lock_guard lock(guard_);
    return kept_.take(memory::size_class(bytes), back());
  }
  void give_back_free() const noexcept {
    const std::lock_guard lock(guard_);
    kept_.give_back_free(back());
  }
  void give_back(void* memory, std::size_t bytes) const noexcept {
    if (theirs_ && theirs_->release)
      theirs_->release(memory, bytes, stream_);
    else
      cudaFreeAsync(memory, stream_);
    meter_->remove(bytes);
  }
  void* allocate_far(std::size_t bytes) const {
    void* const memory = far_->store->allocate(bytes);
    far_meter_->add(bytes);
    return memory;
  }
  void* allocate_foreign(std::size_t bytes) const {
    meter_->add(bytes);
    const on_cuda::device_guard guard(device_);
    try {
      void* const memory = theirs_->allocate(bytes, stream_);
      if (memory != nullptr && reinterpret_cast<std::uintptr_t>(memory) % 256 == 0) return memory;
      if (memory != nullptr) theirs_->release(memory, bytes, stream_);
      throw device_error("a foreign allocator gave " +
                         std::string(memory == nullptr ? "no memory" : "memory not aligned to 256 bytes") +
                         " for a buffer of " + std::to_string(bytes) + " bytes");
    } catch (...) {
      meter_->remove(bytes);
      throw;
    }
  }
  cudaMemPool_t pool() const {
    cudaMemPool_t found = nullptr;
    on_cuda::check_cuda(cudaDeviceGetMemPool(&found, device_), "cudaDeviceGetMemPool");
    return found;
  }
  /// By default every synchronisation unmaps what is free. A threshold that the program has set stays.
  void keep_freed_memory() const {
    std::uint64_t threshold = 0;
    on_cuda::check_cuda(cudaMemPoolGetAttribute(pool(), cudaMemPoolAttrReleaseThreshold, &threshold),
                        "cudaMemPoolGetAttribute");
    if (threshold != 0) return;
    threshold = std::numeric_limits<std::uint64_t>::max();
    on_cuda::check_cuda(cudaMemPoolSetAttribute(pool(), cudaMemPoolAttrReleaseThreshold, &threshold),
                        "cudaMemPoolSetAttribute");
  }

  int device_;
  cudaStream_t stream_ = nullptr;
  std::optional<foreign_stream> theirs_;
  std::shared_ptr<memory::memory_meter> meter_;
  std::shared_ptr<memory::memory_meter> far_meter_ = std::make_shared<memory::memory_meter>();
  mutable std::optional<far_options> far_;
  mutable std::atomic<bool> recycles_ = false;
  mutable std::mutex guard_;  ///< of what is kept: any thread may release, or give back what others keep
  mutable memory::kept_blocks kept_;
};

/// A CUDA event, which other streams and the host can wait for. Move-only.
class cuda_event {
 public:
  /// For streams on the device of `stream`; `flags` as for cudaEventCreateWithFlags.
  explicit cuda_event(const cuda_stream& stream, unsigned flags = cudaEventDisableTiming)
      : device_(stream.device()) {
    const on_cuda::device_guard guard(device_);
    cudaEvent_t made = nullptr;
    on_cuda::check_cuda(cudaEventCreateWithFlags(&made, flags), "cudaEventCreateWithFlags");
    event_.reset(made);
  }

  cudaEvent_t get() const { return event_.get(); }
  /// Records the event after all work enqueued on `stream` so far. If recording fails, synchronises the
  /// stream, since waiters would not, and throws device_error.
  void record(const cuda_stream& stream) {
    if (device_ != stream.device())
      throw device_error("an event of device " + std::to_string(device_) + " cannot be recorded on device " +
                         std::to_string(stream.device()));
    record(stream.get());
  }
  /// As above, on a stream of the event's device.
  void record(cudaStream_t stream) {
    const on_cuda::device_guard guard(device_);
    if (const cudaError_t code = cudaEventRecord(get(), stream); code != cudaSuccess) {
      cudaStreamSynchronize(stream);
      on_cuda::check_cuda(code, "cudaEventRecord");
    }
  }
  /// Makes later work on `stream` wait for the event.
  void make_wait(cudaStream_t stream) const {
    on_cuda::check_cuda(cudaStreamWaitEvent(stream, get(), 0), "cudaStreamWaitEvent");
  }
  /// Whether all work preceding the event has completed.
  bool reached() const { return on_cuda::is_done(cudaEventQuery(get()), "cudaEventQuery"); }

 private:
  struct destroy {
    void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
  };

  int device_;
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, destroy> event_;
};

inline void cuda_stream::make_wait(cudaStream_t other) const {
  if (other == stream_) return;
  const on_cuda::device_guard guard(device_);
  cuda_event here(*this);
  here.record(stream_);
  here.make_wait(other);
}
inline void cuda_stream::wait_for(cudaStream_t other) const {
  if (other == stream_) return;
  const on_cuda::device_guard guard(device_);
  cuda_event there(*this);
  there.record(other);
  there.make_wait(stream_);
}

/// Page-locked (pinned) host memory, for asynchronous copies. Growing it discards the contents.
class pinned_memory {
 public:
  /// At least `bytes` of memory. No copy may be in flight when it grows.
  void* reserve(std::size_t bytes) {
    if (bytes > (data_ == nullptr ? 0 : bytes_)) {
      data_.reset();
      bytes_ = 0;
      void* made = nullptr;
      on_cuda::check_cuda(cudaMallocHost(&made, bytes), "cudaMallocHost");
      data_.reset(made);
      bytes_ = bytes;
    }
    return data_.get();
  }

 private:
  struct release {
    void operator()(void* memory) const { cudaFreeHost(memory); }
  };

  std::unique_ptr<void, release> data_;
  std::size_t bytes_ = 0;
};

}  // namespace partita::on_cuda
