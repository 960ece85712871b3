// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CUDA devices. A rank's queue owns or adopts its stream, the stream-ordered memory and the library handles.
/// Work is enqueued asynchronously; the host blocks only in synchronize().

#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "partita/memory/captured.hpp"
#include "partita/memory/cuda_graph.hpp"
#include "partita/memory/cuda_staging.hpp"
#include "partita/memory/cuda_stream.hpp"

/// Device tag, and the kernels found by ADL on its queues.
namespace partita::on_cuda {
struct cuda_device {};
}  // namespace partita::on_cuda

namespace partita {

using on_cuda::cuda_device;

namespace on_cuda {

/// Polled while the host waits for a queue; check() throws to abort the wait.
class queue_watcher {
 public:
  virtual ~queue_watcher() = default;
  virtual void check() = 0;
};

}  // namespace on_cuda

/// A CUDA stream with its memory and library handles. Value handle: copies refer to the same queue. Not
/// thread-safe; independent of the calling thread's current device.
template <>
class device_queue<cuda_device> {
 public:
  using allocator = on_cuda::cuda_stream;

  /// Throws device_error if the device does not exist.
  explicit device_queue(int device = 0, on_cuda::stream_priority priority = on_cuda::stream_priority::normal)
      : state_(std::make_shared<state>(device, priority)) {}
  /// On a stream and with memory of the caller's, see foreign_stream; extensions as below. Throws
  /// device_error if the device does not exist or the stream is of another, and error for half an allocator.
  template <class... Extension>
  device_queue(int device, on_cuda::foreign_stream theirs, Extension... extensions)
      : state_(std::make_shared<state>(device, std::move(theirs))) {
    (prepare(std::move(extensions)), ...);
  }
  /// Extensions, such as cuda_libraries, are retrieved with find(). Calls prepare(queue) on those that have
  /// it.
  template <class... Extension>
  explicit device_queue(int device, Extension... extensions) : device_queue(device) {
    (prepare(std::move(extensions)), ...);
  }

  int device() const { return state_->stream->device(); }
  cudaStream_t stream() const { return state_->stream->get(); }
  const std::shared_ptr<const on_cuda::cuda_stream>& owner() const { return state_->stream; }
  /// Makes later work on `other`, a stream of this device, wait for the work enqueued here so far. The host
  /// does not wait. Throws device_error.
  void make_wait(cudaStream_t other) const { state_->stream->make_wait(other); }
  /// Makes later work here wait for the work enqueued so far on `other`, a stream of this device. The host
  /// does not wait. Throws device_error.
  void wait_for(cudaStream_t other) const { state_->stream->wait_for(other); }
  const std::shared_ptr<memory::memory_meter>& meter() const { return state_->stream->shared_meter(); }
  /// As device_queue<host>::limit_memory.
  void limit_memory(std::size_t bytes) const { meter()->limit(bytes); }
  /// As device_queue<host>::recycle_memory, for buffers from the device's pool; on any thread.
  void recycle_memory() const { state_->stream->recycle(); }

  /// The extension of this type, or null.
  template <class Extension>
  Extension* find() const {
    return state_->resources.find<Extension>();
  }
  /// Replaces the extension of this type, if any.
  template <class Extension>
  Extension& extend(std::shared_ptr<Extension> extension) const {
    return state_->resources.put(std::move(extension));
  }
  /// The queue's instance of R (a library handle, a workspace), constructed as R(*this) on first use. R must
  /// not keep a reference to the queue.
  template <class R>
  R& resource() const {
    if (R* const made = state_->resources.find<R>()) return *made;
    const on_cuda::device_guard guard(device());
    return state_->resources.put(std::make_shared<R>(*this));
  }

  /// Polls `watcher` during waits of this queue, until it is destroyed.
  void watch(std::weak_ptr<on_cuda::queue_watcher> watcher) const {
    state_->watchers.push_back(std::move(watcher));
  }

