#pragma once
/// Where bytes live. A place is an empty tag; `queue<Place>` runs work there and `buffer<T, Place>` owns
/// memory there.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace partita {

/// What runs work at a place (host: a thread count). Specialised by each place.
template <class Place>
class queue;

/// Owner of uninitialised, aligned memory at a place. Specialised by each place.
template <class T, class Place>
class buffer;

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

  std::size_t current() const { return current_.load(); }
  std::size_t peak() const { return peak_.load(); }
  /// Allocations since the beginning; a plan that runs twice must not change it.
  std::uint64_t allocations() const { return allocations_.load(); }

 private:
  std::atomic<std::size_t> current_{0};
  std::atomic<std::size_t> peak_{0};
  std::atomic<std::uint64_t> allocations_{0};
};

}  // namespace partita
