// SPDX-License-Identifier: Apache-2.0
#pragma once
/// CUDA devices. Everything that a rank owns there hangs on its queue: a stream, memory in its
/// order, the libraries' handles. Work is enqueued; the host waits only where synchronize() is called.

#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "partita/memory/cuda_stream.hpp"

/// The tag of CUDA devices, and the kernels that take their queues.
namespace partita::on_cuda {
struct cuda_device {};
}  // namespace partita::on_cuda

namespace partita {

using on_cuda::cuda_device;

namespace on_cuda {

/// Is asked again and again while the host waits for a queue; throws to give up waiting.
class queue_watcher {
 public:
  virtual ~queue_watcher() = default;
  virtual void check() = 0;
};

}  // namespace on_cuda

/// A value handle: copies are the same queue. Used by one thread at a time, whatever that thread's current
/// device is.
template <>
class device_queue<cuda_device> {
 public:
  using allocator = on_cuda::cuda_stream;

  /// Throws device_error when there is no such device.
  explicit device_queue(int device = 0, on_cuda::stream_priority priority = on_cuda::stream_priority::normal)
      : state_(std::make_shared<state>(device, priority)) {}
  /// `extensions` are found again by find(), such as cuda_libraries; of those that have a function
  /// prepare(queue) it is called.
  template <class... Extension>
  explicit device_queue(int device, Extension... extensions) : device_queue(device) {
    (extend(std::move(extensions)), ...);
  }

  int device() const { return state_->stream->device(); }
  cudaStream_t stream() const { return state_->stream->get(); }
  const std::shared_ptr<const on_cuda::cuda_stream>& owner() const { return state_->stream; }
  const std::shared_ptr<memory_meter>& meter() const { return state_->stream->shared_meter(); }

  /// What the queue was extended by, null where it was not.
  template <class Extension>
  const Extension* find() const {
    return state_->resources.find<Extension>();
  }
  /// The one R of this queue, made by R(*this) when first asked for: a library's handle, a workspace. R must
  /// not keep the queue.
  template <class R>
  R& resource() const {
    if (R* const made = state_->resources.find<R>()) return *made;
    const on_cuda::device_guard guard(device());
    return state_->resources.put(std::make_shared<R>(*this));
  }

  /// Lets `watcher` end waits of this queue as long as it lives.
  void watch(std::weak_ptr<on_cuda::queue_watcher> watcher) const {
    state_->watchers.push_back(std::move(watcher));
  }

  /// Returns when all work given so far is done. Throws device_error, and what a watcher throws.
  void synchronize() const {
    watch_until([this] { return on_cuda::is_done(cudaStreamQuery(stream()), "cudaStreamQuery"); });
    on_cuda::check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
  }
  /// The same for the work before `event`, in whatever stream it stands.
  void synchronize(const on_cuda::cuda_event& event) const {
    watch_until([&] { return event.reached(); });
    on_cuda::check_cuda(cudaEventSynchronize(event.get()), "cudaEventSynchronize");
  }

 private:
  template <class Extension>
  void extend(Extension extension) const {
    if constexpr (requires { extension.prepare(*this); }) extension.prepare(*this);
    state_->resources.put(std::make_shared<Extension>(std::move(extension)));
  }
  /// Asks the watchers until done() holds, where there are any.
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
    state(int device, on_cuda::stream_priority priority)
        : stream(std::make_shared<const on_cuda::cuda_stream>(device, priority)) {}

    std::shared_ptr<const on_cuda::cuda_stream> stream;
    std::vector<std::weak_ptr<on_cuda::queue_watcher>> watchers;
    detail::typed_values resources;
  };

  std::shared_ptr<state> state_;
};

/// Copies between host and device either way, or within the device, and waits for it. Waits before, too: the
/// runtime's copy of ordinary host memory would wait where no watcher is asked.
template <class T>
void copy(const device_queue<cuda_device>& q, std::span<const T> from, std::span<T> to) {
  q.synchronize();
  if (!from.empty())
    on_cuda::check_cuda(
        cudaMemcpyAsync(to.data(), from.data(), from.size_bytes(), cudaMemcpyDefault, q.stream()),
        "cudaMemcpyAsync");
  q.synchronize();
}

namespace on_cuda {

/// Memory of a queue for what lives no longer than one kernel: the next user may overwrite it, in stream
/// order.
struct cuda_scratch {
  explicit cuda_scratch(const device_queue<cuda_device>&) {}

  buffer<std::byte, cuda_device> device;
  on_cuda::pinned_memory host;
};

/// `count` uninitialised elements until the next call for this queue.
template <class T>
T* scratch(const device_queue<cuda_device>& q, std::size_t count) {
  auto& memory = q.resource<on_cuda::cuda_scratch>().device;
  memory.reset(q, count * sizeof(T));
  return reinterpret_cast<T*>(memory.data());
}

/// One element of the device; waits for it.
template <class T>
T read(const device_queue<cuda_device>& q, const T* at) {
  // Room for any number at once: to grow means to free, for which a whole device may wait.
  T* const value =
      static_cast<T*>(q.resource<on_cuda::cuda_scratch>().host.reserve(std::max<std::size_t>(sizeof(T), 64)));
  on_cuda::check_cuda(cudaMemcpyAsync(value, at, sizeof(T), cudaMemcpyDeviceToHost, q.stream()),
                      "cudaMemcpyAsync");
  q.synchronize();
  return *value;
}

}  // namespace on_cuda

}  // namespace partita