  /// Waits for all work enqueued so far. Throws device_error, and whatever a watcher throws.
  void synchronize() const {
    watch_until([this] { return on_cuda::is_done(cudaStreamQuery(stream()), "cudaStreamQuery"); });
    on_cuda::check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    ++state_->waits;
  }
  /// How often it has been waited for all of its work.
  std::uint64_t waits() const { return state_->waits; }
  /// Waits for the work preceding `event`, on whichever stream it was recorded.
  void synchronize(const on_cuda::cuda_event& event) const {
    watch_until([&] { return event.reached(); });
    on_cuda::check_cuda(cudaEventSynchronize(event.get()), "cudaEventSynchronize");
  }

 private:
  template <class Extension>
  void prepare(Extension extension) const {
    if constexpr (requires { extension.prepare(*this); }) extension.prepare(*this);
    extend(std::make_shared<Extension>(std::move(extension)));
  }
  /// Polls the watchers, if any, until done() returns true.
  template <class Done>
  void watch_until(Done done) const {
    while (!state_->watchers.empty() && !done()) {
      std::erase_if(state_->watchers, [](const auto& w) { return w.expired(); });
      for (const auto& w : state_->watchers)
        if (const auto alive = w.lock()) alive->check();
      std::this_thread::yield();
    }
  }

  struct state {
    template <class Kind>
    state(int device, Kind kind)
        : stream(std::make_shared<const on_cuda::cuda_stream>(device, std::move(kind))) {}

    std::shared_ptr<const on_cuda::cuda_stream> stream;
    std::vector<std::weak_ptr<on_cuda::queue_watcher>> watchers;
    memory::detail::typed_values resources;
    std::uint64_t waits = 0;
  };

  std::shared_ptr<state> state_;
};

namespace on_cuda {

/// The staging memory of a queue.
struct queue_staging {
  explicit queue_staging(const device_queue<cuda_device>& q) : ring(q.owner()) {}

  staging_ring ring;
};

inline cudaMemoryType kind_of_memory(const void* at) {
  cudaPointerAttributes found{};
  check_cuda(cudaPointerGetAttributes(&found, at), "cudaPointerGetAttributes");
  return found.type;
}

}  // namespace on_cuda

/// Copies between host and device, or within the device. From pageable memory to the device in the order of
/// the queue: `from` may change at once. Everything else is complete on return. A pageable cudaMemcpyAsync
/// may block inside the driver, where the watchers cannot run: it is not used before the queue is done.
template <class T>
void copy(const device_queue<cuda_device>& q, std::span<const T> from, std::span<T> to) {
  if (from.empty()) return;
  const cudaMemoryType source = on_cuda::kind_of_memory(from.data()),
                       target = on_cuda::kind_of_memory(to.data());
  const bool from_device = source == cudaMemoryTypeDevice, to_device = target == cudaMemoryTypeDevice;
  auto& ring = q.resource<on_cuda::queue_staging>().ring;
  const auto wait = [&](const auto&... event) { q.synchronize(event...); };
  if (to_device && source == cudaMemoryTypeUnregistered)
    return ring.upload(from.data(), to.data(), from.size_bytes(), wait);
  if (from_device && target == cudaMemoryTypeUnregistered && from.size_bytes() <= ring.half_bytes)
    return ring.download(from.data(), to.data(), from.size_bytes(), wait);
  if (!from_device || !to_device) q.synchronize();
  on_cuda::check_cuda(
      cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDefault, q.stream()),
      "cudaMemcpyAsync");
  q.synchronize();
}

namespace on_cuda {

/// An extension of queues whose work is never captured.
struct without_graphs {};

/// Per-queue scratch memory for a single kernel; later users overwrite it in stream order.
struct cuda_scratch {
  explicit cuda_scratch(const device_queue<cuda_device>&) {}

