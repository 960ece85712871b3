// SPDX-License-Identifier: Apache-2.0
#pragma once
/// comm::device_memory for CUDA: events, copies and reductions on one rank's stream.

#include <array>

#include "partita/comm/device_memory.hpp"
#include "partita/memory/cuda_launch.hpp"

namespace partita::comm {

namespace detail {

/// to[i] = from[0][i] op from[1][i] op ..., one element per thread.
template <class T>
struct ordered_reduction {
  static constexpr std::size_t most = 128;  ///< bounded by the kernel parameter limit

  std::array<const T*, most> from;
  std::size_t sources;
  reduction how;
  T* to;

  constexpr void operator()(std::int64_t i) const {
    T sum = from[0][i];
    for (std::size_t q = 1; q < sources; ++q) sum = combine(how, sum, from[q][i]);
    to[i] = sum;
  }
};

struct cuda_memory_event final : device_memory::event {
  explicit cuda_memory_event(const partita::device_queue<cuda_device>& q) : event(*q.owner()) {}

  on_cuda::cuda_event event;
};

struct cuda_host_block final : device_memory::host_block {
  std::byte* reserve(std::size_t bytes) override { return static_cast<std::byte*>(memory.reserve(bytes)); }

  on_cuda::pinned_memory memory;
};

}  // namespace detail

/// Device memory of one CUDA queue.
class cuda_memory final : public device_memory {
 public:
  explicit cuda_memory(partita::device_queue<cuda_device> q)
      : queue_(std::move(q)), name_("cuda device " + std::to_string(queue_.device())) {}

  /// The queue on which all work is enqueued.
  const partita::device_queue<cuda_device>& queue() const { return queue_; }
  const std::string& name() const override { return name_; }

  std::unique_ptr<event> make_event() const override {
    return std::make_unique<detail::cuda_memory_event>(queue_);
  }
  void record(event& e) const override {
    static_cast<detail::cuda_memory_event&>(e).event.record(*queue_.owner());
  }
  void wait_on(const event& e) const override { event_of(e).make_wait(queue_.stream()); }
  void synchronize(const event& e) const override { queue_.synchronize(event_of(e)); }

  void copy(const void* from, void* to, std::size_t bytes) const override { move(from, to, bytes); }
  void download(const void* from, void* to, std::size_t bytes) const override { move(from, to, bytes); }
  void upload(const void* from, void* to, std::size_t bytes) const override { move(from, to, bytes); }

  void reduce(element_type type, reduction r, std::span<const void* const> from, void* to,
              global_index count) const override {
    detail::with_element(type, [&]<class T>(T) { reduce_typed(r, from, static_cast<T*>(to), count); });
  }

  std::unique_ptr<host_block> make_host_block() const override {
    return std::make_unique<detail::cuda_host_block>();
  }

 private:
  static const on_cuda::cuda_event& event_of(const event& e) {
    return static_cast<const detail::cuda_memory_event&>(e).event;
  }
  /// Buffers of the device may live in far memory.
  void move(const void* from, void* to, std::size_t bytes) const {
    if (bytes > 0 && from != to)
      on_cuda::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue_.stream()),
                          "cudaMemcpyAsync");
  }

  /// With more sources than fit in the kernel parameters, later launches continue from a partial result in a
  /// separate buffer, since `to` may alias a source.
  template <class T>
  void reduce_typed(reduction r, std::span<const void* const> from, T* to, global_index count) const {
    constexpr std::size_t most = detail::ordered_reduction<T>::most;
    buffer<T, cuda_device> sums;
    if (from.size() > most) sums = buffer<T, cuda_device>(queue_, static_cast<std::size_t>(count));
    const T* before = nullptr;
    while (!from.empty()) {
      detail::ordered_reduction<T> sum{{before}, before == nullptr ? 0u : 1u, r, to};
      const std::size_t taken = std::min(from.size(), most - sum.sources);
      for (const void* const source : from.first(taken))
        sum.from[sum.sources++] = static_cast<const T*>(source);
      from = from.subspan(taken);
      if (!from.empty()) before = sum.to = sums.data();
      on_cuda::launch(queue_, count, sum);
    }
  }

  partita::device_queue<cuda_device> queue_;
  std::string name_;
};

}  // namespace partita::comm

namespace partita::on_cuda {

inline std::shared_ptr<comm::device_memory> device_memory_of(const device_queue<cuda_device>& q) {
  return std::make_shared<comm::cuda_memory>(q);
}

}  // namespace partita::on_cuda
