// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of the laws in memory of a CUDA device. All that happens to them is enqueued; nobody waits before a
// block is looked at, so that what an operation fails to wait for shows on the emulator.

#include <map>

#include "laws/law_values.hpp"
#include "partita/comm/cuda_memory.hpp"

namespace test_support::laws {

/// One rank's queue, and page-locked memory that it lends: to free such memory waits for the whole device.
class pinned_pool {
 public:
  explicit pinned_pool(partita::device_queue<partita::cuda_device> q) : queue(std::move(q)) {}
  pinned_pool(const pinned_pool&) = delete;
  ~pinned_pool() { cudaStreamSynchronize(queue.stream()); }

  const partita::device_queue<partita::cuda_device> queue;

  partita::on_cuda::pinned_memory lend(std::size_t bytes) {
    if (auto found = spare_.lower_bound(bytes); found != spare_.end())
      return std::move(spare_.extract(found).mapped());
    partita::on_cuda::pinned_memory memory;
    memory.reserve(bytes);
    return memory;
  }
  /// Work given earlier may still use it.
  void take_back(std::size_t bytes, partita::on_cuda::pinned_memory memory) {
    used_.emplace(bytes, std::move(memory));
  }
  /// Waits for this queue alone.
  void settle() {
    queue.synchronize();
    spare_.merge(used_);
  }

 private:
  std::multimap<std::size_t, partita::on_cuda::pinned_memory> spare_, used_;
};

/// data[t] = 77.
template <class T>
struct spoiling {
  T* data;
  constexpr void operator()(std::int64_t t) const { data[t] = T(77); }
};

/// Like host_block.
template <class T>
class device_block {
 public:
  device_block(std::shared_ptr<pinned_pool> pool, const std::vector<T>& values)
      : pool_(std::move(pool)), data_(pool_->queue, values.size()) {
    transfer(cudaMemcpyHostToDevice, const_cast<T*>(values.data()));
  }

  std::span<const T> in() const { return data_.span(); }
  std::span<T> out() { return data_.span(); }
  void spoil() {
    partita::on_cuda::launch(pool_->queue, static_cast<std::int64_t>(data_.size()),
                             spoiling<T>{data_.data()});
  }
  std::vector<T> get() {
    std::vector<T> values(data_.size());
    transfer(cudaMemcpyDeviceToHost, values.data());
    return values;
  }

 private:
  void transfer(cudaMemcpyKind kind, T* values) {
    const std::size_t bytes = data_.size() * sizeof(T);
    if (bytes == 0) return;
    partita::on_cuda::pinned_memory lent = pool_->lend(bytes);
    void* const host = lent.reserve(0);
    const bool up = kind == cudaMemcpyHostToDevice;
    if (up) std::memcpy(host, values, bytes);
    partita::on_cuda::check_cuda(up ? cudaMemcpyAsync(data_.data(), host, bytes, kind, pool_->queue.stream())
                                    : cudaMemcpyAsync(host, data_.data(), bytes, kind, pool_->queue.stream()),
                                 "cudaMemcpyAsync");
    if (!up) pool_->settle();
    if (!up) std::memcpy(values, host, bytes);
    pool_->take_back(bytes, std::move(lent));
  }

  std::shared_ptr<pinned_pool> pool_;
  partita::buffer<T, partita::cuda_device> data_;
};

/// Like host_fixture.
struct device_fixture {
  communicator c;
  std::shared_ptr<pinned_pool> pool;

  template <class T>
  device_block<T> put(const std::vector<T>& values) const {
    return {pool, values};
  }
  template <class T>
  device_block<T> make(std::size_t count) const {
    return put(std::vector<T>(count));
  }
  device_fixture with(communicator other) const { return {std::move(other), pool}; }
};

/// The ranks of `c` for memory of a queue's device.
inline device_fixture on_a_device(
    const communicator& c,
    const partita::device_queue<partita::cuda_device>& q = partita::device_queue<partita::cuda_device>()) {
  const auto pool = std::make_shared<pinned_pool>(q);
  return {c.on_memory(device_memory_of(pool->queue)), pool};
}

}  // namespace test_support::laws