  buffer<std::byte, cuda_device> device;
  on_cuda::pinned_memory host;
};

/// `count` uninitialised elements, valid until the next call for this queue.
template <class T>
T* scratch(const device_queue<cuda_device>& q, std::size_t count) {
  auto& memory = q.resource<on_cuda::cuda_scratch>().device;
  memory.reset(q, count * sizeof(T));
  return reinterpret_cast<T*>(memory.data());
}

/// Reads one element from the device; blocks.
template <class T>
T read(const device_queue<cuda_device>& q, const T* at) {
  // Reserve enough for any scalar at once: growing frees, which may synchronise the whole device.
  T* const value =
      static_cast<T*>(q.resource<on_cuda::cuda_scratch>().host.reserve(std::max<std::size_t>(sizeof(T), 64)));
  on_cuda::check_cuda(cudaMemcpyAsync(value, at, sizeof(T), cudaMemcpyDefault, q.stream()),
                      "cudaMemcpyAsync");
  q.synchronize();
  return *value;
}

}  // namespace on_cuda

template <>
inline constexpr bool local::multiplies_bfloat16<cuda_device> = true;

namespace memory {

template <class V>
class late<V, cuda_device> {
 public:
  void set(V value) { *place() = value; }
  /// Enqueues a copy of what will be there.
  void take(const device_queue<cuda_device>& q, const V* at) {
    on_cuda::check_cuda(cudaMemcpyAsync(place(), at, sizeof(V), cudaMemcpyDefault, q.stream()),
                        "cudaMemcpyAsync");
  }
  V get() const { return value_ == nullptr ? V{} : *value_; }

 private:
  V* place() { return value_ = static_cast<V*>(memory_.reserve(sizeof(V))); }

  on_cuda::pinned_memory memory_;
  V* value_ = nullptr;
};

/// As a graph, once a call has neither allocated nor released anything, until something else of the queue
/// does: then buffers may lie elsewhere. Not on the default stream, which cannot be captured, nor on a queue
/// that recycles memory, which moves buffers without an allocation. The queue is synchronised between two
/// calls.
template <>
class captured<cuda_device> {
 public:
  captured() = default;
  /// Begins anew: what the work refers to has moved, too.
  captured(captured&&) noexcept {}

  template <class F>
  void operator()(const device_queue<cuda_device>& q, std::uint64_t step, const F& work) {
    const bool is_steady = std::exchange(steady_, false) && left_ == memory_of(q) && can_capture(q);
    device_.reset(q, step_numbers::most);
    host_.reserve(step_numbers::most * sizeof(std::uint64_t));
    left_ = memory_of(q);
    if (is_steady) {
      repeat(q, step, work);
    } else {
      graph_.reset();
      work(static_cast<step_numbers*>(nullptr));
    }
    steady_ = left_ == memory_of(q);
    left_ = memory_of(q);
  }

 private:
  /// The allocations of a queue, and what of them is there.
  static std::pair<std::uint64_t, std::size_t> memory_of(const device_queue<cuda_device>& q) {
    return {q.meter()->allocations(), q.meter()->current()};
  }
  static bool can_capture(const device_queue<cuda_device>& q) {
    return q.stream() != nullptr && q.stream() != cudaStreamLegacy && !q.owner()->recycles() &&
           q.find<on_cuda::without_graphs>() == nullptr;
  }
  template <class F>
  void repeat(const device_queue<cuda_device>& q, std::uint64_t step, const F& work) {
    const on_cuda::device_guard guard(q.device());
    auto* const host = static_cast<std::uint64_t*>(host_.reserve(0));
    if (graph_) {
      numbers_.go_on(step);
    } else {
      numbers_.begin(host, device_.data(), step);
      graph_.emplace(q.stream(), [&] { work(&numbers_); });
    }
    on_cuda::check_cuda(cudaMemcpyAsync(device_.data(), host, numbers_.count() * sizeof(std::uint64_t),
                                        cudaMemcpyHostToDevice, q.stream()),
                        "cudaMemcpyAsync");
    graph_->launch(q.stream());
  }

  step_numbers numbers_;
  on_cuda::pinned_memory host_;
  buffer<std::uint64_t, cuda_device> device_;
  std::optional<on_cuda::cuda_graph> graph_;
  std::pair<std::uint64_t, std::size_t> left_;  ///< when the last call ended
  bool steady_ = false;
};

}  // namespace memory

}  // namespace partita
