// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Where bytes live. A device is an empty tag; `device_queue<Device>` runs work there and `buffer<T, Device>`
/// owns memory there.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <typeinfo>
#include <utility>
#include <vector>

namespace partita {

/// What runs work on a device (host: a thread count). Specialised by each device.
template <class Device>
class device_queue;

/// Bytes of all live buffers of one rank, and their largest sum; shared by the buffers of a queue.
class memory_meter {
 public:
  void add(std::size_t bytes) {
    const std::size_t now = current_.fetch_add(bytes) + bytes;
    std::size_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    allocations_.fetch_add(1);
  }
  void remove(std::size_t bytes) { current_.fetch_sub(bytes); }
  /// Begins the peak anew, from the bytes of buffers that live now.
  void restart_peak() { peak_.store(current_.load()); }

  std::size_t current() const { return current_.load(); }
  std::size_t peak() const { return peak_.load(); }
  /// Allocations since the beginning; a plan that runs twice must not change it.
  std::uint64_t allocations() const { return allocations_.load(); }

 private:
  std::atomic<std::size_t> current_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::uint64_t> allocations_{0};
};

/// Move-only owner of `size` uninitialised elements, aligned as the allocator of the queue has it. Throws
/// std::bad_alloc, or device_error, where there is no such memory.
template <class T, class Device>
class buffer {
 public:
  buffer() = default;
  buffer(const device_queue<Device>& q, std::size_t size) : size_(size), capacity_(size) {
    if (size == 0) return;
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    owner_ = q.owner();
    data_ = static_cast<T*>(owner_->allocate(size * sizeof(T)));
  }
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~buffer() {
    if (data_ != nullptr) owner_->release(data_, capacity_ * sizeof(T));
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<T> span() { return {data_, size_}; }
  std::span<const T> span() const { return {data_, size_}; }

  /// Changes the size and loses the contents; allocates only when the capacity does not suffice.
  void reset(const device_queue<Device>& q, std::size_t size) {
    if (size > capacity_) *this = buffer(q, size);
    size_ = size;
  }

 private:
  void swap(buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(owner_, other.owner_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::shared_ptr<const typename device_queue<Device>::allocator> owner_;
};

namespace detail {

/// At most one value of each type.
class typed_values {
 public:
  template <class T>
  T* find() const {
    return static_cast<T*>(find_value(typeid(T)));
  }
  /// In place of the one that was there.
  template <class T>
  T& put(std::shared_ptr<T> value) {
    put_value(typeid(T), value);
    return *value;
  }

 private:
  struct typed_value {
    const std::type_info* type;
    std::shared_ptr<void> value;
  };

  void* find_value(const std::type_info& type) const {
    for (const typed_value& v : values_)
      if (*v.type == type) return v.value.get();
    return nullptr;
  }
  void put_value(const std::type_info& type, const std::shared_ptr<void>& value) {
    for (typed_value& v : values_)
      if (*v.type == type) {
        v.value = value;
        return;
      }
    values_.push_back({&type, value});
  }

  std::vector<typed_value> values_;
};

}  // namespace detail

}  // namespace partita
