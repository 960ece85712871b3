// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Devices: a device is an empty tag; `device_queue<Device>` executes work on it and `buffer<T, Device>` owns
/// its memory.

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

#include "partita/base/error.hpp"

namespace partita {

/// Executes work on a device (host: on a number of threads). Specialised for each device.
template <class Device>
class device_queue;

namespace memory {

/// Bytes currently allocated by one rank, their peak, and their budget; shared by all buffers of a queue.
class memory_meter {
 public:
  /// Counts an allocation that is about to be made. Throws budget_error where it would exceed the limit.
  void add(std::size_t bytes) {
    std::size_t before = current_.load();
    do {
      if (!fits(bytes, before))
        base::throw_error<budget_error>({"a buffer of ", bytes, " bytes does not fit into the budget of ",
                                         limit_.load(), " bytes beside buffers of ", before,
                                         " bytes: at least ", before + bytes, " bytes are needed"});
    } while (!current_.compare_exchange_weak(before, before + bytes));
    const std::size_t now = before + bytes;
    std::size_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    allocations_.fetch_add(1);
  }
  void remove(std::size_t bytes) { current_.fetch_sub(bytes); }
  /// Resets the peak to the current number of bytes.
  void restart_peak() { peak_.store(current_.load()); }
  /// The budget: from now on allocations that would make current() larger than `bytes` fail.
  void limit(std::size_t bytes) { limit_.store(bytes); }

  std::size_t current() const { return current_.load(); }
  std::size_t peak() const { return peak_.load(); }
  /// The budget; without one, the largest size there is.
  std::size_t limit() const { return limit_.load(); }
  /// Whether an allocation of so many bytes would stay within the limit.
  bool fits(std::size_t bytes) const { return fits(bytes, current()); }
  /// Total number of allocations. Executing a plan again must not change it.
  std::uint64_t allocations() const { return allocations_.load(); }

 private:
  bool fits(std::size_t bytes, std::size_t beside) const {
    const std::size_t most = limit_.load();
    return beside <= most && bytes <= most - beside;
  }

  std::atomic<std::size_t> current_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::size_t> limit_{std::numeric_limits<std::size_t>::max()};
  std::atomic<std::uint64_t> allocations_{0};
};

}  // namespace memory

/// Move-only array of `size` uninitialised elements, aligned as the queue's allocator guarantees. Throws
/// std::bad_alloc or device_error if the memory cannot be allocated, and budget_error if the queue has a
/// budget that it would exceed.
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

  /// Resizes and discards the contents; reallocates only if the capacity is exceeded.
  void reset(const device_queue<Device>& q, std::size_t size) {
    if (size > capacity_) *this = buffer(q, size);
    size_ = size;
  }
  /// As reset, but a reallocation adds at least a sixteenth to the capacity: for sizes that vary from use to
  /// use.
  void grow(const device_queue<Device>& q, std::size_t size) {
    if (size > capacity_) {
      const std::size_t more = capacity_ + capacity_ / 16;
      *this = buffer();
      *this = buffer(q, std::max(size, more));
    }
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

namespace local {

/// Whether it has products with operands stored as base::bfloat16.
template <class Device>
inline constexpr bool multiplies_bfloat16 = false;
/// Whether its dense products read operands stored as base::bfloat16, which activations may be kept as.
template <class Device>
inline constexpr bool stores_bfloat16 = false;
/// Whether products on the device read factors of rows and columns in the place of values.
template <class Device>
inline constexpr bool multiplies_factors = false;

}  // namespace local

namespace memory {

/// Whether kernels of this device are enqueued: each is a launch, and reading a number waits for all of them.
template <class Device>
inline constexpr bool enqueues = true;

/// A number that work of a queue makes, there when the queue has been synchronised. Move-only on devices that
/// enqueue, whose work writes to it.
template <class V, class Device>
class late {
 public:
  void set(V value) { value_ = value; }
  V get() const { return value_; }

 private:
  V value_{};
};

/// What a queue finds whose sums have the same bits however their terms are dealt to ranks (see
/// partita::reproducible): the queue that it was made of.
template <class Device>
struct reproducible_sums {
  device_queue<Device> beneath;
};

template <class Device>
const reproducible_sums<Device>* reproducible_sums_of(const device_queue<Device>& q) {
  return q.template find<reproducible_sums<Device>>();
}

/// To be called by every kernel whose results depend on how the terms of a sum are dealt to ranks. Throws
/// error naming the operation on a queue whose sums may not.
template <class Device>
void refuse_reproducible(const device_queue<Device>& q, const char* operation) {
  if (reproducible_sums_of(q) != nullptr)
    base::throw_error<error>(
        {operation, " is not available on a reproducible mesh: its sums depend on the mesh"});
}

}  // namespace memory

namespace memory::detail {

/// Type-indexed values, at most one per type.
class typed_values {
 public:
  template <class T>
  T* find() const {
    return static_cast<T*>(find_value(typeid(T)));
  }
  /// Replaces the existing value, if any.
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

}  // namespace memory::detail

}  // namespace partita
