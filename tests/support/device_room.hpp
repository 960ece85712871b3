#pragma once
// Blocks of the laws in memory of a CUDA device. All that happens to them is enqueued; nobody waits before a
// block is looked at, so that what an operation fails to wait for shows on the emulator.
#include <map>

#include "partita/comm/cuda_memory.hpp"
#include "support/law_values.hpp"

namespace test_support::laws {

/// One rank's queue, and page-locked memory that it lends: to free such memory waits for the whole device.
class device_desk {
 public:
  explicit device_desk(partita::queue<partita::cuda_device> q) : queue(std::move(q)) {}
  device_desk(const device_desk&) = delete;
  ~device_desk() { cudaStreamSynchronize(queue.stream()); }

  const partita::queue<partita::cuda_device> queue;

  partita::pinned_memory lend(std::size_t bytes) {
    if (auto found = spare_.lower_bound(bytes); found != spare_.end())
      return std::move(spare_.extract(found).mapped());
    partita::pinned_memory memory;
    memory.reserve(bytes);
    return memory;
  }
  /// Work given earlier may still use it.
  void take_back(std::size_t bytes, partita::pinned_memory memory) {
    used_.emplace(bytes, std::move(memory));
  }
  /// Waits for this queue alone.
  void settle() {
    queue.synchronize();
    spare_.merge(used_);
  }

 private:
  std::multimap<std::size_t, partita::pinned_memory> spare_, used_;
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
  device_block(std::shared_ptr<device_desk> desk, const std::vector<T>& values)
      : desk_(std::move(desk)), data_(desk_->queue, values.size()) {
    transfer(cudaMemcpyHostToDevice, const_cast<T*>(values.data()));
  }

  std::span<const T> in() const { return data_.span(); }
  std::span<T> out() { return data_.span(); }
  void spoil() {
    partita::detail::launch(desk_->queue, static_cast<std::int64_t>(data_.size()), spoiling<T>{data_.data()});
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
    partita::pinned_memory lent = desk_->lend(bytes);
    void* const host = lent.reserve(0);
    const bool up = kind == cudaMemcpyHostToDevice;
    if (up) std::memcpy(host, values, bytes);
    partita::detail::check_cuda(up ? cudaMemcpyAsync(data_.data(), host, bytes, kind, desk_->queue.stream())
                                   : cudaMemcpyAsync(host, data_.data(), bytes, kind, desk_->queue.stream()),
                                "cudaMemcpyAsync");
    if (!up) desk_->settle();
    if (!up) std::memcpy(values, host, bytes);
    desk_->take_back(bytes, std::move(lent));
  }

  std::shared_ptr<device_desk> desk_;
  partita::buffer<T, partita::cuda_device> data_;
};

/// Like host_room.
struct device_room {
  communicator c;
  std::shared_ptr<device_desk> desk;

  template <class T>
  device_block<T> put(const std::vector<T>& values) const {
    return {desk, values};
  }
  template <class T>
  device_block<T> make(std::size_t count) const {
    return put(std::vector<T>(count));
  }
  device_room with(communicator other) const { return {std::move(other), desk}; }
};

/// The ranks of `c` for memory of a queue's device.
inline device_room on_a_device(const communicator& c, const partita::queue<partita::cuda_device>& q =
                                                          partita::queue<partita::cuda_device>()) {
  const auto desk = std::make_shared<device_desk>(q);
  return {c.on_memory(device_memory_of(desk->queue)), desk};
}

}  // namespace test_support::laws
