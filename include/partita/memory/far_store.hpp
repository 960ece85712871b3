// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Stores of far memory, and how a queue uses one; see far.hpp.

#include <cstddef>
#include <memory>

namespace partita {

/// Where far buffers live. Thread-safe: the ranks of a process may share a store.
class far_store {
 public:
  virtual ~far_store() = default;
  /// Uninitialised memory, aligned to at least 256 bytes. Throws device_error if the store is full.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;
  /// Whether the address belongs to memory of this store.
  virtual bool contains(const void* address) const = 0;
  /// Says that these bytes will be read soon: where they are on a disk, they are on their way when it
  /// returns.
  virtual void expect(const void*, std::size_t) noexcept {}
  /// Says that these bytes, which keep their values, need not stay resident.
  virtual void forget(const void*, std::size_t) noexcept {}
};

/// How a queue uses far memory.
struct far_options {
  /// Alignment of what lies in the window.
  static constexpr std::size_t alignment = 256;

  std::shared_ptr<far_store> store = {};
  std::size_t window = 0;       ///< bytes of near memory that far operands pass through
  std::size_t from = 1;         ///< buffers of at least this many bytes are far
  double bytes_per_second = 0;  ///< slows transfers down to this rate, to emulate a slower store; 0: does not

  /// Half of the window.
  std::size_t slot_bytes() const { return window / 2 / alignment * alignment; }
  /// The least window whose halves have so many bytes together.
  static constexpr std::size_t least_window(std::size_t bytes) {
    return (bytes + 2 * alignment - 1) / (2 * alignment) * (2 * alignment);
  }
};

}  // namespace partita
