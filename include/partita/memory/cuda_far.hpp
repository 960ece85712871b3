// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Far memory of CUDA queues: page-locked host memory, moved by a stream of its own. Kernels can also address
/// it, at the speed of the bus.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "partita/base/function_reference.hpp"
#include "partita/memory/cuda.hpp"
#include "partita/memory/far_passes.hpp"

namespace partita {

namespace on_cuda {

/// A far store in page-locked host memory.
class pinned_store : public far_store {
 public:
  pinned_store() = default;
  pinned_store(const pinned_store&) = delete;
  pinned_store& operator=(const pinned_store&) = delete;
  ~pinned_store() override {
    for (const auto& [memory, bytes] : blocks_) cudaFreeHost(const_cast<std::byte*>(memory));
  }

  void* allocate(std::size_t bytes) override {
    void* made = nullptr;
    check_cuda(cudaMallocHost(&made, bytes), "cudaMallocHost");
    const std::lock_guard lock(mutex_);
    blocks_.emplace(static_cast<const std::byte*>(made), bytes);
    return made;
  }
  void release(void* memory, std::size_t) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      blocks_.erase(static_cast<const std::byte*>(memory));
    }
    cudaFreeHost(memory);
  }
  bool contains(const void* address) const override {
    const std::lock_guard lock(mutex_);
    auto next = blocks_.upper_bound(static_cast<const std::byte*>(address));
    if (next == blocks_.begin()) return false;
    const auto& [memory, bytes] = *--next;
    return std::less<>()(static_cast<const std::byte*>(address), memory + bytes);
  }

 private:
  mutable std::mutex mutex_;
  std::map<const std::byte*, std::size_t> blocks_;
};

}  // namespace on_cuda

using on_cuda::pinned_store;

namespace memory {

/// Tasks only enqueue. Bytes are counted, times are not: those of far_traffic stay 0.
template <>
class far_channel<cuda_device> {
 public:
  far_channel(const device_queue<cuda_device>& q, far_options options)
      : options_(std::move(options)),
        window_(q, options_.window),
        work_(q.owner()),
        transfers_(q.device()),
        given_(*work_),
        done_(*transfers_.owner()),
        meter_(work_->far_meter()) {}

  /// What takes much longer to pass than to start.
  static constexpr std::size_t best_rows_bytes = std::size_t{16} << 20;

  bool is_far(const void* address) const { return options_.store->contains(address); }
  std::size_t slot_bytes() const { return options_.slot_bytes(); }
  std::byte* slot(int k) { return window_.data() + static_cast<std::size_t>(k) * slot_bytes(); }

  void start(const std::function<void()>& task) {
    given_.record(*work_);
    given_.make_wait(transfers_.stream());
    task();
    done_.record(*transfers_.owner());
  }
  void wait() { done_.make_wait(work_->get()); }
  void compute(base::function_reference<void()> work) { work(); }
  void move(const block_copy& c) {
    const on_cuda::device_guard guard(transfers_.device());
    const auto row = static_cast<std::ptrdiff_t>(c.row_bytes);
    if (c.to_stride == row && c.from_stride == row)
      on_cuda::check_cuda(cudaMemcpyAsync(c.to, c.from, c.bytes(), cudaMemcpyDefault, transfers_.stream()),
                          "cudaMemcpyAsync");
    else
      on_cuda::check_cuda(cudaMemcpy2DAsync(c.to, static_cast<std::size_t>(c.to_stride), c.from,
                                            static_cast<std::size_t>(c.from_stride), c.row_bytes, c.rows,
                                            cudaMemcpyDefault, transfers_.stream()),
                          "cudaMemcpy2DAsync");
    if (is_far(c.from)) traffic_.read += c.bytes();
    if (is_far(c.to)) traffic_.written += c.bytes();
  }
  void count_read(std::size_t bytes) { traffic_.read += bytes; }
  void count_written(std::size_t bytes) { traffic_.written += bytes; }
  const device_queue<cuda_device>& transfers() const { return transfers_; }
  far_traffic& traffic() { return traffic_; }
  far_forecast*& forecast() { return forecast_; }
  const memory_meter& meter() const { return *meter_; }

 private:
  far_options options_;
  buffer<std::byte, cuda_device> window_;
  std::shared_ptr<const on_cuda::cuda_stream> work_;
  device_queue<cuda_device> transfers_;
  on_cuda::cuda_event given_, done_;
  far_traffic traffic_;
  far_forecast* forecast_ = nullptr;
  std::shared_ptr<memory_meter> meter_;
};

}  // namespace memory

/// As use_far of a host queue.
inline void use_far(const device_queue<cuda_device>& q, const far_options& options) {
  auto channel = std::make_shared<memory::far_channel<cuda_device>>(q, options);
  const auto passes = std::make_shared<local::far_passes<cuda_device>>(std::move(channel));
  q.extend<local::out_of_core<cuda_device>>(passes);
  q.extend<local::pass_runner<cuda_device>>(passes);
  q.owner()->use_far(options);
}

}  // namespace partita
