// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Lists in host memory that are too large to stay resident: vectors whose elements are in a far store.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "partita/memory/device.hpp"
#include "partita/memory/far_store.hpp"

namespace partita::local {

/// Allocates in a far store what has at least `from` bytes, and the rest, or all without a store, on the
/// heap. Elements that are made without a value are not initialised.
template <class T>
class list_allocator {
 public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  /// Lists of this size, which are few at a time, need not be far.
  static constexpr std::size_t most_near = std::size_t{8} << 20;

  list_allocator() = default;
  explicit list_allocator(std::shared_ptr<far_store> store, std::size_t from = most_near)
      : store_(std::move(store)), from_(from) {}
  template <class U>
  list_allocator(const list_allocator<U>& other) : store_(other.store_), from_(other.from_) {}

  T* allocate(std::size_t count) {
    if (!is_far(count)) return std::allocator<T>().allocate(count);
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(store_->allocate(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    if (is_far(count))
      store_->release(memory, count * sizeof(T));
    else
      std::allocator<T>().deallocate(memory, count);
  }
  template <class U>
  void construct(U* element) {
    ::new (static_cast<void*>(element)) U;
  }
  template <class U, class... Value>
  void construct(U* element, Value&&... value) {
    ::new (static_cast<void*>(element)) U(std::forward<Value>(value)...);
  }

  friend bool operator==(const list_allocator& a, const list_allocator& b) {
    return a.store_ == b.store_ && a.from_ == b.from_;
  }

 private:
  template <class>
  friend class list_allocator;

  bool is_far(std::size_t count) const {
    return store_ != nullptr && count >= (from_ + sizeof(T) - 1) / sizeof(T);
  }

  std::shared_ptr<far_store> store_;
  std::size_t from_ = most_near;
};

template <class T>
using large_list = std::vector<T, list_allocator<T>>;

/// What allocates the lists of a set-up on the rank of this queue: in its far memory, if it has any and is a
/// host's, lists of the size of far buffers, and all of at least most_near bytes, since no budget counts
/// lists.
template <class Device>
list_allocator<std::byte> list_memory(const device_queue<Device>& q) {
  if constexpr (requires { q.threads(); })
    if (const auto& far = q.owner()->far())
      return list_allocator<std::byte>(far->store, std::min(far->from, list_allocator<std::byte>::most_near));
  return {};
}

}  // namespace partita::local
